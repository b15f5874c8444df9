"""What a gated program finds at run time: builtins that note a violation where syntax could not show one.

A noted violation stands even if the program catches the exception it raises.
"""

from __future__ import annotations

import builtins
import sys
import time

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
    found = sys.modules.get(name if fromlist else name.split(".")[0])
    if found is None:
        raise ImportError(name)
    return found


clockless_time = ModuleType("time")
"""What an import of ``time`` finds that the interpreter makes in a gated program's name (``strftime`` does)."""
vars(clockless_time).update(strftime=time.strftime, struct_time=time.struct_time, mktime=time.mktime)


def _refuser(name: str) -> object:
    def refuse(*args: object, **kwargs: object) -> None:
        _violate(f"use of {name}")

    return refuse


def _program_builtins() -> Iterator[tuple[str, object]]:
    for name, value in vars(builtins).items():
        yield name, _refuser(name) if name in REFUSED_BUILTINS else value
    yield from (("getattr", _getattr), ("hasattr", _hasattr), ("setattr", _setattr), ("delattr", _delattr))
    yield "__import__", _import


_BUILTINS = dict(_program_builtins())


def program_builtins() -> dict[str, object]:
    """A fresh copy of the builtins that a gated program gets."""
    return dict(_BUILTINS)
