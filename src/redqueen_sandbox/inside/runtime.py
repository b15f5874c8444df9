"""What a gated program finds at run time: its builtins, its imports, and the guard that the gate put into its tree."""

from __future__ import annotations

import builtins
import sys
import time

from . import equal, guards, library, modules, worlds
from .allowed import HELPERS, MODULES
from .guards import Forbidden, forget_violations, violation
from .rewrite import GUARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType as Module

__all__ = ["GUARD", "Forbidden", "clockless_time", "forget_violations", "prepare", "program_builtins", "violation"]

ModuleType = type(sys)

_ALLOWED_MODULES = frozenset(MODULES)


def _import(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Module:
    if level == 0 and name in _ALLOWED_MODULES:
        return modules.stand_in(name if fromlist else name.split(".")[0])
    if level == 0 and name in HELPERS and name in sys.modules:
        return ModuleType(name)  # the interpreter's own C code takes the module itself from ``sys.modules``
    guards.violate(f"import of {name[:80]}")


def _strftime(form: str, moment: object) -> str:
    """``time.strftime``, which without a moment would read the clock."""
    return time.strftime(form, moment)  # type: ignore[arg-type]


clockless_time = ModuleType("time")
"""What an import of ``time`` finds that the interpreter makes in a gated program's name (``strftime`` does)."""
vars(clockless_time).update(strftime=_strftime, struct_time=time.struct_time, mktime=time.mktime)

_BUILTINS = {
    **vars(builtins),
    **dict(guards.guarded_builtins()),
    "__import__": _import,
    "hash": worlds.hash_of,
    GUARD: guards.holder,
}


def program_builtins() -> dict[str, object]:
    """The builtins that a gated program gets: one dict for all inputs, since to copy it is to touch all it holds.

    From then on the library's look-ups are guarded.
    """
    guards.turn_on()
    return _BUILTINS


def prepare() -> None:
    """Make, once in a zygote, what every gated program would have to make for itself."""
    equal.remember_classes()
    library.guard_library()
    for name in MODULES:
        if name in sys.modules:
            modules.stand_in(name)
    if "statistics" in sys.modules:  # it draws from the shared generator for its callers
        vars(sys.modules["statistics"])["random"] = modules.stand_in("random")
