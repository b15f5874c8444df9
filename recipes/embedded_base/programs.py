"""Write random, typed Python functions of five levels: the basic world of training programs.

A program is built statement by statement over variables with known types, so that nearly all programs run.
``write_program`` only writes text; ``problems.py`` runs it and keeps programs with small, varied results.
"""

from __future__ import annotations

from random import Random

from recipes.embedded_base.draft import NAMES, Draft, Type
from recipes.embedded_base.expressions import expr
from recipes.embedded_base.loops import loop, search, while_loop
from recipes.embedded_base.statements import assign, branch, chain, early_return, unpack, update

LEVELS = (1, 2, 3, 4, 5)
LEVEL_WEIGHTS = (1.4, 2.0, 1.8, 0.8, 0.3)
"""Weight of each level: a small model trained mostly on long programs learned neither short nor long ones."""


def write_program(rng: Random, level: int) -> tuple[str, tuple[Type, ...]]:
    """Return the source of a function ``f`` (with a helper at times) of this level (1-5) and its parameter types."""
    return function(Draft(rng, level))


def function(draft: Draft) -> tuple[str, tuple[Type, ...]]:
    """Return the source text (no final newline) and the parameter types."""
    r = draft.rng
    head: list[str] = []
    if draft.level >= 3 and r.random() < (0.15 if draft.level == 3 else 0.25):
        head = helper_function(draft)
    num_params = r.choices((1, 2, 3), (5, 5, 1))[0]
    params: list[tuple[str, Type]] = []
    for _ in range(num_params):
        weights = (6, 4, 6, 1, 0.4, 0.8, 1.1)
        type_: Type = r.choices(("int", "str", "ints", "strs", "bool", "tup", "dict"), weights)[0]
        name = draft.new_name(type_)
        params.append((draft.declare(name, type_), type_))
    lines: list[str] = []
    early: Type | None = None
    if draft.level >= 2 and r.random() < 0.1:
        returned: Type = r.choice([t for _, t in params])
        early = returned
        lines += early_return(draft, "    ", returned)
    ending = r.random()
    if early is None and ending < (0.0, 0.06, 0.14, 0.2, 0.14, 0.12)[draft.level]:
        for _ in range(max(0, num_statements(draft) - 1 - (draft.level >= 4))):
            lines += statement(draft, "    ")
        lines += search(draft, "    ") if draft.level >= 2 and r.random() < 0.55 else chain(draft, "    ")
    else:
        for _ in range(num_statements(draft)):
            lines += statement(draft, "    ")
        lines.append(f"    return {result(draft, early or return_type(draft))}")
    signature = ", ".join(n for n, _ in params)
    return "\n".join([*head, f"def f({signature}):", *lines]), tuple(t for _, t in params)


def helper_function(draft: Draft) -> list[str]:
    """Write ``def g(x)`` before ``f``."""
    r = draft.rng
    name = r.choice(("g", "h"))
    shapes: tuple[tuple[Type, Type], ...] = (
        ("int", "int"),
        ("int", "int"),
        ("int", "int"),
        ("str", "str"),
        ("ints", "int"),
        ("ints", "ints"),
        ("int", "bool"),
    )
    arg, res = r.choice(shapes)
    inner = Draft(r, 1)
    p = NAMES[arg][0] if arg != "int" else r.choice(("x", "n", "a"))
    inner.declare(p, arg)
    lines = [f"def {name}({p}):"]
    if r.random() < 0.35:
        lines += early_return(inner, "    ", res)
    lines.append(f"    return {expr(inner, res, 1)}")
    draft.scope.helper = (name, arg, res)
    return lines


def num_statements(draft: Draft) -> int:
    """Draw how many statements a function of this level has before it returns."""
    low, high = {1: (0, 1), 2: (1, 2), 3: (2, 3), 4: (2, 4), 5: (3, 5)}[draft.level]
    return draft.rng.randint(low, high)


def statement(draft: Draft, pad: str) -> list[str]:
    """Write one statement; loops and branches come more often at higher levels."""
    r = draft.rng
    weights = {
        1: (6, 3, 0.3, 0, 0, 0.2),
        2: (5, 3, 2, 1.2, 0.2, 0.4),
        3: (3, 3, 2.5, 4, 0.8, 0.4),
        4: (2.5, 2.5, 3, 5, 1.3, 0.4),
        5: (2.5, 2.5, 3, 5, 1.5, 0.4),
    }[draft.level]
    makers = (assign, update, lambda d, p: branch(d, p, 1), loop, while_loop, unpack)
    return r.choices(makers, weights)[0](draft, pad)


def return_type(draft: Draft) -> Type:
    """Draw what the function returns: often the type of the variable that was bound last and not read yet."""
    fresh = [draft.scope.types[v] for v in draft.scope.fresh if v in draft.scope.types]
    if fresh and draft.rng.random() < 0.75:
        return fresh[-1]
    return draft.rng.choices(("int", "str", "ints", "bool", "strs", "tup", "dict"), (6, 3, 4, 1.2, 0.8, 0.8, 0.5))[0]


def result(draft: Draft, type_: Type) -> str:
    """Return the expression after ``return``: often a bare variable, else an expression over fresh ones."""
    fresh = [v for v in draft.scope.fresh if draft.scope.types.get(v) == type_]
    if fresh and draft.rng.random() < 0.5:
        return fresh[-1]
    return expr(draft, type_, 1)
