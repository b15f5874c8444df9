"""What a gated program finds at run time: builtins that note a violation where syntax could not show one.

A noted violation stands even if the program catches the exception it raises.
"""

from __future__ import annotations

import builtins
import sys
import time

from . import worlds
from .allowed import HELPERS, MODULES, REFUSED_BUILTINS
from .gate import refused_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType as Module

ModuleType = type(sys)

_ALLOWED_MODULES = frozenset(MODULES)


class Forbidden(BaseException):
    """Raised at run time where the static pass could not see; caught or not, the violation has been noted."""


_violations: list[str] = []


def violation() -> str:
    """The first violation noted since ``forget_violations``, or ""."""
    return _violations[0] if _violations else ""


def forget_violations() -> None:
    """Start anew, before each input."""
    _violations.clear()


def _violate(reason: str) -> None:
    _violations.append(reason)
    raise Forbidden(reason)


def _checked_name(name: object) -> None:
    if isinstance(name, str) and refused_attribute(name):
        _violate(refused_attribute(name))
    if name == "__hash__":
        worlds.note()


def _getattr(value: object, name: str, *default: object) -> object:
    _checked_name(name)
    return getattr(value, name, *default)


def _hasattr(value: object, name: str) -> bool:
    _checked_name(name)
    return hasattr(value, name)


def _setattr(value: object, name: str, item: object) -> None:
    _checked_name(name)
    if isinstance(value, ModuleType):
        _violate("changing a module")
    setattr(value, name, item)


def _delattr(value: object, name: str) -> None:
    _checked_name(name)
    if isinstance(value, ModuleType):
        _violate("changing a module")
    delattr(value, name)


def _import(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Module:
    if level or (name not in _ALLOWED_MODULES and name not in HELPERS):
        _violate(f"import of {name[:80]}")
    wanted = name if fromlist else name.split(".")[0]
    found = _views.get(wanted) or sys.modules.get(wanted)
    if found is None:
        raise ImportError(name)
    return found


def _strftime(form: str, moment: object) -> str:
    """``time.strftime``, which without a moment would read the clock."""
    return time.strftime(form, moment)  # type: ignore[arg-type]


clockless_time = ModuleType("time")
"""What an import of ``time`` finds that the interpreter makes in a gated program's name (``strftime`` does)."""
vars(clockless_time).update(strftime=_strftime, struct_time=time.struct_time, mktime=time.mktime)

_views: dict[str, Module] = {}


def make_views() -> None:
    """Make, of each module that a program may import, the view that it gets: public names, and no module but those
    that it may import. So no way of asking leads from ``calendar`` to ``sys``."""
    for name in _ALLOWED_MODULES & sys.modules.keys():
        _views[name] = ModuleType(name)
    for name, view in _views.items():
        listed = vars(sys.modules[name]).get("__all__", ())
        for key, value in vars(sys.modules[name]).items():
            if isinstance(value, ModuleType):
                value = _views.get(f"{name}.{key}")
            if value is not None and (not key.startswith("_") or key in listed or key in ("__all__", "__doc__")):
                vars(view)[key] = value


def _refuser(name: str) -> object:
    def refuse(*args: object, **kwargs: object) -> None:
        _violate(f"use of {name}")

    return refuse


def _program_builtins() -> Iterator[tuple[str, object]]:
    for name, value in vars(builtins).items():
        yield name, _refuser(name) if name in REFUSED_BUILTINS else value
    yield from (("getattr", _getattr), ("hasattr", _hasattr), ("setattr", _setattr), ("delattr", _delattr))
    yield from (("__import__", _import), ("hash", worlds.hash_of))


_BUILTINS = dict(_program_builtins())


def program_builtins() -> dict[str, object]:
    """The builtins that a gated program gets: one dict for all inputs, since to copy it is to touch all it holds."""
    return _BUILTINS
