"""The builtins and modules of a gated program, without a path from them into the interpreter.

A zygote of gated programs closes, once, every attribute that leads from an object to a frame, to code, to a module's
namespace or to the list of all classes (``close_interpreter``). So strings that are used as attribute names need no
check. A recorded violation counts even if the program catches the exception.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import sys

from . import allowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType as Module
    from typing import Any, NoReturn

PROGRAM_NAME = "program"
"""The ``__name__`` of a program, which is imported, not started: its main block does not run."""
ModuleType, FunctionType, ProxyType = type(sys), type(lambda: 0), type(vars(type))
_IMMUTABLE_TYPE = 1 << 8  # the flag of the interpreter's own classes
_flags = type.__dict__["__flags__"].__get__  # immune to metaclasses
_MAX_RECURSION = 10_000  # beyond it nested C calls would overflow the stack


class Forbidden(BaseException):
    """Raised at run time for what the static gate cannot see. The violation is recorded even if this is caught."""


_violations: list[str] = []


def violation() -> str:
    """Return the first violation since ``forget_violations``, or ""."""
    return _violations[0] if _violations else ""


def forget_violations() -> None:
    """Clear the violations. Called before each input."""
    _violations.clear()


def violate(reason: str) -> NoReturn:
    """Record a violation and raise ``Forbidden``."""
    _violations.append(reason)
    raise Forbidden(reason)


def refuser(name: str) -> Callable[..., NoReturn]:
    """Return a function that records a violation when it is called."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        violate(f"use of {name}")

    return refuse


class Caller:
    """Replaces ``sys`` and frames for library code that reads the module name of its caller."""

    modules: dict[str, object] = {}  # noqa: RUF012 (stays empty)
    f_globals = {"__name__": PROGRAM_NAME}  # noqa: RUF012

    @staticmethod
    def _getframe(depth: int = 0) -> Any:
        return Caller


# ---- attributes of the interpreter's own classes -------------------------------------------------


def _examples() -> list[object]:
    """Return an object of each class that has attributes which lead into the interpreter."""

    def generator() -> Any:
        yield

    async def coroutine() -> None:
        return None

    async def asynchronous() -> Any:
        yield

    waiting = coroutine()
    waiting.close()
    try:
        raise ValueError
    except ValueError as error:
        traceback = error.__traceback__
    cell = (lambda: waiting).__closure__[0]  # type: ignore[index]
    return [sys._getframe(), traceback, generator, generator(), waiting, asynchronous(), cell, len]


_namespace_of = vars(type)["__dict__"].__get__


def _all_classes() -> set[type]:
    subclasses_of = type.__subclasses__
    known, waiting = {type, object}, [*subclasses_of(object), *subclasses_of(type)]
    while waiting:
        kind = waiting.pop()
        if kind not in known:
            known.add(kind)
            waiting += subclasses_of(kind)
    return known


def _change(kind: type, members: Mapping[str, object]) -> None:
    """Replace attributes of one of the interpreter's own classes."""
    namespace: dict[str, object] = gc.get_referents(_namespace_of(kind))[0]
    namespace.update(members)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _seal(kinds: set[type]) -> None:
    """Make library classes immutable: otherwise a program could replace a hook and receive private subclasses."""
    flags_at = next(
        at for at in range(8, 512, 8) if all(_word(kind, at).value == _flags(kind) for kind in [type, int, *kinds])
    )
    for kind in kinds:
        _word(kind, flags_at).value |= _IMMUTABLE_TYPE


def _seal_functions() -> None:
    """Make the defaults of all existing functions read-only: changed defaults would change what a function does."""
    existing = {id(each): each for each in gc.get_objects() if type(each) is FunctionType}

    def sealed(found: Any) -> property:
        def read(function: object) -> object:
            held = found.__get__(function)
            return ProxyType(dict(held)) if type(held) is dict and id(function) in existing else held

        def write(function: object, *value: object) -> None:
            if id(function) in existing:
                raise TypeError("cannot change the defaults of a function of the library")
            (found.__set__ if value else found.__delete__)(function, *value)

        return property(read, write, write)

    names = ("__defaults__", "__kwdefaults__")
    _change(FunctionType, {name: sealed(vars(FunctionType)[name]) for name in names})


