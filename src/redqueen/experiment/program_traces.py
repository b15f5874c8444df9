"""What a task's program does on its inputs: operations and types on the path that is taken, seen in the sandbox.

The program is rewritten so that it notes each operation it carries out together with the type of the result, and then
runs in the verifier's cage like any other program: nothing a model wrote runs here, and text that no input reaches
leaves no trace. Names, constants, the order of statements and the number of repetitions leave none either. What is not
rewritten is not seen: decorators, annotations, patterns of ``match``, and what happens inside library functions.

A program can note falsehoods about itself, for it shares its process with the notes; nothing but a measure of the
experiment would believe them.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from redqueen.errors import UserError
from redqueen.files import read_plain, write_whole
from redqueen.verify import Limits, Program, Verifier

LIMITS = Limits(cpu_ms=1_000, accept_cpu_ms=1_000)
"""Noting makes a program several times slower; it was within the task's limit without."""

TRACES = "traces.json"
"""The traces of a finished run lie under this name in its folder, so that they are taken once."""

_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_BUILTINS = frozenset(vars(builtins))
_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True)
class Posed:
    """The part of a task that is traced: its program and its argument lists as text."""

    code: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """``operations``: what was carried out, as ``add int``; ``io``: the classes of what came in and went out.

    An io class is ``int, list[int] -> int smaller``: the types of the arguments (elements of containers to one level),
    the type of the result, and how the result relates to the first argument when both are numbers, or both are sized.
    Both are sorted, without doubles, over all of the task's inputs.
    """

    operations: tuple[str, ...]
    io: tuple[str, ...]


def trace(tasks: Sequence[Posed], verifier: Verifier) -> list[Trace | None]:
    """Trace tasks in the sandbox, in order; None where the rewritten program failed (say, it ran into a limit)."""
    distinct = list(dict.fromkeys(tasks))
    written = [instrument(task.code) for task in distinct]
    programs = [
        Program(str(at), code, task.inputs)
        for at, (task, code) in enumerate(zip(distinct, written, strict=True))
        if code is not None
    ]
    traces: dict[Posed, Trace | None] = dict.fromkeys(distinct)
    for result in verifier.run(programs):
        if result.verdict == "ok":
            traces[distinct[int(result.id)]] = _read(result.outputs)
    return [traces[task] for task in tasks]


def open_tracer(allow_weak: bool = False) -> Verifier:
    """Start the verifier that traces: one process at a time, one hash seed.

    Raises UserError where there is no system-call filter, unless ``allow_weak``.
    """
    return Verifier(workers=1, limits=LIMITS, num_seeds=1, allow_weak=allow_weak, warn=False)


def trace_once(
    folder: Path, ids: Sequence[str], tasks: Sequence[Posed], allow_weak: bool = False
) -> list[Trace | None]:
    """Return the traces of a finished run's tasks; they are kept in its folder for the next time."""
    path = folder / TRACES
    with suppress(OSError, UserError, ValueError, KeyError, TypeError):
        kept = json.loads(read_plain(path))
        if list(kept) == list(ids):
            return [found and Trace(tuple(found["operations"]), tuple(found["io"])) for found in kept.values()]
    with open_tracer(allow_weak) as verifier:
        traces = trace(tasks, verifier)
    plain = {id_: found and asdict(found) for id_, found in zip(ids, traces, strict=True)}
    write_whole(path, json.dumps(plain))
    return traces


def instrument(code: str) -> str | None:
    """Return the program rewritten so that ``f`` returns what it did and of which class it was; None if it cannot be.

    The result of the new ``f`` is a pair of lists of strings: operations, and one io class.
    """
    prefix = "seen"
    while prefix in code:
        prefix += "_"
    try:
        tree = ast.parse(code)
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        tree = _rename_entry(_Noting(prefix, own).visit(tree), f"{prefix}_f")
        tree.body[_first_statement(tree) : 0] = ast.parse(_PRELUDE.replace("SEEN", prefix)).body
        tree.body += ast.parse(_ENTRY.replace("SEEN", prefix)).body
        return ast.unparse(ast.fix_missing_locations(tree))
    except _UNPARSABLE:
        return None


def _read(outputs: Sequence[str]) -> Trace | None:
    operations: set[str] = set()
    io: set[str] = set()
    for text in outputs:
        with suppress(*_UNPARSABLE):
            match ast.literal_eval(text):
                case [[*noted], str(kind)] if all(type(item) is str for item in noted):
                    operations.update(noted)
                    io.add(kind)
    return Trace(tuple(sorted(operations)), tuple(sorted(io))) if io else None


