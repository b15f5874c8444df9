"""Run a program of *our own* generator in this process and record its execution: the trace that a solver may think.

A trace gives the state as it changes: ``n=3;xs=[1, 2];3 > 2:T;n=3 * 2=6;r=6``: the arguments, every binding, every
branch test, every returned value (r=), in the order of execution. Comparisons and sums are written with values instead
of names before their result, so that each step is either a look-up or a small calculation. A small model can learn
traces with names (ours): in prototypes, traces of bare values were not learnable, and without the arguments' names and
the inserted values a model confused the arguments. Never call this on text that a model wrote; use the verifier.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

MAX_EVENTS = 36
MAX_TRACE_CHARS = 240
MAX_TEXT_CHARS = 32
MAX_ITEMS = 8
MAX_INT = 999

MUTATORS = frozenset(("pop", "popitem", "setdefault"))
"""Methods that change their object and also return a value."""
SHOWN_CALLS = frozenset(("len", "sum", "min", "max", "sorted", "str", "int", "abs", "list", "dict", "ord"))
"""Functions whose value a detailed trace shows where they stand inside an expression."""

PROGRAM_ERRORS = (LookupError, ValueError, ArithmeticError, TypeError, AttributeError, NameError, RuntimeError)
"""What a generated program may raise on an unlucky input."""


COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}


class TooMuch(Exception):
    """The run has too many events or too large a value to be a useful example."""


@dataclass(frozen=True)
class Bounds:
    """How large a run may be, and whether its trace shows the values of calls inside expressions (``detailed``).

    ``events`` and ``trace_chars`` bound the trace; ``text_chars``, ``items`` and ``largest`` every value in it.
    """

    events: int = MAX_EVENTS
    trace_chars: int = MAX_TRACE_CHARS
    text_chars: int = MAX_TEXT_CHARS
    items: int = MAX_ITEMS
    largest: int = MAX_INT
    detailed: bool = False


NARROW = Bounds()


@dataclass(frozen=True)
class Run:
    """The outcome of one call: the result's repr and the trace."""

    result: str
    trace: str


class _Instrument(ast.NodeTransformer):
    """Insert a call after each binding, around each branch test and around each returned value."""

    def __init__(self, detailed: bool) -> None:
        self.detailed = detailed

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        entry = "_argument" if node.name == "f" else "_note"
        node.body = _notes([a.arg for a in node.args.args], entry) + self._block(node.body)
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            changed = _called_on(statement)
            if self.detailed:
                changed += _show_calls(statement)
            match statement:
                case ast.For():
                    statement.body = _notes(_names(statement.target)) + self._block(statement.body)
                    statement.orelse = self._block(statement.orelse)
                case ast.While():
                    statement.test = _tested(statement.test, self.detailed)
                    statement.body = self._block(statement.body)
                    statement.orelse = self._block(statement.orelse)
                case ast.If():
                    statement.test = _tested(statement.test, self.detailed)
                    statement.body = self._block(statement.body)
                    statement.orelse = self._block(statement.orelse)
                case ast.Return(value=value) if value is not None:
                    result += _worked(value)
                    statement.value = _call("_result", value)
                case ast.Assign(targets=[ast.Name()], value=value):
                    result += _worked(value)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    result += _worked(ast.BinOp(ast.Name(name, ast.Load()), op, value))
            result.append(statement)
            match statement:
                case ast.Assign(targets=[target]):
                    result += _notes(_names(target))
                case ast.AugAssign(target=target):
                    result += _notes(_names(target))
                case ast.Delete(targets=targets):
                    result += _notes([n for t in targets if isinstance(t, ast.Subscript) for n in _root(t)])
            result += _notes(list(dict.fromkeys(changed)))
        return result


def _called_on(statement: ast.stmt) -> list[str]:
    """Return the name of the variable that a statement with a method call changes."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target))):
            return _root(target)
    return []


class _ShowCalls(ast.NodeTransformer):
    """Pass the value of every call inside an expression to ``_step``, except inside lambdas and comprehensions."""

    def __init__(self) -> None:
        self.changed: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.parts(node)
        match node.func:
            case ast.Attribute(attr=name):
                return _call("_step", ast.Constant(f".{name}"), node)
            case ast.Name(id=name) if name in SHOWN_CALLS:
                return _call("_step", ast.Constant(name), node)
        return node

    def parts(self, node: ast.Call) -> None:
        """Show the calls in a call's object and arguments, and record the variable that it changes."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in MUTATORS:
                self.changed.append(name)
            case ast.Attribute():
                node.func.value = self.visit(node.func.value)
        node.args = [self.visit(argument) for argument in node.args]

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp) -> ast.expr:
        node.generators[0].iter = self.visit(node.generators[0].iter)
        return node

    visit_ListComp = visit_GeneratorExp = visit_DictComp = visit_SetComp = _comprehension


def _show_calls(statement: ast.stmt) -> list[str]:
    """Show the calls inside a statement's expression, except an outermost call that the statement's own note shows.

    Returns the names of the variables that such calls change.
    """
    shower = _ShowCalls()
    match statement:
        case ast.For(iter=source):
            statement.iter = shower.visit(source)
        case (
            ast.Assign(value=ast.Call() as call)
            | ast.Return(value=ast.Call() as call)
            | ast.Expr(value=ast.Call() as call)
        ):
            shower.parts(call)
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Return(value=ast.expr() as value):
            statement.value = shower.visit(value)
    return [] if isinstance(statement, ast.Return | ast.For | ast.Expr) else shower.changed


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _notes(names: list[str], function: str = "_note") -> list[ast.stmt]:
    return [ast.Expr(_call(function, ast.Constant(n), ast.Name(n, ast.Load()))) for n in names]


