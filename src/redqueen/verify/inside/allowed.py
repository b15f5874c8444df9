"""What a task's program may import and name: the tables of the static gate."""

from __future__ import annotations

COMMON = (
    "__future__", "abc", "bisect", "collections", "collections.abc", "copy", "enum", "functools", "heapq", "itertools",
    "math", "operator", "random", "re", "string", "typing",
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

CODECS = (
    "ascii", "latin-1", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
    "cp437", "cp1252", "iso8859-15", "unicode-escape", "raw-unicode-escape", "hex", "base64", "rot13", "zlib", "quopri",
    "punycode", "idna", "utf-7", "koi8-r", "cp1251", "cp1250", "mac-roman", "shift-jis", "gbk", "big5", "euc-kr",
)  # fmt: skip

ONLY_NAMES = {
    "ast": frozenset({"literal_eval"}),
    "io": frozenset({"StringIO", "BytesIO"}),
}
"""Modules of which only these names are pure."""

REFUSED_NAMES = {
    "random": frozenset({"SystemRandom"}),
    "types": frozenset({"CodeType", "FunctionType", "FrameType", "TracebackType"}),
    "hashlib": frozenset({"file_digest"}),
}
"""Names that are not pure in a module that otherwise is."""

REFUSED_BUILTINS = frozenset(
    {
        "__import__", "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "help", "id", "input",
        "license", "open", "quit",
    }
)  # fmt: skip
"""Builtins that read the outside, run text, or tell where an object lies in memory."""

PLAIN_DUNDER_NAMES = frozenset({"__name__", "__doc__", "__annotations__", "__class__", "__debug__", "__qualname__"})
"""Special names a program may read without having bound them."""

REFUSED_ATTRIBUTES = frozenset(
    {
        "__base__", "__bases__", "__builtins__", "__closure__", "__code__", "__func__", "__getattribute__",
        "__globals__", "__import__", "__loader__", "__mro__", "__reduce__", "__reduce_ex__", "__self__", "__spec__",
        "__subclasses__", "__subclasshook__", "__traceback__", "__wrapped__", "ag_code", "ag_frame", "cr_code",
        "cr_frame", "cr_origin", "f_back", "f_builtins", "f_code", "f_globals", "f_lasti", "f_locals", "gi_code",
        "gi_frame", "gi_yieldfrom", "mro", "tb_frame", "tb_next", "with_traceback",
    }
)  # fmt: skip
"""Attributes that lead from a value into the interpreter."""

CLOCK_ATTRIBUTES = frozenset({"now", "today", "utcnow"})
"""Refused in a program that imports ``datetime``."""

SEEDED_ONLY = frozenset(
    {
        "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits",
        "lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample",
        "shuffle", "triangular", "uniform", "vonmisesvariate", "weibullvariate",
    }
)  # fmt: skip
"""Functions of ``random`` that draw from the shared generator: pure only after ``random.seed(value)``."""
