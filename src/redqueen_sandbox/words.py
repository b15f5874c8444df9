"""What a program's words show: the modules it needs, whether it needs a syntax tree, whether a hash seed can matter.

Most programs name nothing that the gate looks at. A tree is dear in a child, where each kind of node and each name
touches a page of memory that the child then has to copy. So the judge looks at the words first, in linear time. Too
many trees, modules or hash seeds are safe, too few are not.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from redqueen_sandbox.inside.allowed import (
    GUARDED,
    HELPERS,
    OPEN,
    PARSER_HELPERS,
    PURE,
    QUIET_MODULES,
    REFUSED,
    REFUSED_BUILTINS,
    TAKE_A_NAME,
)

GATED_KINDS: dict[str, tuple[str, ...]] = {"plain": PARSER_HELPERS, "pure": (*PURE, *HELPERS)}
"""The modules of the kinds of zygote that run gated programs: a fork costs by what its zygote holds."""

_WORD = re.compile(r"\w+")
_LOOKED_AT = frozenset({*REFUSED, *REFUSED_BUILTINS, *GUARDED, *TAKE_A_NAME, "case", "import"})
_CODEC_WORDS = frozenset({"encode", "decode", "bytes", "bytearray"})
"""With these a program may ask for a codec that the interpreter would have to import."""


def modules_of(kind: str) -> tuple[str, ...]:
    """Return what a zygote of this kind imports: ``plain``, ``pure``, ``open`` or the name of one installed module."""
    return GATED_KINDS.get(kind) or (OPEN if kind == "open" else (kind,))


def paths_of(kind: str) -> list[str]:
    """Return where a zygote of this kind looks for its modules beside the standard library."""
    return [] if kind in (*GATED_KINDS, "open") else [str(Path(path).resolve()) for path in sys.path if path]


@functools.lru_cache(maxsize=256)
def words_of(code: str) -> frozenset[str]:
    """Return every word of a text, in whatever place."""
    return frozenset(_WORD.findall(code))


def kind_for(code: str) -> str:
    """Return the smallest kind that has every module and codec the text could name."""
    return "plain" if code.isascii() and words_of(code).isdisjoint(("import", *_CODEC_WORDS)) else "pure"


def needs_tree(code: str, again: bool) -> bool:
    """Tell whether a child has to build a gated program's tree before it compiles it.

    ``again``: the gate has seen it already. Then only guarded attributes need a tree, which passes them to a guard.
    """
    if not code.isascii() or any(name in code for name in GUARDED):
        return True
    return not again and (_has_special(code) or not _LOOKED_AT.isdisjoint(words_of(code)))


def _has_special(code: str) -> bool:
    return any(word.startswith("__") for word in words_of(code))


# ---- can a hash seed matter? ---------------------------------------------------------------------

_LOUD = _LOOKED_AT - {"import"} | {
    "args", "ascii", "dir", "frozenset", "globals", "hash", "locals", "object", "set", "super", "type", "vars",
}  # fmt: skip
"""Words beside which hashes, the order of sets or addresses may show. An exception's ``args`` hold texts of objects."""
_TEXT_WORDS = frozenset({"repr", "str"})
_F_STRING = re.compile(r"[fF][rR]?['\"]")
# An opening brace that may begin a set: none that is closed at once, and none before a string or a word and a colon.
# (A word and a colon begin a set only after ``lambda`` and in ``{x := 1}``.)
_MAY_BE_SET = re.compile(
    r"""\{(?!\s*\}|\s*(?:'[^'\\\n]*'|"[^"\\\n]*"|(?!lambda\b)[\w.]+)\s*:(?!=))""",
)
_SET_OPERATOR = re.compile(r"[-|&^]")
_LOUD_NODES = (
    ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Lambda, ast.Set, ast.SetComp, ast.Yield,
    ast.YieldFrom,
)  # fmt: skip
_ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "memoryview", "reversed", "zip"})
_CONSUMERS = frozenset({"all", "any", "dict", "list", "max", "min", "sorted", "sum", "tuple"})


@functools.lru_cache(maxsize=256)
def is_quiet(code: str, inputs: tuple[str, ...]) -> bool:
    """Tell whether the program can see neither a hash, nor the order of a set, nor an address.

    It has none of the words and signs that lead there, and texts (``str``, ``%``, f-strings) only where no object that
    has an address is a value. With several inputs it imports nothing, since a module could keep what one run left.
    """
    words = words_of(code)
    if not code.isascii() or _has_special(code) or not _LOUD.isdisjoint(words):
        return False
    if "import" in words and len(inputs) > 1:
        return False
    makes_f_strings = _F_STRING.search(code) is not None
    if any(_MAY_BE_SET.search(text) for text in inputs) or (not makes_f_strings and _MAY_BE_SET.search(code)):
        return False
    if not {"set", "frozenset"}.isdisjoint(words.union(*map(words_of, inputs))):
        return False
    if not {"keys", "items"}.isdisjoint(words) and _SET_OPERATOR.search(code):
        return False
    makes_text = not _TEXT_WORDS.isdisjoint(words) or "%" in code or makes_f_strings
    if not makes_text and "import" not in words:
        return True
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # it will not run
    return not _holds_objects(nodes) if makes_text else _imports_quietly(nodes)


def _imports_quietly(nodes: Iterable[ast.AST]) -> bool:
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return names <= QUIET_MODULES


def _holds_objects(nodes: list[ast.AST]) -> bool:
    """Whether a function, method, iterator or generator may be a value, rather than be called or gone through."""
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    consumers = _CONSUMERS - functions - bound - {node.arg for node in nodes if isinstance(node, ast.arg)}
    used: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            used.add(id(node.func))
            name = getattr(node.func, "id", None)
            if name in consumers or getattr(node.func, "attr", None) == "join":
                used.update(map(id, node.args))
        elif isinstance(node, ast.For | ast.comprehension):
            used.add(id(node.iter))
    for node in nodes:
        if isinstance(node, _LOUD_NODES) or (isinstance(node, ast.FunctionDef) and node.decorator_list):
            return True
        if isinstance(node, ast.Attribute | ast.GeneratorExp) and id(node) not in used:
            return True
        if isinstance(node, ast.Name) and node.id in functions | _ITERATORS and id(node) not in used:
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _ITERATORS and id(node) not in used:
            return True
    return False