def _tested(test: ast.expr, detailed: bool = False) -> ast.expr:
    """Wrap a branch test; a single comparison passes both sides, to be written with their values.

    ``detailed``: the same for each evaluated part of an ``and`` or ``or``.
    """
    match test:
        case ast.BoolOp(values=values) if detailed:
            test.values = [_tested(value, True) for value in values]
            return test
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            return _call("_compare", ast.Constant(COMPARISONS[type(op)]), left, right)
    return _call("_test", test)


def _worked(value: ast.expr) -> list[ast.stmt]:
    """Return a call that writes an arithmetic expression with the values of its names; [] for any other expression."""
    nodes = list(ast.walk(value))
    plain = (ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.expr_context)
    if not isinstance(value, ast.BinOp) or not all(isinstance(n, plain) for n in nodes):
        return []
    names = list(dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name)))
    text = ast.unparse(value)
    return [ast.Expr(_call("_worked", ast.Constant(text), *(_pair(n) for n in names)))]


def _pair(name: str) -> ast.expr:
    return ast.Tuple([ast.Constant(name), ast.Name(name, ast.Load())], ast.Load())


def _names(target: ast.expr) -> list[str]:
    """Return the names that a binding changes, each once: x; x, y; xs[0] gives xs."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=elements):
            return list(dict.fromkeys(n for e in elements for n in _names(e)))
        case ast.Subscript():
            return _root(target)
    return []


def _root(node: ast.expr) -> list[str]:
    """Return the variable's name at the beginning of a chain of calls, attributes and subscripts, if there is one."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Call(func=inner):
                node = inner
            case _:
                return []
    return [node.id]


def instrument(code: str, detailed: bool = False) -> CodeType:
    """Compile ``code`` with its notes, those of a ``detailed`` trace if asked for. Raises SyntaxError."""
    tree = ast.fix_missing_locations(_Instrument(detailed).visit(ast.parse(code)))
    return compile(tree, "<generated>", "exec")


class _Recorder:
    """Collects what the instrumented program reports.

    The limit of a run applies to its plain ``events`` (bindings, T or F, results); ``thought`` is the trace.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.events: list[str] = []
        self.thought: list[str] = []
        self.working = ""

    def scope(self) -> dict[str, object]:
        """Return the names that instrumented code calls."""
        return {
            "_argument": self.argument,
            "_note": self.note,
            "_worked": self.worked,
            "_test": self.test,
            "_compare": self.compare,
            "_result": self.result,
            "_step": self.step,
        }

    def argument(self, name: str, value: object) -> None:
        self.thought.append(f"{name}={self.text(value)}")

    def note(self, name: str, value: object) -> None:
        self._record(f"{name}={self.text(value)}", f"{name}={self._take_working()}{self.text(value)}")

    def worked(self, text: str, *values: tuple[str, object]) -> None:
        known = dict(values)
        if all(type(v) is int for v in known.values()):
            self.working = re.sub(r"[A-Za-z_]\w*", lambda m: _operand(known[m[0]]), text) + "="

    def test(self, value: object) -> object:
        verdict = "T" if value else "F"
        self._record(verdict, verdict)
        return value

    def compare(self, sign: str, left: object, right: object) -> bool:
        value = bool(COMPARE[sign](left, right))
        verdict = "T" if value else "F"
        self._record(verdict, f"{self.text(left)} {sign} {self.text(right)}:{verdict}")
        return value

    def result(self, value: object) -> object:
        self.events.append(f"r={self.text(value)}")
        self.thought.append(f"r={self._take_working()}{self.text(value)}")
        return value

    def step(self, name: str, value: object) -> object:
        if isinstance(value, (bool, int, str, list, tuple, dict)):
            self._record(f"{name}={self.text(value)}", f"{name}={self.text(value)}")
        return value

    def text(self, value: object) -> str:
        return bounded_repr(value, self.bounds)

    def _record(self, event: str, thought: str) -> None:
        self.events.append(event)
        self.thought.append(thought)
        if len(self.events) > self.bounds.events:
            raise TooMuch

    def _take_working(self) -> str:
        working, self.working = self.working, ""
        return working


def _operand(value: object) -> str:
    return f"({value})" if isinstance(value, int) and value < 0 else str(value)


def run(code: CodeType, arguments: tuple[object, ...], bounds: Bounds = NARROW) -> Run:
    """Call the instrumented ``f``. Raises TooMuch, or whatever the program raises."""
    recorder = _Recorder(bounds)
    scope = recorder.scope()
    exec(code, scope)  # trusted: written by our own generator
    f = scope["f"]
    assert callable(f)
    value = f(*arguments)
    if len(";".join(recorder.events)) > bounds.trace_chars:
        raise TooMuch
    return Run(bounded_repr(value, bounds), ";".join(recorder.thought))


def bounded_repr(value: object, bounds: Bounds = NARROW) -> str:
    """Return ``repr(value)``. Raises TooMuch for a value that is not a plain literal or not small."""
    _check(value, bounds)
    text = repr(value)
    if len(text) > bounds.text_chars:
        raise TooMuch
    return text


def _check(value: object, bounds: Bounds = NARROW) -> None:
    match value:
        case bool() | None:
            return
        case int():
            if abs(value) > bounds.largest:
                raise TooMuch
        case str():
            if len(value) > bounds.text_chars:
                raise TooMuch
        case list() | tuple() | dict():
            if len(value) > bounds.items:
                raise TooMuch
            for item in value:
                _check(item, bounds)
        case _:
            raise TooMuch
