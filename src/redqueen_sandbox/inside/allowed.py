"""What a task's program may import and name: the tables of the static gate and of its guards at run time."""

from __future__ import annotations

PURE = (
    "__future__", "abc", "base64", "bisect", "calendar", "cmath", "collections", "collections.abc", "colorsys",
    "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib",
    "heapq", "io", "itertools", "json", "keyword", "math", "numbers", "operator", "re", "statistics", "string",
    "struct", "sys", "textwrap", "types", "typing", "unicodedata",
)  # fmt: skip
"""Modules that a task's program may import: none draws at random, reads a clock or tells an address."""

QUIET_MODULES = frozenset({"bisect", "cmath", "heapq", "itertools", "math"})
"""Modules through which no hash and no address shows that the program does not ask for."""

HELPERS = ("_strptime", "copyreg", "stringprep", "unicodedata", "warnings")
"""Modules that the interpreter's own C code imports in a program's name (``strptime``, ``\\N{}``): a program may not
name them, but such an import must find them."""

PARSER_HELPERS = ("unicodedata",)
"""Modules that the parser itself imports, late: for the normal form of a name beyond ASCII."""

OPEN = (
    *PURE, *HELPERS, "array", "ast", "binascii", "hashlib", "html", "json.decoder", "pprint", "queue",
    "random", "secrets", "time", "urllib.parse", "uuid", "weakref", "zlib",
)  # fmt: skip
"""What benchmarks, user tests and calls without the gate find beside what the interpreter itself has imported."""

CODECS = (
    "ascii", "latin-1", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
    "cp437", "cp1252", "iso8859-15", "unicode-escape", "raw-unicode-escape", "hex", "base64", "rot13", "zlib", "quopri",
    "punycode", "idna", "utf-7", "koi8-r", "cp1251", "cp1250", "mac-roman", "shift-jis", "gbk", "big5", "euc-kr",
    "charmap", "cp850",
)  # fmt: skip

ONLY_NAMES = {
    "contextlib": frozenset(
        {"AbstractContextManager", "ContextDecorator", "ExitStack", "closing", "contextmanager", "nullcontext",
         "suppress"}
    ),
    "io": frozenset({"BytesIO", "StringIO"}),
    # Equal on every machine we support (64 bits, little-endian, IEEE floats), or output that goes nowhere.
    "sys": frozenset(
        {"maxsize", "maxunicode", "byteorder", "float_info", "int_info", "intern", "setrecursionlimit", "stderr",
         "stdout"}
    ),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
}  # fmt: skip
"""Modules of which only these names are pure."""

REFUSED_NAMES = {
    "collections": frozenset({"UserString"}),
    "enum": frozenset({"global_enum", "pickle_by_enum_name", "pickle_by_global_name"}),
    "typing": frozenset({"get_type_hints"}),
}
"""Names that are not pure in a module that otherwise is: they format unguarded texts, write to modules, hand out the
unguarded ``getattr`` or evaluate text."""

REFUSED_BUILTINS = frozenset(
    {
        "__import__", "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "globals", "help", "id",
        "input", "license", "locals", "open", "quit",
    }
)  # fmt: skip
"""Builtins that read the outside, run text, or tell where an object lies in memory."""

_REFUSED_BY_REASON = {
    "leads into the interpreter": (
        "__builtins__ __closure__ __code__ __forward_code__ __forward_value__ __func__ __getattribute__ "
        "__getattr__ __getstate__ __globals__ __import__ __loader__ __reduce__ __reduce_ex__ __self__ __setattr__ "
        "__slotnames__ __spec__ __subclasses__ __subclasshook__ __traceback__ __wrapped__ ag_await ag_code "
        "ag_frame cell_contents co_code co_consts co_names cr_await cr_code cr_frame cr_origin f_back "
        "f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace gi_code gi_frame gi_yieldfrom tb_frame "
        "tb_lasti tb_lineno tb_next with_traceback"
    ),
    "reaches into other modules": "_convert_ _evaluate _old_convert_",
    "may wait": "_acquire_restore _at_fork_reinit _is_owned _release_save",
    "tells what lies in memory": "_abc_caches_clear _abc_registry_clear _dump_registry __sizeof__",
}
REFUSED = {name: reason for reason, names in _REFUSED_BY_REASON.items() for name in names.split()}
"""Names that are refused wherever a name can stand, and why. The one table of the gate and of the guards."""

DEFINABLE = frozenset(
    {"__getattr__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "__setattr__",
     "__subclasshook__"}
)  # fmt: skip
"""Refused names under which a class may define a method of its own."""

_SPECIAL_NAMES = """
    __abs__ __add__ __aenter__ __aexit__ __aiter__ __all__ __and__ __anext__ __annotations__ __args__ __await__
    __base__ __bases__ __bool__ __bytes__ __call__ __cause__ __ceil__ __class__ __class_getitem__ __complex__
    __contains__ __context__ __copy__ __dataclass_fields__ __dataclass_params__ __debug__ __deepcopy__
    __defaults__ __del__ __delattr__ __delete__ __delitem__ __dict__ __dir__ __divmod__ __doc__ __enter__ __eq__
    __exit__ __float__ __floor__ __floordiv__ __format__ __ge__ __get__ __getitem__ __getnewargs__
    __gt__ __hash__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __index__ __init__
    __init_subclass__ __instancecheck__ __int__ __isabstractmethod__ __invert__ __ior__ __ipow__ __irshift__
    __isub__ __iter__ __itruediv__ __ixor__ __kwdefaults__ __le__ __len__ __length_hint__ __lshift__ __lt__
    __matmul__ __members__ __missing__ __mod__ __module__ __mro__ __mul__ __name__ __ne__ __neg__ __new__ __next__
    __or__ __origin__ __parameters__ __pos__ __post_init__ __pow__ __prepare__ __qualname__ __radd__ __rand__
    __rdivmod__ __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__
    __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __set__ __set_name__ __setitem__
    __setstate__ __slots__ __str__ __sub__ __subclasscheck__ __suppress_context__ __truediv__ __trunc__ __xor__
"""
SPECIAL = frozenset(_SPECIAL_NAMES.split())
"""The special attributes a program may read without having bound them: any other may lead where we have not looked."""

PLAIN_DUNDER_NAMES = frozenset({"__name__", "__doc__", "__annotations__", "__class__", "__debug__", "__qualname__"})
"""Special names a program may read as variables without having bound them."""

HARMLESS_KEYS = frozenset({"__abstractmethods__", "__match_args__", "__orig_bases__", "__weakref__"})
"""Refused names that may stand in the namespace of a class that a program looks at: nothing is behind them."""

GUARDED = frozenset({"format", "format_map", "__dict__", "__hash__", "__repr__"})
"""Attributes that are harmless on some values only: the value is looked at when the program runs."""

TAKE_A_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr"})
"""Builtins to which an attribute's name is given as a string."""


def refused_attribute(name: str) -> str:
    """Return why an attribute of this name is refused on every value, or ""."""
    if name in REFUSED:
        return f"{name}, which {REFUSED[name]}"
    return f"{name[:80]}, which is no attribute that programs need" if is_special(name) and name not in SPECIAL else ""


def is_special(name: str) -> bool:
    """Tell whether the name is one of those that the language reserves for itself."""
    return name[:2] == "__" and name[-2:] == "__" and len(name) > 4
