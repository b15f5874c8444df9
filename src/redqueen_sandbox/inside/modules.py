"""What a gated program finds when it imports: stand-ins that hold the allowed public names of a module and no more.

So there is no other name to be had by any road (``vars``, ``getattr``, a private helper), and nothing a program does
to a module reaches the library's own code.
"""

from __future__ import annotations

import sys

from . import guards, library
from .allowed import MODULES, ONLY_NAMES, REFUSED_NAMES, SEEDED_ONLY, UNLISTED_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType as Module

_ModuleType = type(sys)
_ALLOWED_MODULES = frozenset(MODULES)
_MAX_RECURSION = 10_000  # deeper, nested C calls would run out of stack
_stand_ins: dict[str, Module] = {}


def stand_in(name: str) -> Module:
    """The stand-in of an allowed module. Raises ImportError when this interpreter has not imported the module."""
    found = _stand_ins.get(name)
    if found is None:
        found = _stand_ins[name] = _build(name)
    return found


def is_hidden(module_name: str, name: str) -> bool:
    """Tell whether the module has that name and its stand-in does not."""
    if module_name == "sys":
        return name not in ONLY_NAMES["sys"]
    return name in vars(sys.modules[module_name]) and name not in vars(stand_in(module_name))


def _build(name: str) -> Module:
    if name not in sys.modules:
        raise ImportError(name)
    members = vars(sys.modules[name])
    built = _ModuleType(name)
    vars(built)["__getattr__"] = _late_look(name)
    public = [key for key in _public_names(name, members) if key not in REFUSED_NAMES.get(name, ())]
    for key in public:
        value = members[key]
        inner = f"{name}.{key}"
        if isinstance(value, _ModuleType):
            if inner in _ALLOWED_MODULES:
                vars(built)[key] = stand_in(inner)
        else:
            vars(built)[key] = library.MEMBERS.get(inner, value)
    if name == "random":
        for key in SEEDED_ONLY.intersection(members):
            vars(built)[key] = guards.drawing(key, members[key])
        vars(built)["seed"] = guards.seeding(members["seed"])
    if name == "sys":
        vars(built)["setrecursionlimit"] = _set_recursion_limit
    if "__all__" in members:  # what an import of everything takes
        vars(built)["__all__"] = [key for key in members["__all__"] if key in vars(built)]
    return built


def _public_names(name: str, members: dict[str, object]) -> list[str]:
    if name in ONLY_NAMES:
        return [key for key in ONLY_NAMES[name] if key not in ("stdout", "stderr")]
    if name == "__future__":
        return [key for key in members if not key.startswith("__")]
    inner = [key for key in members if f"{name}.{key}" in _ALLOWED_MODULES]
    listed = members.get("__all__")
    if isinstance(listed, list | tuple):
        return [key for key in [*listed, *inner, *UNLISTED_NAMES.get(name, ())] if key in members]
    return [key for key in members if not key.startswith("_")]


def _late_look(module_name: str) -> Callable[[str], object]:
    """The module's own ``__getattr__``: asking for a name that only the real one has is noted.

    The streams of ``sys`` are those of the moment, since ``contextlib.redirect_stdout`` changes them.
    """

    def look(name: str) -> object:
        if module_name == "sys" and name in ("stdout", "stderr"):
            return getattr(sys, name)
        if name[:2] != "__" and name in vars(sys.modules[module_name]):
            guards.violate(f"{module_name}.{name[:80]}")
        raise AttributeError(f"module {module_name!r} has no attribute {name!r}")

    return look


own_frames = 0
"""How many frames the harness has, and adds in a second run: a limit that a program sets is for its own."""


def _set_recursion_limit(limit: int) -> None:
    sys.setrecursionlimit(min(limit, _MAX_RECURSION) + own_frames if limit > 0 else limit)


def restore_recursion(limit: int) -> None:
    """Give back what a program may have taken."""
    if sys.getrecursionlimit() != limit + own_frames:
        sys.setrecursionlimit(limit + own_frames)
