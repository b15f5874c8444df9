"""Run one of *our own* generator's programs in process and write down what happened: the trace a solver may think.

A trace names the state as it changes: ``a=3;T;xs=[1, 2];r=5``: every binding, every branch test (T or F), every
returned value (r=), in the order of execution. Named state is what a small model can learn (ours; bare values were
not learnable in a prototype). Never call this on text that a model wrote: that is the verifier's work.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType

MAX_EVENTS = 36
MAX_TRACE_CHARS = 240
MAX_TEXT_CHARS = 32
MAX_ITEMS = 8
MAX_INT = 999

PROGRAM_ERRORS = (LookupError, ValueError, ArithmeticError, TypeError, AttributeError, NameError, RuntimeError)
"""What a generated program may raise on an unlucky input."""


class TooMuch(Exception):
    """The run has too many events or too large a value to be a useful example."""


@dataclass(frozen=True)
class Run:
    """What one call gave: the result's repr and the trace."""

    result: str
    trace: str


class _Instrument(ast.NodeTransformer):
    """Insert a call after each binding, around each branch test and around each returned value."""

    def _note(self, names: list[str]) -> list[ast.stmt]:
        return [
            ast.Expr(ast.Call(ast.Name("_note", ast.Load()), [ast.Constant(n), ast.Name(n, ast.Load())], []))
            for n in names
        ]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = self._block(node.body)
        if node.name != "f":
            node.body = self._note([a.arg for a in node.args.args]) + node.body
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            match statement:
                case ast.For():
                    statement.body = self._note(_names(statement.target)) + self._block(statement.body)
                case ast.While():
                    statement.test = self._wrap("_test", statement.test)
                    statement.body = self._block(statement.body)
                case ast.If():
                    statement.test = self._wrap("_test", statement.test)
                    statement.body = self._block(statement.body)
                    statement.orelse = self._block(statement.orelse)
                case ast.Return(value=value) if value is not None:
                    statement.value = self._wrap("_result", value)
            result.append(statement)
            match statement:
                case ast.Assign(targets=[target]):
                    result += self._note(_names(target))
                case ast.AugAssign(target=target):
                    result += self._note(_names(target))
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                    result += self._note([name])
        return result

    @staticmethod
    def _wrap(name: str, value: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(name, ast.Load()), [value], [])


def _names(target: ast.expr) -> list[str]:
    """Return the names that a binding changes, each once: x; x, y; xs[0] gives xs."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=elements):
            return list(dict.fromkeys(n for e in elements for n in _names(e)))
        case ast.Subscript(value=ast.Name(id=name)):
            return [name]
    return []


def instrument(code: str) -> CodeType:
    """Compile ``code`` with its notes. Raises SyntaxError."""
    tree = ast.fix_missing_locations(_Instrument().visit(ast.parse(code)))
    return compile(tree, "<generated>", "exec")


def run(code: CodeType, arguments: tuple[object, ...]) -> Run:
    """Call the instrumented ``f``. Raises TooMuch, or whatever the program raises."""
    events: list[str] = []

    def note(name: str, value: object) -> None:
        events.append(f"{name}={bounded_repr(value)}")
        if len(events) > MAX_EVENTS:
            raise TooMuch

    def test(value: object) -> object:
        events.append("T" if value else "F")
        if len(events) > MAX_EVENTS:
            raise TooMuch
        return value

    def result(value: object) -> object:
        events.append(f"r={bounded_repr(value)}")
        return value

    scope: dict[str, object] = {"_note": note, "_test": test, "_result": result}
    exec(code, scope)  # trusted: written by our own generator
    f = scope["f"]
    assert callable(f)
    value = f(*arguments)
    trace = ";".join(events)
    if len(trace) > MAX_TRACE_CHARS:
        raise TooMuch
    return Run(bounded_repr(value), trace)


def bounded_repr(value: object) -> str:
    """Return ``repr(value)``. Raises TooMuch for a value that is no plain literal or not small."""
    _check(value)
    text = repr(value)
    if len(text) > MAX_TEXT_CHARS:
        raise TooMuch
    return text


def _check(value: object) -> None:
    match value:
        case bool() | None:
            return
        case int():
            if abs(value) > MAX_INT:
                raise TooMuch
        case str():
            if len(value) > MAX_TEXT_CHARS:
                raise TooMuch
        case list() | tuple() | dict():
            if len(value) > MAX_ITEMS:
                raise TooMuch
            for item in value:
                _check(item)
        case _:
            raise TooMuch
