"""The modules and names that a gated program may use: tables of the static gate and of the guards at run time."""

from __future__ import annotations

PURE = (
    "__future__", "abc", "base64", "bisect", "calendar", "cmath", "collections", "collections.abc", "colorsys",
    "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib",
    "heapq", "io", "itertools", "json", "keyword", "math", "numbers", "operator", "re", "statistics", "string",
    "struct", "sys", "textwrap", "types", "typing", "unicodedata",
)  # fmt: skip
"""Modules that a task's program may import: none uses randomness, reads a clock or shows an address."""

HELPERS = ("_strptime", "copyreg", "stringprep", "unicodedata", "warnings")
"""Modules that the interpreter's C code imports on behalf of a program (``strptime``, ``\\N{}``). A program may not
name them, but these imports must succeed."""

PARSER_HELPERS = ("unicodedata",)
"""Modules that the parser imports on demand, to normalize names that are not ASCII."""

OPEN = (
    *PURE, *HELPERS, "array", "ast", "binascii", "hashlib", "html", "json.decoder", "pprint", "queue",
    "random", "secrets", "time", "urllib.parse", "uuid", "weakref", "zlib",
)  # fmt: skip
"""Modules for benchmarks, user tests and ungated calls, in addition to those that the interpreter has imported."""

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
    # Values equal on all supported machines (64 bits, little-endian, IEEE floats), and streams that discard output.
    "sys": frozenset(
        {"maxsize", "maxunicode", "byteorder", "float_info", "int_info", "intern", "setrecursionlimit", "stderr",
         "stdout"}
    ),
    "types": frozenset({"MappingProxyType", "SimpleNamespace"}),
}  # fmt: skip
"""Modules in which only these names are pure."""

REFUSED_NAMES = {
    "abc": frozenset({"get_cache_token"}),
    "enum": frozenset({"global_enum"}),
    "typing": frozenset({"get_type_hints"}),
}
"""Impure names in modules that are otherwise pure: they depend on what other code did, write to modules, or read the
namespaces of modules."""

REFUSED_BUILTINS = frozenset(
    {
        "__import__", "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "globals", "help", "id",
        "input", "license", "locals", "open", "quit",
    }
)  # fmt: skip
"""Builtins that access the outside world, run text, or show the address of an object."""

_INTERPRETER = """
    __builtins__ __closure__ __code__ __globals__ __import__ __loader__ __spec__ __subclasses__ __traceback__
    ag_await ag_code ag_frame cell_contents co_code co_consts co_names cr_await cr_code cr_frame cr_origin
    f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace f_trace_lines f_trace_opcodes
    gi_code gi_frame gi_yieldfrom tb_frame tb_lasti tb_lineno tb_next
"""
REFUSED = {
    **dict.fromkeys(_INTERPRETER.split(), "leads into the interpreter"),
    **dict.fromkeys(("__sizeof__", "_dump_registry"), "tells what lies in memory"),
}
"""Names that are refused in every position, and why."""

CLOSED = frozenset({*_INTERPRETER.split(), "obj"})
"""Attributes of the interpreter's own classes that a gated program cannot read. ``obj`` is the attribute of an
``AttributeError``, whose value may be a module."""

PLAIN_DUNDER_NAMES = frozenset({"__name__", "__doc__", "__annotations__", "__class__", "__debug__", "__qualname__"})
"""Special names that a program may read as variables without binding them."""


def is_special(name: str) -> bool:
    """Return whether the language reserves the name (``__NAME__``)."""
    return name[:2] == "__" and name[-2:] == "__" and len(name) > 4
