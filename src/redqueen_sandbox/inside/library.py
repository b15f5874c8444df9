"""Patches of the standard library: where it evaluates a program's text, uses closed attributes, or reads a clock.

They are applied once, in zygotes that run only gated programs.
"""

from __future__ import annotations

import _abc
import abc
import sys
import time

from . import gate, syntax
from .guards import PROGRAM_NAME, Caller, ModuleType, refuser, salt_nans, salted, violate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_mro_of = type.__dict__["__mro__"].__get__  # immune to metaclasses


def _screened(text: str, file_name: str, mode: str = "exec") -> Any:
    """Compile a text that a program may have influenced, after the gate has screened it like a program."""
    tree = syntax.parse(text, file_name, mode)
    if refusal := gate.screen(syntax.group(tree)):
        violate(refusal)
    return syntax.to_code(tree, file_name, mode)


def _exec_as_program(text: str, _: object, locals_: dict[str, object]) -> None:
    """``exec`` for ``dataclasses``, which generates code with the names of fields: run it as the program's own code."""
    exec(_screened(text, "<fields>"), vars(sys.modules[PROGRAM_NAME]), locals_)


def _kept_as_text(text: str, file_name: str, mode: str) -> str:
    """``compile`` for ``typing``, which stores the result where a program can read it: check the text, return it."""
    syntax.to_code(text, file_name, mode)
    return text


def _eval_as_program(text: str, *_: object) -> object:
    """``eval`` for ``typing``, which evaluates annotations: names are those of the program."""
    return eval(_screened(text, "<annotation>", "eval"), vars(sys.modules[PROGRAM_NAME]))


class _Function:
    """The attributes of a function that ``inspect`` reads. Its ``__code__`` is closed to all other code."""

    _code_of = vars(type(_exec_as_program))["__code__"].__get__

    def __init__(self, function: Any) -> None:
        self.__code__ = type(self)._code_of(function)
        self.__name__, self.__annotations__ = function.__name__, function.__annotations__
        self.__defaults__, self.__kwdefaults__ = function.__defaults__, function.__kwdefaults__

    def __call__(self) -> None:
        return None


_PATCHES: dict[str, dict[str, object]] = {
    **{name: {"id": lambda value: salted(id(value))} for name in ("copy", "weakref")},
    "functools": {"RLock": lambda: vars(sys.modules["contextlib"])["nullcontext"]()},  # its text shows an address
    "dataclasses": {"exec": _exec_as_program},
    "inspect": {"eval": refuser("eval")},  # it evaluates defaults in the signature that a docstring states
    "typing": {
        "compile": _kept_as_text, "eval": _eval_as_program, "sys": Caller,
        "getattr": lambda value, name, *default: {} if name == "__globals__" else getattr(value, name, *default),
        "overload": lambda function: vars(sys.modules["typing"])["_overload_dummy"],
    },
}  # fmt: skip
"""By module: the globals to replace, with which it evaluates or looks up what its caller chose."""


class _Subclasses:
    """Implements ``issubclass`` for abstract classes in place of ``_abc``, which reads the closed ``__subclasses__`` in
    code that a program can call."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[bool, type, type]] = {}
        self.subclasses_of = type.__subclasses__

    def check(self, cls: Any, subclass: Any) -> bool:
        if not isinstance(subclass, type):
            raise TypeError("issubclass() arg 1 must be a class")
        key = id(cls), id(subclass)
        if key not in self.known:
            self.known[key] = self.find(cls, subclass), cls, subclass  # references, so that the ids stay valid
        return self.known[key][0]

    def find(self, cls: Any, subclass: type) -> bool:
        found = cls.__subclasshook__(subclass)
        if found is not NotImplemented:
            return bool(found)
        if any(base is cls for base in _mro_of(subclass)):
            return True
        registered = [reference() for reference in _abc._get_dump(cls)[0]]
        return any(issubclass(subclass, kind) for kind in [*registered, *self.subclasses_of(cls)] if kind is not None)

    def install(self) -> None:
        check, known, register = self.check, self.known, abc.ABCMeta.register

        def has_instance(cls: Any, instance: object) -> bool:
            return any(cls.__subclasscheck__(kind) for kind in dict.fromkeys((instance.__class__, type(instance))))

        def register_and_forget(cls: Any, subclass: Any) -> Any:
            registered = register(cls, subclass)
            known.clear()
            return registered

        methods = {"__subclasscheck__": lambda cls, subclass: check(cls, subclass), "__instancecheck__": has_instance}
        for name, method in {**methods, "register": register_and_forget}.items():
            setattr(abc.ABCMeta, name, method)
        for name in ("_abc_caches_clear", "_abc_registry_clear", "_dump_registry"):
            delattr(abc.ABCMeta, name)


_CLOCKLESS = ("_STRUCT_TM_ITEMS", "altzone", "daylight", "mktime", "struct_time", "timezone", "tzname", "tzset")


def _clockless_function(name: str) -> object:
    """Return a function of ``time`` that refuses to read the clock: its last argument must be given and not None."""
    function, num_needed = vars(time)[name], 2 if name == "strftime" else 1

    def convert(*given: object) -> object:
        if len(given) < num_needed or given[-1] is None:
            violate("use of the clock")
        return function(*given)

    return convert


def patch_library() -> None:
    """Patch the library's imported modules. ``datetime`` must be the implementation in Python."""
    _Subclasses().install()
    for name, changes in _PATCHES.items():
        if name in sys.modules:
            vars(sys.modules[name]).update(changes)
    if "decimal" in sys.modules:
        salt_nans(vars(sys.modules["decimal"])["Decimal"])
    if "inspect" in sys.modules:
        inspect = vars(sys.modules["inspect"])
        read = inspect["_signature_from_function"]
        inspect["_signature_from_function"] = lambda kind, function, **options: read(
            kind, _Function(function), **options
        )
    if "enum" in sys.modules:  # it can read the namespace of any module
        type.__delattr__(vars(sys.modules["enum"])["EnumType"], "_convert_")
    if "datetime" in sys.modules:
        clockless = ModuleType("time")
        vars(clockless).update({name: vars(time)[name] for name in _CLOCKLESS})
        vars(clockless).update({name: _clockless_function(name) for name in ("localtime", "gmtime", "strftime")})
        vars(clockless)["__getattr__"] = refuser("the clock")
        for name in {"datetime", "_pydatetime", "_strptime"}.intersection(sys.modules):
            for key in ("_time", "time"):
                if isinstance(vars(sys.modules[name]).get(key), ModuleType):
                    vars(sys.modules[name])[key] = clockless
    if "statistics" in sys.modules:  # it uses the shared random generator
        drawless = vars(sys.modules["statistics"])["random"] = ModuleType("random")
        vars(drawless)["__getattr__"] = refuser("random")
