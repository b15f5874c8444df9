"""Random puzzles with exactly one solution, for the lessons of the embedded base and the frozen suite.

A *built* puzzle is made from its solution: each clue determines one more name from the names before it, so a model can
write it from left to right. A *free* puzzle adds true clues until only one assignment is left.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import permutations, product
from random import Random

from redqueen.domains.logic.deduction import compile_clue
from redqueen.domains.logic.language import Node, Puzzle
from redqueen.domains.logic.measures import normal_form

LETTERS = "ABCDEFGH"
UNKNOWNS = "abcmnxyz"
SECOND = "PQRSTUVW"
MAX_TRIES = 60
HELD_OUT_SHARE = 16
"""One puzzle in this many is held out of all lessons, by the digest of its normal form (ours)."""
BUILT_FRAC = 0.5
_NOWHERE = Puzzle("order", (("A", "B"),), 1, 2, ())


@dataclass(frozen=True)
class Drawn:
    """A puzzle and its one solution."""

    puzzle: Puzzle
    solution: tuple[int, ...]


def draw(rng: Random, held_out: bool = False, built: bool | None = None) -> Drawn:
    """Draw one puzzle from the training share or, with ``held_out``, from the held-out share.

    ``built``: whether it is a built puzzle; None: at random.
    """
    while True:
        built_now = rng.random() < BUILT_FRAC if built is None else built
        frame = _draw_frame(rng)
        found = _build(rng, frame) if built_now else _gather(rng, frame)
        if found is not None and is_held_out(found.puzzle) == held_out:
            return found


def is_held_out(puzzle: Puzzle) -> bool:
    """Return whether a puzzle belongs to the held-out share, from which only the frozen suite is drawn."""
    return hashlib.sha256(normal_form(puzzle).encode()).digest()[0] % HELD_OUT_SHARE == 0


def _draw_frame(rng: Random) -> Puzzle:
    """Draw the first line."""
    sort = rng.choices(("order", "grid", "number", "knights"), (35, 10, 25, 30))[0]
    if sort == "order":
        return replace(_NOWHERE, groups=(_names(rng, LETTERS, rng.choices((3, 4, 5), (3, 5, 2))[0]),), high=0)
    if sort == "grid":
        return replace(_NOWHERE, groups=(_names(rng, LETTERS, 3), _names(rng, SECOND, 3)), high=0)
    if sort == "number":
        num = rng.choices((2, 3), (5, 4))[0]
        low, high = rng.choice(((0, 9), (1, 9), (1, 9), (1, 6)) if num == 2 else ((1, 5), (0, 5), (1, 6), (1, 4)))
        return Puzzle("number", (_names(rng, UNKNOWNS, num),), low, high, ())
    return Puzzle("knights", (_names(rng, LETTERS, rng.choices((2, 3, 4), (2, 5, 3))[0]),), 0, 1, ())


def _names(rng: Random, letters: str, num: int) -> tuple[str, ...]:
    return tuple(letters[:num]) if rng.random() < 0.6 else tuple(sorted(rng.sample(letters, num)))


def _with_places(frame: Puzzle) -> Puzzle:
    return replace(frame, low=1, high=len(frame.groups[0])) if frame.sort == "order" else frame


def _solution(rng: Random, frame: Puzzle) -> tuple[int, ...]:
    if frame.sort == "order":
        return tuple(value for _ in frame.groups for value in rng.sample(frame.values, len(frame.values)))
    return tuple(rng.choice(frame.values) for _ in frame.names)


def _build(rng: Random, frame: Puzzle) -> Drawn | None:
    frame = _with_places(frame)
    solution = _solution(rng, frame)
    known: list[int] = []
    clues: list[Node] = []
    values = list(solution)
    for at in rng.sample(range(len(solution)), len(solution)):
        if len(_open_values(frame, known, solution, at)) > 1:
            clue = _deciding_clue(rng, frame, solution, known, at, values)
            if clue is None:
                return None
            clues.append(clue)
        known.append(at)
    for _ in range(rng.choices((0, 1, 2), (5, 3, 1))[0]):
        extra = _true_clue(rng, frame, solution, list(range(len(solution))))
        if extra is not None and extra not in clues:
            clues.append(extra)
    if not clues:
        return None
    if rng.random() < 0.4:
        rng.shuffle(clues)
    return Drawn(replace(frame, clues=tuple(clues)), solution)


def _open_values(frame: Puzzle, known: list[int], solution: tuple[int, ...], at: int) -> list[int]:
    for start, end in frame.spans():
        if start <= at < end:
            taken = {solution[i] for i in known if start <= i < end}
            return [value for value in frame.values if value not in taken]
    return list(frame.values)


def _deciding_clue(
    rng: Random, frame: Puzzle, solution: tuple[int, ...], known: list[int], at: int, values: list[int]
) -> Node | None:
    """Return a clue about this name and known names that leaves it only one value."""
    choices = _open_values(frame, known, solution, at)
    for _ in range(MAX_TRIES):
        unknown = -1
        among = [at, *known]
        if frame.sort == "knights" and (not known or rng.random() < 0.3):  # a speaker that is not known yet
            unknown = rng.choice([i for i in range(len(solution)) if i != at])
            among.append(unknown)
        clue = _draw_clue(rng, frame, solution, among, at)
        if clue is None:
            continue
        is_true = compile_clue(clue)
        fits = set()
        for value, other in product(choices, frame.values if unknown >= 0 else (0,)):
            if unknown >= 0:
                values[unknown] = other
            values[at] = value
            if is_true(values):
                fits.add(value)
        values[:] = solution
        if fits == {solution[at]} and is_true(solution):
            return clue
    return None


def _gather(rng: Random, frame: Puzzle) -> Drawn | None:
    frame = _with_places(frame)
    left = assignments(frame)
    solution = rng.choice(left)
    clues: list[Node] = []
    everybody = list(range(len(solution)))
    for _ in range(MAX_TRIES):
        clue = _true_clue(rng, frame, solution, everybody)
        if clue is None or (_is_plain(clue) and rng.random() < 0.7):
            continue
        is_true = compile_clue(clue)
        fits = [values for values in left if is_true(values)]
        if len(fits) < len(left):
            clues.append(clue)
            left = fits
        if len(left) == 1:
            if rng.random() < 0.3:
                clues = _without_needless(frame, clues)
            if rng.random() < 0.3:
                extra = _true_clue(rng, frame, solution, everybody)
                clues += [extra] if extra is not None and extra not in clues else []
            rng.shuffle(clues)
            return Drawn(replace(frame, clues=tuple(clues)), solution) if len(clues) <= 8 else None
    return None


def _without_needless(frame: Puzzle, clues: list[Node]) -> list[Node]:
    """Remove clues that follow from the others."""
    everything = assignments(frame)
    kept = list(clues)
    for clue in clues:
        others = [compile_clue(other) for other in kept if other is not clue]
        if others and sum(all(is_true(values) for is_true in others) for values in everything) == 1:
            kept = [other for other in kept if other is not clue]
    return kept


def assignments(puzzle: Puzzle) -> list[tuple[int, ...]]:
    """Return all assignments that the first line of a small puzzle allows."""
    if puzzle.sort == "order":
        parts = product(*(permutations(puzzle.values) for _ in puzzle.groups))
        return [tuple(value for part in several for value in part) for several in parts]
    return list(product(puzzle.values, repeat=len(puzzle.names)))


def _is_plain(clue: Node) -> bool:
    """Return whether a clue states a value directly."""
    return clue[0] == "=" and clue[1][0] == "var" and clue[2][0] == "num"


def _true_clue(rng: Random, frame: Puzzle, solution: tuple[int, ...], among: list[int]) -> Node | None:
    for _ in range(12):
        clue = _draw_clue(rng, frame, solution, among, rng.choice(among))
        if clue is not None and compile_clue(clue)(solution):
            return clue
    return None


def _draw_clue(rng: Random, frame: Puzzle, solution: tuple[int, ...], among: list[int], at: int) -> Node | None:
    """Draw a true clue about ``at`` and others of ``among``."""
    if frame.sort == "knights":
        return _draw_statement(rng, among, at, solution)
    others = [i for i in among if i != at]
    if not others:
        return _draw_about_one(rng, frame, solution, at)
    other = rng.choice(others)
    draw_pair = _draw_sum if frame.sort == "number" else _draw_places
    roll = rng.random()
    if roll < 0.12:
        return _draw_about_one(rng, frame, solution, at)
    if roll < 0.2:
        parts = [_draw_about_one(rng, frame, (rng.choice(frame.values),) * len(solution), i) for i in (at, other)]
        return ("or", parts[0], parts[1])
    return draw_pair(rng, solution, at, other)


def _draw_about_one(rng: Random, frame: Puzzle, solution: tuple[int, ...], at: int) -> Node:
    me, value = ("var", at), solution[at]
    roll = rng.random()
    if frame.sort == "number" and roll < 0.35:
        by = rng.choice((2, 3, 4))
        return ("=", ("%", me, ("num", by)), ("num", value % by))
    if roll < 0.55:
        return ("=", me, ("num", value))
    relation = rng.choice(("!=", "<", ">"))
    apart = {"!=": rng.choice(frame.values), "<": min(value + 1, frame.high), ">": max(value - 1, frame.low)}
    return (relation, me, ("num", apart[relation]))


def _draw_places(rng: Random, solution: tuple[int, ...], at: int, other: int) -> Node:
    a, b = ("var", at), ("var", other)
    apart = solution[at] - solution[other]
    roll = rng.random()
    if roll < 0.35:
        return ("<", a, b) if apart < 0 else (">", a, b) if rng.random() < 0.3 else ("<", b, a)
    if roll < 0.65:
        if apart == 0:
            return ("=", a, b)
        return ("=", a, ("+", b, ("num", apart))) if apart > 0 else ("=", b, ("+", a, ("num", -apart)))
    if roll < 0.85:
        return ("=", ("abs", ("-", a, b)), ("num", abs(apart)))
    if roll < 0.95:
        return ("=", ("+", a, b), ("num", solution[at] + solution[other]))
    return ("!=", a, b)


def _draw_sum(rng: Random, solution: tuple[int, ...], at: int, other: int) -> Node:
    a, b = ("var", at), ("var", other)
    x, y = solution[at], solution[other]
    roll = rng.random()
    if roll < 0.3:
        return ("=", ("+", a, b), ("num", x + y))
    if roll < 0.5:
        return ("=", ("-", a, b), ("num", x - y)) if x >= y else ("=", ("-", b, a), ("num", y - x))
    if roll < 0.65:
        return ("=", ("*", a, b), ("num", x * y))
    if roll < 0.75 and y and x > y and x % y == 0:
        return ("=", a, ("*", ("num", x // y), b))
    if roll < 0.85:
        return ("=", ("+", a, ("*", ("num", 2), b)), ("num", x + 2 * y))
    return ("=", a, b) if x == y else ("<", a, b) if x < y else (">", a, b)


def _draw_statement(rng: Random, among: list[int], at: int, solution: tuple[int, ...]) -> Node:
    """Draw a statement by one of the speakers about ``at``, and perhaps about others."""
    speaker = rng.choice(among)
    second = rng.choice(among)
    a, b = _literal(rng, at), _literal(rng, second)
    roll = rng.random()
    if roll < 0.3 or second == at:
        said: Node = a
        if roll < 0.12 and len(among) > 2:
            some = sorted(rng.sample(among, 3))
            total: Node = ("var", some[0])
            for i in some[1:]:
                total = ("+", total, ("var", i))
            said = (rng.choice(("=", "=", ">", "<")), total, ("num", rng.choice((1, 2, 2))))
    elif roll < 0.6:
        said = (rng.choice(("=", "!=")), ("var", min(at, second)), ("var", max(at, second)))
    else:
        said = (rng.choice(("and", "or")), a, b)
    return ("says", speaker, said)


def _literal(rng: Random, at: int) -> Node:
    node: Node = ("=", ("var", at), ("num", 1))
    return ("not", node) if rng.random() < 0.45 else node
