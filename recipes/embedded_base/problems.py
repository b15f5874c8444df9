"""Turn generated programs into problems: run them on inputs, keep those with small, varied, informative results."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Set
from dataclasses import dataclass
from random import Random
from types import CodeType

from recipes.embedded_base.draft import Type, write_value
from recipes.embedded_base.everyday import write_everyday_program, write_everyday_value
from recipes.embedded_base.programs import write_program
from recipes.embedded_base.traces import NARROW, PROGRAM_ERRORS, Bounds, Run, TooMuch, instrument, run
from redqueen.domains.code.prompts_compact import MOST_INPUTS


@dataclass(frozen=True)
class World:
    """One source of programs. ``write_program`` draws one of a level, ``write_value`` an argument of a type."""

    name: str
    write_program: Callable[[Random, int], tuple[str, tuple[Type, ...]]]
    write_value: Callable[[Random, Type], object]
    bounds: Bounds = NARROW
    max_code_chars: int = 420


BASIC = World("basic", write_program, write_value)
EVERYDAY = World(
    "everyday",
    write_everyday_program,
    write_everyday_value,
    Bounds(events=44, trace_chars=340, text_chars=56, items=12, largest=9999, detailed=True),
)
WORLDS: dict[str, World] = {world.name: world for world in (BASIC, EVERYDAY)}

NUM_INPUTS = MOST_INPUTS
MAX_HINT_WORDS = 8
WASTE_FRAC = 0.06
"""Probability of keeping a program with code that cannot affect the result; real code has some."""
_SELF_COMPARISON = re.compile(r"\b(\w+) (?:[-<>%]|//|==|!=|<=|>=|and|or|if|in) \1\b|\bif (\w+) else \2\b")
_WORD = re.compile(
    r"\b(?:for|while|if|not|and|or|break|continue)\b|\b(?!def\b)[a-z]{2,}(?=\()|//=?|[-+*%]=?|[<>=!]=|[<>]|\b\d+\b"
)
_KIND_WORDS = {
    "int": "int",
    "bool": "bool",
    "str": "str",
    "ints": "list",
    "strs": "list",
    "tup": "tuple",
    "dict": "dict",
}


@dataclass(frozen=True)
class Problem:
    """A program with inputs that work. ``inputs[i]`` (argument text) gives ``runs[i]``."""

    level: int
    code: str
    types: tuple[Type, ...]
    inputs: tuple[str, ...]
    runs: tuple[Run, ...]
    message: str


def write_problem(
    rng: Random,
    level: int,
    held_out: Set[str] = frozenset(),
    num_inputs: int = NUM_INPUTS,
    world: World = BASIC,
) -> Problem | None:
    """Return one problem of this level in a world, or None when the random program is not useful.

    Useful: parses, has no unused variables, runs on the inputs within the tracing bounds, and its results differ
    between inputs. ``held_out`` holds skeletons (see :func:`skeleton`) that must not be used.
    """
    code, types = world.write_program(rng, level)
    if len(code) > world.max_code_chars or _SELF_COMPARISON.search(code):
        return None
    tree = ast.parse(code)
    if (_wasteful(tree) and rng.random() > WASTE_FRAC) or (held_out and skeleton(code) in held_out):
        return None
    compiled = instrument(code, world.bounds.detailed)
    found: dict[str, Run] = {}
    failures = 0
    while len(found) < num_inputs and failures < num_inputs:
        values = tuple(world.write_value(rng, t) for t in types)
        text = ", ".join(repr(v) for v in values)
        if text in found:
            failures += 1
            continue
        try:
            found[text] = run(compiled, values, world.bounds)
        except TooMuch:
            failures += 1
        except PROGRAM_ERRORS:
            failures += 2
    if len(found) < num_inputs:
        return None
    results = [r.result for r in found.values()]
    most_common = max(results.count(r) for r in set(results))
    if len(set(results)) < 2 or most_common > 0.8 * num_inputs:
        return None
    return Problem(level, code, types, tuple(found), tuple(found.values()), _message(tree, types, results[0]))


def run_on(compiled: CodeType, text: str, world: World) -> Run | None:
    """Run an instrumented program of ours on argument text of ours; None when it fails or exceeds the bounds."""
    try:
        return run(compiled, eval(f"({text},)"), world.bounds)
    except (TooMuch, *PROGRAM_ERRORS):
        return None


def fresh_input(rng: Random, types: tuple[Type, ...], world: World = BASIC) -> str:
    """Return the text of a random argument list for these types."""
    return ", ".join(repr(world.write_value(rng, t)) for t in types)


def _wasteful(tree: ast.Module) -> bool:
    """Return whether a variable cannot affect the result (except loop counters), or a helper is never called."""
    helpers = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)} - {"f"}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return bool(helpers - called) or not dead_names(tree) <= {"i", "j", "k", "v", "c", "ch", "_"}


def _message(tree: ast.Module, types: tuple[Type, ...], result: str) -> str:
    """Return the hint of an induction problem: what the program takes, returns and uses, in order."""
    bare = re.sub(r"'[^']*'", "", ast.unparse(tree))
    words = [w for w in _WORD.findall(bare) if w not in ("0", "1")]
    takes = ", ".join(_KIND_WORDS[t] for t in types)
    gives = type(ast.literal_eval(result)).__name__
    return f"{takes} -> {gives}" + ": " * bool(words) + ", ".join(list(dict.fromkeys(words))[:MAX_HINT_WORDS])


def skeleton(code: str) -> str:
    """Return the program with its names numbered in order of appearance: equal for programs equal up to renaming."""
    names: dict[str, str] = {}
    tree = ast.parse(code)
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in bound:
            node.id = names.setdefault(node.id, f"v{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"v{len(names)}")
    return ast.dump(tree)


def dead_names(tree: ast.Module) -> set[str]:
    """Return the names that ``f`` binds (parameters too) and that cannot influence what it returns.

    A name depends on what its bindings read and on the tests and loops around them; a return depends on what it
    reads and on the tests around it. Order is ignored, so some dead names may count as alive.
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
    """Return the names read by tests that guard a break or continue: everything in the loop depends on them."""
    guards: set[str] = set()
    for node in body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.If) and any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(inner)):
                guards |= _loads(inner.test)
    return guards