def _word(kind: type, at: int) -> ctypes.c_ulong:
    return ctypes.c_ulong.from_address(id(kind) + at)


def _write_only(name: str, found: Any) -> property:
    """Return a property that refuses reads, and passes writes on if ``found`` allows them."""
    setter = getattr(found, "__set__", None)
    return property(refuser(name), (lambda value, item: setter(value, item)) if setter else None)


def close_interpreter() -> None:
    """Close the attributes in ``allowed.CLOSED`` on the interpreter's own classes.

    ``library.patch_library`` must run first: it replaces the uses of these attributes in the standard library.
    """
    _seal_functions()
    mutable = {kind for kind in _all_classes() if not _flags(kind) & _IMMUTABLE_TYPE}
    self_of = vars(type(len))["__self__"].__get__

    def self_of_method(builtin: object) -> object:
        found: object = self_of(builtin)
        return refuser("__self__")() if isinstance(found, ModuleType) else found

    for kind in {type, BaseException, AttributeError, *map(type, _examples())}:
        _change(kind, {name: _write_only(name, vars(kind)[name]) for name in allowed.CLOSED & vars(kind).keys()})
    _change(type(len), {"__self__": property(self_of_method)})
    # A copy: comparing a mapping proxy passes the real namespace to the other object's ``__eq__``.
    _change(type, {"__dict__": property(lambda cls: type(_namespace_of(cls))(dict(_namespace_of(cls))))})
    _seal(mutable)
    sys._getframe = Caller._getframe
    for module in [module for module in sys.modules.values() if isinstance(module, ModuleType)]:
        vars(module).update(__loader__=None, __spec__=None)


# ---- hashes and texts that show addresses --------------------------------------------------------


def salted(address: object) -> int:
    """Return the number that is shown instead of an address. It differs between processes."""
    return 0x7F << 40 | hash(str(address)) & 0xFF_FFFF_FFF0


def salt_nans(*kinds: type) -> None:
    """Salt the hash of NaN, which is an address, of these classes."""

    def salted_hash(real: Any) -> Callable[[object], int]:
        def __hash__(value: object, /) -> int:
            found: int = real(value)
            return hash(str(found)) if real.__objclass__.__ne__(value, value) else found

        return __hash__

    _replace("__hash__", {*kinds}, salted_hash)


def _salted_text(real: Callable[[object], str]) -> Callable[[object], str]:
    def __repr__(value: object, /) -> str:
        head, *tails = real(value).split(" at 0x")
        return head + "".join([f" at {salted(tail):#x}{tail.lstrip('0123456789abcdef')}" for tail in tails])

    return __repr__


def salt_addresses() -> None:
    """Salt hashes and texts that show an address: for each object they differ at random between processes.

    Unsalted, the distances between large objects, classes and builtins would be equal in all processes. Existing dicts
    and sets that have such objects as keys are rebuilt with the new hashes.
    """
    method, wrapper, builtin = map(type, (refuser.__get__(0), refuser.__get__, len))
    reference = sys.modules["_weakref"].ref
    salt_nans(float, complex)
    _replace("__hash__", {object, method, wrapper, builtin}, lambda real: lambda value, /: hash(str(real(value))))
    _replace("__repr__", {object, memoryview, wrapper, reference, *map(type, _examples())}, _salted_text)
    for held in gc.get_objects():
        if type(held) in (dict, set) and not all([key in held for key in held]):
            kept = list(held.items() if type(held) is dict else held)
            held.clear()
            held.update(kept)


def _find_slot(name: str) -> tuple[int, int]:
    """Return the offset of a special method's slot in a class, and the C function that calls a Python method."""
    kinds = type("", (), {}), object, type("", (), {name: repr})
    words = [(at, *[_word(kind, at).value for kind in kinds]) for at in range(8, 512, 8)]
    return next((at, new) for at, plain, own, new in words if plain == own != new)


