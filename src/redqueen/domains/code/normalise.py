"""One text for all programs that differ only in names, layout, annotations, dead code and constant expressions."""

from __future__ import annotations

import ast
import dis
import operator
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from redqueen.domains.code.measures import UNPARSABLE

MAX_CHARS = 100_000
"""A longer program is its own normal form (ours): the time is proportional to the length."""
MAX_CODE_BYTES = 32_768
"""Same for a program with more bytecode (ours): the compiler copies a finally clause for each exit of its try."""
MAX_PASSES = 4
"""Number of passes that remove unread names: each removal may make other names unread (ours)."""


def normalise(code: str) -> str:
    """Return the program's bytecode as text, with its own names renamed in order of appearance.

    CPython's compiler folds constants (within limits) and removes docstrings and unreachable code. Annotations, and
    plain values and functions that are never read, are removed before. Names that the program does not bind (builtins,
    modules, attributes) are kept. If ``f``, the entry function, is not the first name, a last line says which name it
    is. A program that does not parse is returned stripped.
    """
    if len(code) > MAX_CHARS:
        return code.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(code)
            _drop_unread(tree)
            renamer = _Renamer(_own_names(tree))
            tree = renamer.visit(tree)
            for node in ast.walk(tree):  # jumps depend on line numbers
                node.lineno = node.end_lineno = node.col_offset = node.end_col_offset = 1  # type: ignore[attr-defined]
            keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
            writer = _BytecodeWriter(set(renamer.renamed.values()), keywords)
            try:
                text = "\n".join(writer.lines(compile(tree, "", "exec", dont_inherit=True, optimize=2)))
            except (SyntaxError, ValueError):  # too long, or invalid after the removals
                text = ast.dump(tree)
        entry = writer.argument(renamer.renamed.get("f", "f"))
        return text if entry == "v0" else f"{text}\n# {entry} is asked"
    except UNPARSABLE:
        return code.strip()


def _drop_unread(tree: ast.Module) -> None:
    """Drop annotations, the ``__main__`` block, which never runs, and statements that only bind names never read.

    Imports are sorted and moved to the top; each gets an ``as`` name, which can be renamed.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = None  # type: ignore[assignment]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.alias) and node.name.isidentifier():
            node.asname = node.asname or node.name
    for _ in range(MAX_PASSES):
        read = _read(tree)
        for node in reversed(list(ast.walk(tree))):
            for field in () if isinstance(node, ast.ClassDef) else ("body", "orelse", "finalbody"):
                if isinstance(part := getattr(node, field, None), list):
                    setattr(node, field, list(_live(part, read)) or [ast.Pass()] * (field == "body"))
    tree.body.sort(key=_import_order)


def _read(tree: ast.Module) -> set[str]:
    """Return ``f`` and the names that are read by statements with an effect or by statements that bind such a name."""
    read, waiting, ready = {"f"}, defaultdict[str, list[ast.AST]](list), list[ast.AST]([tree])
    while ready:
        node = ready.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in read:
            read.add(node.id)
            ready += waiting[node.id]
        for child in ast.iter_child_nodes(node):
            bound = _only_binds(child) if isinstance(child, ast.stmt) and not isinstance(node, ast.ClassDef) else None
            if bound is None or bound & read:
                ready.append(child)
            else:
                for name in bound:
                    waiting[name].append(child)
    return read


def _live(body: list[ast.stmt], read: set[str]) -> Iterator[ast.stmt]:
    """Yield the statements that have an effect or bind a name in ``read``; a try without handlers yields its body."""
    for node in body:
        if isinstance(node, ast.Try) and not (node.handlers or node.orelse or node.finalbody):
            yield from node.body
        elif (bound := _only_binds(node)) is None or bound & read:
            yield node


def _only_binds(node: ast.stmt) -> set[str] | None:
    """Return the names that a statement binds, or None if it has another effect."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)) if name == same:
            return set()
        case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value) | ast.Expr(value=value):
            inside = [value] if isinstance(value, ast.Lambda) else list(ast.walk(value))
            targets = getattr(node, "targets", [getattr(node, "target", value)])
            bound = [part for target in targets if target is not value for part in ast.walk(target)]
            return {getattr(one, "id", "") for one in bound} if all(map(_is_pure, inside + bound)) else None
        case ast.AugAssign(target=ast.Name(id=name), value=ast.Constant(value=int() | float())):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).split(".")[0] for one in names}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not node.decorator_list:
            return {node.name}
        case ast.Delete(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return {getattr(target, "id", "") for target in targets}
        case ast.Try(body=[ast.Pass()], orelse=[], finalbody=[]):
            return set()
        case ast.For(ast.Name(id=name), body=[ast.Pass()], orelse=[]) if isinstance(node.iter, ast.Call | ast.Tuple):
            return {name} if all(map(_is_pure, ast.walk(node.iter))) else None
        case ast.If(orelse=[], body=[ast.Pass()]) if all(map(_is_pure, ast.walk(node.test))):
            return set()
    is_empty = isinstance(node, ast.For) and not node.orelse and ast.dump(node.iter) in _EMPTY
    is_main = isinstance(node, ast.If) and not node.orelse and ast.dump(node.test) in _MAIN
    return set() if isinstance(node, ast.Pass) or is_empty or is_main else None


def _is_pure(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PURE_BUILTINS
    return is_call or isinstance(node, _PURE_NODES)


_EMPTY, _MAIN = (
    {ast.dump(ast.parse(text, mode="eval").body) for text in texts}
    for texts in (("()", "[]", "{}", "''", "range(0)"), ("__name__ == '__main__'", "'__main__' == __name__"))
)
_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "chr", "dict", "divmod", "float", "frozenset", "hash", "int", "isinstance", "len",
    "list", "max", "min", "ord", "pow", "print", "range", "repr", "round", "set", "sorted", "str", "sum", "tuple",
    "type", "NewType", "TypeVar",
})  # fmt: skip
"""Builtins that are called only for their value, or to print. Programs that differ only in whether such a call fails
have the same normal form: a program that fails is not a task anyway (ours)."""
_PURE_NODES = (
    ast.Constant | ast.Name | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Lambda | ast.expr_context | ast.operator
    | ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.unaryop | ast.boolop | ast.cmpop | ast.IfExp
    | ast.Subscript | ast.Slice | ast.JoinedStr | ast.FormattedValue | ast.Attribute | ast.Starred | ast.ListComp
    | ast.SetComp | ast.DictComp | ast.comprehension | ast.keyword
)  # fmt: skip


