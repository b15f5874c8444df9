"""Programs that nearly do what was asked: the wrong candidates in a thought that looks for a program.

Such a thought writes a candidate, traces it on the shown pairs in turn, and goes on to another candidate at the first
pair whose result differs: ``candidate|trace|trace!candidate|trace ...``. A wrong one is the right program with one
place changed (a constant, an operator, a branch, a statement left out), since that is how a guess is wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from random import Random

from redqueen.tiny.problems import Problem, run_on
from redqueen.tiny.thought_traces import instrument
from redqueen.tiny.worlds import World

MOST_CHECKED = 2
"""Shown pairs on which a candidate is traced at most."""
_TRIES = 6
_ARITHMETIC: tuple[type[ast.operator], ...] = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_ORDER: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def wrong_candidate(rng: Random, problem: Problem, world: World) -> tuple[str, tuple[str, ...]] | None:
    """Return a changed program and its traces on the shown pairs, up to the first wrong one; None when none came up."""
    for _ in range(_TRIES):
        code = _changed(rng, problem.code)
        if code is None or code == problem.code:
            continue
        traces = _traces_to_mismatch(code, problem, world)
        if traces is not None:
            return code, traces
    return None


def _traces_to_mismatch(code: str, problem: Problem, world: World) -> tuple[str, ...] | None:
    compiled = instrument(code, world.bounds.detailed)
    traces: list[str] = []
    for text, right in zip(problem.inputs[:MOST_CHECKED], problem.runs, strict=False):
        found = run_on(compiled, text, world)
        if found is None:
            return None
        traces.append(found.trace)
        if found.result != right.result:
            return tuple(traces)
    return None


def _changed(rng: Random, code: str) -> str | None:
    """Return the program with one place changed, or None when it has no such place."""
    tree = ast.parse(code)
    changes = [change for node in ast.walk(tree) for change in _changes(rng, node)]
    if not changes:
        return None
    before, written = _lines(ast.unparse(tree)), _lines(code)
    rng.choice(changes)()
    after = _lines(ast.unparse(ast.fix_missing_locations(tree)))
    if len(before) != len(written):
        return None
    as_written = dict(zip(before, written, strict=True))  # unparsing doubles some brackets: no line may tell by that
    changed = "\n".join(as_written.get(line, line) for line in after)
    return None if "((" in changed and "((" not in code else changed


def _lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line]


def _changes(rng: Random, node: ast.AST) -> list[Callable[[], object]]:
    """Return what can be done at a node; nothing is done yet."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return [lambda: setattr(node, "value", max(0, value + rng.choice((-2, -1, 1, 2))))]
        case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
            return [lambda: setattr(node, "op", rng.choice(_ARITHMETIC)())]
        case ast.Compare(ops=[op]) if isinstance(op, _ORDER):
            return [lambda: setattr(node, "ops", [rng.choice(_ORDER)()])]
        case ast.If(body=body, orelse=[_, *_] as other):
            return [lambda: vars(node).update(body=other, orelse=body)]
        case ast.FunctionDef(body=body) | ast.For(body=body) | ast.While(body=body) if len(body) > 1:
            at = rng.randrange(len(body) - isinstance(node, ast.FunctionDef))
            return [lambda: body.pop(at)]
    return []
