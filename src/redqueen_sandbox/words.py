"""What a program's words show: the modules it needs, whether it needs a syntax tree, whether a hash seed can matter.

Most programs name nothing that the gate looks at. A tree is dear in a child, where each kind of node and each name
touches a page of memory that the child then has to copy. So the judge looks at the words first, in linear time. Too
many trees, modules or hash seeds are safe, too few are not.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
from pathlib import Path

from redqueen_sandbox.inside import allowed
from redqueen_sandbox.inside.allowed import HELPERS, OPEN, PARSER_HELPERS, PURE, QUIET_MODULES

GATED_KINDS: dict[str, tuple[str, ...]] = {"plain": PARSER_HELPERS, "pure": (*PURE, *HELPERS)}
"""The modules of the kinds of zygote that run gated programs: a fork costs by what its zygote holds."""

_WORD = re.compile(r"\w+")
_LOOKED_AT = frozenset({*allowed.REFUSED, *allowed.REFUSED_BUILTINS, "import"})
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
    """Tell whether a child has to look at a gated program's tree; ``again``: the gate has seen it already."""
    return not again and (not code.isascii() or _has_special(code) or not _LOOKED_AT.isdisjoint(words_of(code)))


def _has_special(code: str) -> bool:
    return any(word.startswith("__") for word in words_of(code))


# ---- can a hash seed matter? -------------------------------------------------------------------

_LOUD = (_LOOKED_AT - {"import"}) | {"args", "ascii", "dir", "frozenset", "hash", "object", "set", "super", "vars"}
"""Words beside which hashes, the order of sets or addresses may show. An exception's ``args`` hold texts of objects."""
_MAYBE_LOUD = frozenset({"import", "repr", "str", "type"})
_VIEWS = frozenset({"keys", "items"})
_F_STRING = re.compile(r"[fF][rR]?['\"]")
# An opening brace that may begin a set: none that is closed at once, and none before a string or a word and a colon.
# (A word and a colon begin a set only after ``lambda`` and in ``{x := 1}``.)
_MAY_BE_SET = re.compile(r"""\{(?!\s*\}|\s*(?:'[^'\\\n]*'|"[^"\\\n]*"|(?!lambda\b)[\w.]+)\s*:(?!=))""")
_SET_OPERATOR = re.compile(r"[-|&^]")
_SET_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)
_OBJECTS = (ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Lambda, ast.Yield, ast.YieldFrom)
_CONSUMERS = frozenset({"all", "any", "dict", "filter", "len", "list", "map", "max", "min", "sorted", "sum", "tuple"})
"""Builtins that go through their arguments or call them. An iterator is a value itself unless it is consumed too."""
_PLAIN = frozenset(
    {"abs", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "divmod", "float", "hex", "int",
     "isinstance", "issubclass", "next", "oct", "ord", "pow", "print", "range", "repr", "round", "slice", "str", "type"}
)  # fmt: skip
_OPAQUE = {name for name in dir(builtins) if name[0].islower()} - _PLAIN - _CONSUMERS | {"filter", "map"}
"""Builtins that may give a value whose text shows an address."""


@functools.lru_cache(maxsize=256)
def is_quiet(code: str, inputs: tuple[str, ...]) -> bool:
    """Tell whether the program can see neither a hash, nor the order of a set, nor an address.

    It has none of the words that lead there, makes sets only to ask what is in them, and makes texts (``str``, ``%``,
    f-strings) only where no object that has an address is a value. With several inputs it imports nothing, since a
    module could keep what one run left.
    """
    words = words_of(code)
    if len(code) > 4_096 or not code.isascii() or _has_special(code) or not _LOUD.isdisjoint(words):
        return False
    if ("import" in words and len(inputs) > 1) or any(
        _MAY_BE_SET.search(text) or not {"set", "frozenset"}.isdisjoint(words_of(text)) for text in inputs
    ):
        return False
    has_views = not _VIEWS.isdisjoint(words) and _SET_OPERATOR.search(code) is not None
    has_texts = not _MAYBE_LOUD.isdisjoint(words) or "%" in code or _F_STRING.search(code) is not None
    if not (has_views or has_texts or _MAY_BE_SET.search(code)):
        return True
    try:
        return _Tree(ast.parse(code)).is_quiet()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # it will not run