_SLOTS = {name: _find_slot(name) for name in ("__hash__", "__repr__")}


def _replace(name: str, kinds: set[type], changed: Callable[[Any], object]) -> None:
    """Replace a special method in the classes that define it, and the slot in all classes that inherit it."""
    slot, in_python = _SLOTS[name]
    defining = [kind for kind in kinds if name in vars(kind)]
    in_c = {_word(kind, slot).value for kind in defining}
    for kind in defining:
        _change(kind, {name: changed(vars(kind)[name])})
    for kind in _all_classes():
        if _word(kind, slot).value in in_c:
            _word(kind, slot).value = in_python


# ---- builtins and imports ------------------------------------------------------------------------


def _vars(*values: object) -> object:
    if not values:  # a builtin may call this: the locals would be those of the library or the harness
        violate("use of locals")
    return vars(*values)


_modules: dict[str, Module] = {}


def _import(
    name: str,
    globals_: Mapping[str, object] | None = None,
    locals_: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Module:
    if level == 0 and name in _modules:
        return _modules[name if fromlist else name.split(".")[0]]
    if level == 0 and name in allowed.HELPERS and name in sys.modules:
        return ModuleType(name)  # the interpreter's C code then takes the real module from ``sys.modules``
    violate(f"import of {name[:80]}")


def make_modules(stream: object) -> None:
    """Make, once in a zygote, the modules that a program can import: only the public names of each pure module.

    ``stream`` replaces the standard streams of the program."""
    for name in allowed.PURE:
        if name not in sys.modules:
            continue
        members = vars(sys.modules[name])
        made = _modules[name] = ModuleType(name)
        public = allowed.ONLY_NAMES.get(name) or members.get("__all__") or [key for key in members if key[:2] != "__"]
        for key in frozenset(public).intersection(members) - allowed.REFUSED_NAMES.get(name, frozenset()):
            if not isinstance(members[key], ModuleType) and (key[0] != "_" or "__all__" in members):
                vars(made)[key] = members[key]
        if "__all__" in members:  # the names of ``from module import *``
            vars(made)["__all__"] = [key for key in members["__all__"] if key in vars(made)]
        vars(made)["__getattr__"] = _module_getattr(name)
        if "." in name:
            parent, _, child = name.rpartition(".")
            vars(_modules[parent])[child] = made
    if "sys" in _modules:
        vars(_modules["sys"]).update(setrecursionlimit=_set_recursion_limit, stdout=stream, stderr=stream)


def _module_getattr(module_name: str) -> object:
    """Return a module's ``__getattr__``. Reading a name that only the real module has is a violation."""

    def get(name: str) -> object:
        if name[:2] != "__" and name in vars(sys.modules[module_name]):
            violate(f"{module_name}.{name[:80]}")
        raise AttributeError(f"module {module_name!r} has no attribute {name!r}")

    return get


harness_frames = 0
"""Frames of the harness, extra ones of an odd run included. They are added to a recursion limit that a program sets."""


def _set_recursion_limit(limit: int) -> None:
    if type(limit) is not int:
        raise TypeError("an integer is required")
    sys.setrecursionlimit(min(limit, _MAX_RECURSION) + harness_frames if limit > 0 else limit)


class MissingFinder:
    """The last finder for modules and codecs. It refuses those that were not imported before, so that no program can
    base its result on a missing module."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        violate(f"import of {name[:80]}")


PROGRAM_BUILTINS: dict[str, object] = {
    **{name: found for name, found in vars(builtins).items() if name not in ("__loader__", "__spec__")},
    **{name: refuser(name) for name in allowed.REFUSED_BUILTINS},
    "vars": type(  # like a builtin it has no state and does not bind to an instance
        "builtin_function_or_method", (),
        {"__slots__": (), "__module__": "builtins", "__name__": "vars", "__call__": staticmethod(_vars),
         "__class__": property(lambda _: type(len)), "__repr__": lambda _: "<built-in function vars>"},
    )(),
    "__import__": _import,
}  # fmt: skip
"""The builtins of a gated program: one dict for all inputs, since a copy would touch the page of every object in it."""
