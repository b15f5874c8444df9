"""What a task's program may import and name: the tables of the static gate and of its guards at run time."""

from __future__ import annotations

COMMON = (
    "__future__", "abc", "bisect", "collections", "collections.abc", "copy", "enum", "functools", "heapq", "itertools",
    "math", "operator", "random", "re", "string", "sys", "typing",
)  # fmt: skip
"""What programs import most."""

FURTHER = (
    "array", "ast", "base64", "binascii", "calendar", "cmath", "colorsys", "contextlib", "dataclasses", "datetime",
    "decimal", "difflib", "fractions", "graphlib", "hashlib", "io", "json", "json.decoder", "keyword", "numbers",
    "pprint", "statistics", "struct", "textwrap", "types", "unicodedata", "zlib",
)  # fmt: skip
"""What else they may import."""

MODULES = COMMON + FURTHER
"""Modules a program may import. A zygote imports them before it loses the right to open files."""

HELPERS = ("_strptime", "copyreg", "stringprep", "time", "unicodedata", "warnings")
"""Modules that the interpreter's own C code imports in a program's name (``strptime``, ``strftime``, ``\\N{}``): a
program may not name them, but such an import must find them."""

PARSER_HELPERS = ("unicodedata",)
"""Modules that the parser itself imports, late: for the normal form of a name beyond ASCII."""

CODECS = (
    "ascii", "latin-1", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
    "cp437", "cp1252", "iso8859-15", "unicode-escape", "raw-unicode-escape", "hex", "base64", "rot13", "zlib", "quopri",
    "punycode", "idna", "utf-7", "koi8-r", "cp1251", "cp1250", "mac-roman", "shift-jis", "gbk", "big5", "euc-kr",
)  # fmt: skip

ONLY_NAMES = {
    "ast": frozenset({"literal_eval"}),
    "io": frozenset({"StringIO", "BytesIO"}),
    # Equal on every machine we support (64 bits, little-endian, IEEE floats), or output that goes nowhere. Not the
    # version, the platform, sizes of objects or the constants of hashing: those are the machine's.
    "sys": frozenset(
        {"maxsize", "maxunicode", "byteorder", "float_info", "int_info", "intern", "setrecursionlimit", "stdout",
         "stderr"}
    ),
}  # fmt: skip
"""Modules of which only these names are pure."""

UNLISTED_NAMES = {
    "calendar": frozenset({"January", "February", "mdays", "EPOCH"}),
    "re": frozenset({"RegexFlag"}),
}
"""Public names that a module's ``__all__`` leaves out."""

REFUSED_NAMES = {
    "enum": frozenset({"global_enum", "pickle_by_enum_name", "pickle_by_global_name"}),
    "hashlib": frozenset({"algorithms_available", "file_digest"}),
    "random": frozenset({"SystemRandom"}),
    "types": frozenset({"CodeType", "FunctionType", "LambdaType", "FrameType", "TracebackType"}),
    "typing": frozenset({"get_type_hints"}),
}
"""Names that are not pure in a module that otherwise is: they write to modules, hand out the unguarded ``getattr``,
read files or the machine, take entropy, build code, or evaluate text."""

REFUSED_BUILTINS = frozenset(
    {
        "__import__", "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "help", "id", "input",
        "license", "open", "quit",
    }
)  # fmt: skip
"""Builtins that read the outside, run text, or tell where an object lies in memory."""

_REFUSED_BY_REASON = {
    "leads into the interpreter": (
        "__builtins__ __closure__ __code__ __forward_code__ __forward_value__ __func__ __getattribute__ "
        "__getattr__ __getstate__ __globals__ __import__ __loader__ __reduce__ __reduce_ex__ __self__ "
        "__slotnames__ __spec__ __subclasses__ __subclasshook__ __traceback__ __wrapped__ ag_await ag_code "
        "ag_frame cell_contents co_code co_consts co_names cr_await cr_code cr_frame cr_origin f_back "
        "f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace gi_code gi_frame gi_yieldfrom tb_frame "
        "tb_lasti tb_lineno tb_next with_traceback"
    ),
    "reaches into other modules": "_convert_ _evaluate _old_convert_ _stream",
    "may wait": "_acquire_restore _at_fork_reinit _is_owned _release_save",
    "tells what lies in memory": "_abc_caches_clear _abc_registry_clear _dump_registry __sizeof__",
}
REFUSED = {name: reason for reason, names in _REFUSED_BY_REASON.items() for name in names.split()}
"""Names that are refused wherever a name can stand, and why. The one table of the gate and of the guards."""

DEFINABLE = frozenset(
    {"__getattr__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "__subclasshook__"}
)
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
    __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __set__ __set_name__ __setattr__ __setitem__
    __setstate__ __slots__ __str__ __sub__ __subclasscheck__ __suppress_context__ __truediv__ __trunc__ __xor__
"""
SPECIAL = frozenset(_SPECIAL_NAMES.split())
"""The special attributes a program may read without having bound them: any other may lead where we have not looked."""

PLAIN_DUNDER_NAMES = frozenset({"__name__", "__doc__", "__annotations__", "__class__", "__debug__", "__qualname__"})
"""Special names a program may read as variables without having bound them."""

CLOCK_ATTRIBUTES = frozenset({"now", "today", "utcnow"})
"""On a class of ``datetime`` they read the clock."""

GUARDED = frozenset({"format", "format_map", "__dict__", "__setattr__"}) | CLOCK_ATTRIBUTES
"""Attributes that are harmless on some values only: the value is looked at when the program runs."""

SEEDED_ONLY = frozenset(
    {
        "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits",
        "lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample",
        "shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate",
    }
)  # fmt: skip
"""Functions of ``random`` that draw from the shared generator: pure only after ``random.seed(value)``."""


TAKE_A_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr"})
"""Builtins to which an attribute's name is given as a string."""

TELLING = frozenset({"ascii", "format", "hash", "repr", "str"})
"""Builtins that may tell where an object lies in memory."""

ORDER_NAMES = frozenset({"set", "frozenset", "hash", "globals", "locals", "vars", "getattr", "literal_eval"})
"""Names through which the order of sets may be seen."""

ORDER_ATTRIBUTES = frozenset(
    {
        "intersection", "union", "difference", "symmetric_difference", "literal_eval", "attrgetter", "methodcaller",
        "__hash__", "__abstractmethods__", "__required_keys__", "__optional_keys__", "__and__", "__or__", "__sub__",
        "__xor__", "__rand__", "__ror__", "__rsub__", "__rxor__", "and_", "or_", "sub", "xor",
    }
)  # fmt: skip
"""The same for attributes."""

VIEWS = frozenset({"keys", "items"})
"""Methods of dicts from whose values set operators make sets."""


def refused_name(name: str) -> str:
    """Return why a name may stand nowhere, or ""."""
    return f"{name}, which {REFUSED[name]}" if name in REFUSED else ""


def is_special(name: str) -> bool:
    """Tell whether the name is one of those that the language reserves for itself."""
    return name[:2] == "__" and name[-2:] == "__" and len(name) > 4


def refused_attribute(name: str) -> str:
    """Return why the attribute is refused on every value, or ""."""
    if is_special(name) and name not in SPECIAL:
        return refused_name(name) or f"{name[:80]}, which is no attribute that programs need"
    return refused_name(name)