class _Tree:
    """A program's nodes, and which of them are called, gone through or compared at once, and so never a value."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.functions = {node.name for node in self.nodes if isinstance(node, ast.FunctionDef)}
        bound = {node.id for node in self.nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        bound |= {node.arg for node in self.nodes if isinstance(node, ast.arg)} | self.functions
        self.consumers = _CONSUMERS - bound
        self.can_test_types = "isinstance" not in bound
        self.used: set[int] = set()
        self.compared: set[int] = set()
        self.searched: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call):
                self.note_call(node)
            elif isinstance(node, ast.For | ast.comprehension):
                self.used.add(id(node.iter))
            elif isinstance(node, ast.Compare):
                self.compared.update(map(id, [node.left, *node.comparators]))
                if all(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
                    self.searched.update(map(id, node.comparators))

    def note_call(self, node: ast.Call) -> None:
        self.used.add(id(node.func))
        name = getattr(node.func, "id", None)
        if name in self.consumers or getattr(node.func, "attr", None) in ("join", "sort"):
            self.used.update([id(pair.value) for pair in node.keywords if pair.arg == "key"])
            if len(node.args) == 1 or name in ("filter", "map"):  # several, or a default, may be given back as they are
                self.used.update(map(id, node.args))
        if name == "isinstance" and self.can_test_types:
            for inner in ast.walk(node.args[-1]) if node.args else ():
                self.compared.add(id(inner))

    def is_quiet(self) -> bool:
        has_operators = any(
            isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, _SET_OPERATORS) for node in self.nodes
        )
        for node in self.nodes:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if not QUIET_MODULES.issuperset(names):
                return False
            if isinstance(node, ast.Set | ast.SetComp) and id(node) not in self.searched:
                return False
            if has_operators and self.is_view(node) and id(node) not in self.used:
                return False
            if isinstance(node, ast.Name) and node.id == "type" and id(node) not in self.used:
                return False
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", None) == "type"
            if is_call and (id(node) not in self.compared or len(node.args) != 1):  # type: ignore[attr-defined]
                return False
        return not any(map(self.makes_text, self.nodes)) or not any(map(self.is_object, self.nodes))

    def is_view(self, node: ast.AST) -> bool:
        """Whether it is a view of a dict, or a method that gives one and is not called."""
        method = node.func if isinstance(node, ast.Call) else node
        if not isinstance(method, ast.Attribute) or method.attr not in _VIEWS:
            return False
        return node is not method or id(node) not in self.used

    def makes_text(self, node: ast.AST) -> bool:
        """Whether it may make a text of any value; a remainder by a number does not."""
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Mod):
            right = node.right if isinstance(node, ast.BinOp) else node.value
            return not (isinstance(right, ast.Constant) and isinstance(right.value, int | float))
        if isinstance(node, ast.Name):
            return node.id in ("repr", "str") and id(node) not in self.compared
        return isinstance(node, ast.JoinedStr)

    def is_object(self, node: ast.AST) -> bool:
        """Whether a function, method, iterator or generator may be a value here, with an address in its text."""
        if isinstance(node, ast.FunctionDef):
            return bool(node.decorator_list)
        if isinstance(node, _OBJECTS):
            return id(node) not in self.used
        if isinstance(node, ast.Attribute | ast.GeneratorExp):
            return id(node) not in self.used
        if isinstance(node, ast.Name):
            return node.id in self.functions | _OPAQUE and id(node) not in self.used
        is_iterator = isinstance(node, ast.Call) and getattr(node.func, "id", None) in _OPAQUE
        return is_iterator and id(node) not in self.used