def _import_order(node: ast.stmt) -> str:
    """Return a sort key: imports come first, in alphabetical order; other statements keep their order."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return "~"
    return str([getattr(node, "module", ""), *(one.name for one in node.names)])


class _BytecodeWriter:
    """Writes bytecode as text; ``names`` are renamed v0, v1, ... in the order of the instructions.

    Local variables are written as numbers. A parameter keeps its (renamed) name if it is one of ``keywords``.
    """

    def __init__(self, names: set[str], keywords: set[str | None]) -> None:
        self.names, self.keywords, self.renamed, self.left_bytes = names, keywords, dict[str, str](), MAX_CODE_BYTES

    def lines(self, code: CodeType) -> Iterator[str]:
        """Yield one line for each instruction, including those of nested code objects."""
        self.left_bytes -= len(code.co_code)
        if self.left_bytes < 0:
            raise ValueError("more bytecode than is read")
        yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}"
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            yield self.argument(name) if name in self.keywords else "parameter"
        variables = {name: i for i, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])}
        shown: list[dis.Instruction] = []
        places: dict[int, int] = {}  # offset of an instruction -> its index without NOP and RESUME
        for one in dis.get_instructions(code):
            places[one.offset] = len(shown)
            if one.opname not in ("NOP", "RESUME"):
                shown.append(one)
        for one in shown:
            if isinstance(one.argval, CodeType):
                yield from self.lines(one.argval)
            value = code.co_consts[one.arg or 0] if one.opname == "KW_NAMES" else one.argval
            if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
                value = places.get(value)
            if one.opcode in dis.haslocal:
                value = variables.setdefault(one.argval, len(variables))
            yield f"{one.opname} {self.argument(value)}"

    def argument(self, value: object) -> str:
        """Return the text of an argument, the same in every process."""
        if isinstance(value, CodeType):
            return "code"
        if isinstance(value, str) and value in self.names:
            return self.renamed.setdefault(value, f"v{len(self.renamed)}")
        if isinstance(value, tuple | frozenset):
            parts = [self.argument(part) for part in value]
            return f"{type(value).__name__}({', '.join(parts if isinstance(value, tuple) else sorted(parts))})"
        return hex(value) if type(value) is int else repr(value)


def _own_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.alias) and node.asname:
            names.add(node.asname)
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}  # may be bound in a class
    return (names | _own_functions(tree)) - attributes


def _own_functions(tree: ast.AST) -> set[str]:
    """Return the functions and classes except methods, which are attributes and keep their names."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not isinstance(
            tree, ast.ClassDef
        ):
            found.add(node.name)
        found |= _own_functions(node)
    return found


_SIGNS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


class _Renamer(ast.NodeTransformer):
    """Replaces ``names`` by placeholders, numbered in the order of the walk."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.renamed: dict[str, str] = {}

    def rename(self, name: str | None) -> str | None:
        if name is None or name not in self.names:
            return name
        return self.renamed.setdefault(name, f"\0{len(self.renamed):04}")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Name):
            node.id = self.rename(node.id) or node.id
        elif isinstance(node, ast.arg):
            node.arg = self.rename(node.arg) or node.arg
        elif isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar,
        ):
            node.name = self.rename(node.name)  # type: ignore[assignment]
        elif isinstance(node, ast.MatchMapping):
            node.rest = self.rename(node.rest)
        elif isinstance(node, ast.alias):
            node.asname = self.rename(node.asname)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self.rename(name) or name for name in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.names:
            for pair in node.keywords:
                pair.arg = self.rename(pair.arg)
        return super().generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Fold a comparison of two constants; the compiler does not."""
        match node:
            case ast.Compare(ast.Constant(a), [sign], [ast.Constant(b)]) if type(sign) in _SIGNS and type(a) is type(b):
                if isinstance(a, int | float | str):
                    return ast.Constant(_SIGNS[type(sign)](a, b))
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Turn an annotated assignment into a plain one, or ``pass`` if nothing is assigned."""
        return self.generic_visit(ast.Assign([node.target], node.value) if node.value else ast.Pass())