# Runs in the child. Defaults hold the builtins, which the program may have bound to something else.
_PRELUDE = """
SEEN = {}
def SEEN_note(what, value, seen=SEEN, type=type):
    seen[what, type(value)] = None
    return value
def SEEN_name(kind, names={t: t.__name__ for t in (
    int, float, bool, str, type(None), list, tuple, dict, set, frozenset, bytes, bytearray, complex, range, type,
    type(len), type(_ for _ in ()), map, filter, zip, enumerate, reversed, slice,
    type(lambda: 0), type({}.keys()), type({}.values()), type({}.items()))}):
    return names.get(kind, "object")
def SEEN_shape(value, name=SEEN_name, type=type, sorted=sorted, isinstance=isinstance, dict=dict, keep=(
    list, tuple, set, frozenset, dict)):
    kind = type(value)
    if kind not in keep:
        return name(kind)
    inner = "|".join(sorted({name(type(item)): None for item in value}))
    if isinstance(value, dict):
        inner += ":" + "|".join(sorted({name(type(item)): None for item in value.values()}))
    return name(kind) + "[" + inner + "]"
def SEEN_relation(first, last, type=type, len=len, sorted=sorted, repr=repr, number=(int, float), sized=(
    str, list, tuple, set, dict)):
    if type(first) is type(last) and repr(first) == repr(last):
        return " same"
    if type(first) in number and type(last) in number:
        return " smaller" if last < first else " larger" if last > first else " equal"
    if type(first) in sized and type(last) in sized:
        if len(first) != len(last):
            return " shorter" if len(last) < len(first) else " longer"
        alike = type(first) is type(last) and sorted(map(repr, first)) == sorted(map(repr, last))
        return " reordered" if alike else " as long"
    return ""
def SEEN_copy(value, type=type, copied=(list, tuple, set, dict)):
    return type(value)(value) if type(value) in copied else value
"""
_ENTRY = """
def f(*given, **named):
    SEEN.clear()
    shapes = [SEEN_shape(item) for item in (*given, *named.values())]
    first = SEEN_copy(given[0]) if given else None
    result = SEEN_f(*given, **named)
    noted = [what + " " + SEEN_name(kind) for what, kind in SEEN]
    return ([*noted], ", ".join(shapes) + " -> " + SEEN_shape(result) + SEEN_relation(first, result))
"""


class _Noting(ast.NodeTransformer):
    """Wraps every operation so that it is noted when it is carried out. ``own``: what the program itself defines."""

    def __init__(self, prefix: str, own: set[str]) -> None:
        self.prefix, self.own = prefix, own

    def noted(self, what: str, value: ast.expr) -> ast.expr:
        function = ast.Name(f"{self.prefix}_note", ast.Load())
        return ast.Call(function, [ast.Constant(what), value], [])

    def parts(self, node: _Node, skipped: tuple[str, ...] = ()) -> _Node:
        """Rewrite what stands inside of a node, but for some of its fields."""
        kept = {name: getattr(node, name) for name in skipped}
        for name in skipped:
            setattr(node, name, [] if isinstance(kept[name], list) else None)
        self.generic_visit(node)
        for name, value in kept.items():
            setattr(node, name, value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.noted(_name(node.op), self.parts(node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return node if isinstance(node.operand, ast.Constant) else self.noted(_name(node.op), self.parts(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.noted(_name(node.op), self.parts(node))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        return self.noted(" ".join(sorted({_name(op) for op in node.ops})), self.parts(node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.noted("choice", self.parts(node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        what = "slice" if isinstance(node.slice, ast.Slice) else "index"
        inner = self.parts(node)
        return self.noted(what, inner) if isinstance(node.ctx, ast.Load) else inner

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = node.func
        if isinstance(called, ast.Name):
            known = called.id in _BUILTINS and called.id not in self.own
            return self.noted(f"call {called.id}" if known else "call own", self.parts(node))
        return self.noted(f"call .{called.attr}" if isinstance(called, ast.Attribute) else "call", self.parts(node))

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self.noted("comprehension", self.parts(node))

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self.noted("comprehension", self.parts(node))

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self.noted("comprehension", self.parts(node))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self.noted("comprehension", self.parts(node))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        return self.parts(node, ("format_spec",))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        self.parts(node)
        node.value = self.noted(f"{_name(node.op)} in place", node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        self.parts(node)
        node.iter = self.noted("for", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        self.parts(node)
        node.test = self.noted("while", node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        self.parts(node)
        node.test = self.noted("if", node.test)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        self.parts(node)
        if node.exc is not None:
            node.exc = self.noted("raise", node.exc)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self.parts(node, ("decorator_list", "returns"))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return self.parts(node, ("decorator_list", "bases", "keywords"))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        return self.parts(node, ("annotation",))

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        return self.parts(node, ("pattern",))


def _name(operator: ast.AST) -> str:
    return type(operator).__name__.lower()


def _rename_entry(tree: ast.Module, name: str) -> ast.Module:
    """Give everything that is called ``f`` another name, so that a new ``f`` can be put around it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "f":
            node.id = name
        elif isinstance(node, ast.arg | ast.keyword) and node.arg == "f":
            node.arg = name
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs) and node.name == "f":
            node.name = name
        elif isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [name if n == "f" else n for n in node.names]
        elif isinstance(node, ast.alias) and (node.asname or node.name) == "f":
            node.asname = name
    return tree


def _first_statement(tree: ast.Module) -> int:
    """The place behind a docstring and imports from ``__future__``."""
    at = 0
    for node in tree.body:
        is_text = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at += 1
    return at
