"""Tell which variables of a program can reach its result: code that cannot is padding, not difficulty."""

from __future__ import annotations

import ast
from collections import defaultdict


def dead_names(tree: ast.Module) -> set[str]:
    """Return the names that ``f`` binds (parameters too) and that cannot influence what it returns.

    A name depends on what its bindings read and on the tests and loops around them; a return depends on what it
    reads and on the tests around it. Order is ignored, so this errs on the side of calling a name alive.
    """
    flow = _Flow()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "f":
            flow.bound |= {a.arg for a in node.args.args}
            flow.block(node.body, frozenset())
    alive: set[str] = set()
    todo = list(flow.returned)
    while todo:
        name = todo.pop()
        if name not in alive:
            alive.add(name)
            todo += flow.reads[name]
    return flow.bound - alive


class _Flow:
    """Collects, statement by statement, which names each name is computed from."""

    def __init__(self) -> None:
        self.reads: dict[str, set[str]] = defaultdict(set)
        self.bound: set[str] = set()
        self.returned: set[str] = set()

    def block(self, body: list[ast.stmt], context: frozenset[str]) -> None:
        for statement in body:
            self.statement(statement, context)

    def statement(self, node: ast.stmt, context: frozenset[str]) -> None:
        match node:
            case ast.Return(value=value):
                self.returned |= context | (_loads(value) if value else set())
            case ast.If(test=test, body=body, orelse=orelse):
                inner = context | _loads(test)
                self.block(body, inner)
                self.block(orelse, inner)
            case ast.While(test=test, body=body, orelse=orelse):
                self.block([*body, *orelse], context | _loads(test) | _exits(body))
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self.bind(_stores(target), _loads(source) | context)
                self.block([*body, *orelse], context | _loads(source) | _exits(body))
            case ast.Assign(targets=[target], value=value):
                self.bind(_stores(target), _loads(value) | _loads(target) | context)
            case ast.AugAssign(target=target, value=value):
                self.bind(_stores(target), _loads(value) | _loads(target) | context)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=args)):
                self.bind({name}, {n for a in args for n in _loads(a)} | context)
            case ast.Delete(targets=[target]):
                self.bind(_stores(target), _loads(target) | context)

    def bind(self, names: set[str], reads: set[str] | frozenset[str]) -> None:
        for name in names:
            self.reads[name] |= reads
            self.bound.add(name)


def _loads(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _stores(target: ast.expr) -> set[str]:
    """Return the names that a target changes; ``xs[0]`` changes ``xs``."""
    match target:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=elements):
            return {n for e in elements for n in _stores(e)}
        case ast.Subscript(value=ast.Name(id=name)):
            return {name}
    return set()


def _exits(body: list[ast.stmt]) -> set[str]:
    """Return what is read by tests that guard a break or continue: everything in the loop depends on them."""
    guards: set[str] = set()
    for node in body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.If) and any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(inner)):
                guards |= _loads(inner.test)
    return guards
