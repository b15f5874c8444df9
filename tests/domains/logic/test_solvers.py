"""Three solvers that share no code but the parser: z3, deduction with trying, and plain enumeration."""

from collections import Counter
from itertools import permutations
from random import Random

import pytest

from recipes.embedded_base.puzzles import assignments, draw
from recipes.embedded_base.suites import LEVELS, TASKS_PER_LEVEL, puzzle_level
from redqueen.domains.logic.checking import is_solution
from redqueen.domains.logic.deduction import MAX_WORK, Solver, TooHardError, compile_clue, solve, trace
from redqueen.domains.logic.kinds import LOGIC, PUZZLE
from redqueen.domains.logic.language import Puzzle, read_puzzle, write_answer, write_puzzle
from redqueen.domains.logic.measures import effort, measure, normal_form, size_of, sort_of
from redqueen.domains.logic.smt import judge
from redqueen.records import Task


def enumerated(puzzle: Puzzle) -> list[tuple[int, ...]]:
    """Return all solutions by trying every assignment."""
    clues = [compile_clue(clue) for clue in puzzle.clues]
    return [values for values in assignments(puzzle) if all(is_true(values) for is_true in clues)]


def verdict(solutions: list[tuple[int, ...]]) -> str:
    return ("contradictory", "ok", "ambiguous")[min(2, len(solutions))]


def thinned(rng: Random, puzzle: Puzzle) -> Puzzle:
    """Leave a clue out, or turn one into its contrary, or leave the puzzle as it is."""
    clues = list(puzzle.clues)
    at = rng.randrange(len(clues))
    if rng.random() < 0.4 and len(clues) > 1:
        del clues[at]
    elif rng.random() < 0.4 and clues[at][0] != "says":
        clues[at] = ("not", clues[at])
    return Puzzle(puzzle.sort, puzzle.groups, puzzle.low, puzzle.high, tuple(clues))


def test_all_three_agree_on_puzzles_with_no_solution_one_and_several():
    rng = Random("agreement")
    seen = set()
    for _ in range(150):
        puzzle = thinned(rng, draw(rng).puzzle)
        solutions = enumerated(puzzle)
        found = judge(write_puzzle(puzzle))
        assert found[0] == verdict(solutions) == verdict(solve(puzzle).solutions), write_puzzle(puzzle)
        if len(solutions) == 1:
            assert found[2] == write_answer(puzzle, solutions[0]) and solve(puzzle).solutions == solutions
        seen.add(found[0])
    assert seen == {"ok", "contradictory", "ambiguous"}


def knights_and_knaves(rng: Random) -> str:
    """An item of the public kind: everybody says of somebody what he is, or of two that they are alike or both."""
    names = "ABCDE"[: rng.randint(2, 5)]
    forms = ("{0}: {1}", "{0}: not {1}", "{0}: {1} and {2}", "{0}: {1} or not {2}", "{0}: {1} = {2}", "{0}: {1} != {2}")
    clues = [rng.choice(forms).format(name, rng.choice(names), rng.choice(names)) for name in names]
    return f"knights {' '.join(names)}\n" + "\n".join(clues)


def countdown(rng: Random) -> str:
    """An item of the public kind: put given numbers into the places of a sum so that it comes to a target."""
    numbers = sorted(rng.sample(range(1, 26), 3))
    a, b, c = rng.sample(numbers, 3)
    shape, value = rng.choice(
        (("a * b - c", a * b - c), ("2 * a + b - c", 2 * a + b - c), ("a * a - b * c", a * a - b * c))
    )
    given = ["(" + " or ".join(f"{name} = {number}" for number in numbers) + ")" for name in "abc"]
    apart = ["a != b", "b != c", "a != c"]
    return "\n".join(
        ["number a b c, 1 25", *given, *apart, f"{shape} = {abs(value)}" if value >= 0 else f"0 - {-value} = {shape}"]
    )


@pytest.mark.parametrize("item", [knights_and_knaves, countdown])
def test_items_of_public_kinds_are_solved_as_enumeration_solves_them(item):
    rng = Random(item.__name__)
    seen = set()
    for _ in range(60):
        puzzle = read_puzzle(item(rng))
        if item is countdown:
            solutions = [values for values in _placements(puzzle) if is_solution(puzzle, _named(puzzle, values))]
        else:
            solutions = enumerated(puzzle)
        found = judge(write_puzzle(puzzle))
        assert found[0] == verdict(solutions), write_puzzle(puzzle)
        assert found[0] != "ok" or found[2] == write_answer(puzzle, solutions[0])
        seen.add(found[0])
    assert {"ok", "ambiguous"} <= seen


def _placements(puzzle: Puzzle) -> list[tuple[int, ...]]:
    given = sorted({node[2][1] for node in _leaves(puzzle.clues[0])})
    return list(permutations(given))


def _leaves(node):
    return [node] if node[0] == "=" else [leaf for part in node[1:] for leaf in _leaves(part)]


def _named(puzzle: Puzzle, values: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(puzzle.names, values, strict=True))


ZEBRA = """order red green ivory yellow blue, English Spaniard Ukraine Norway Japan, coffee tea milk juice water, \
OldGold Kools Chester Lucky Parlia, dog snails fox horse zebra
English = red
Spaniard = dog
coffee = green
Ukraine = tea
green = ivory + 1
OldGold = snails
Kools = yellow
milk = 3
Norway = 1
|Chester - fox| = 1
|Kools - horse| = 1
Lucky = juice
Japan = Parlia
|Norway - blue| = 1"""


def test_the_zebra_puzzle_is_solved_by_both_solvers():
    puzzle = read_puzzle(ZEBRA)
    (solution,) = solve(puzzle).solutions
    found = judge(ZEBRA)
    assert found == ("ok", ZEBRA, write_answer(puzzle, solution))
    values = _named(puzzle, solution)
    assert values["zebra"] == values["Japan"] and values["water"] == values["Norway"]  # as is well known


def test_deduction_writes_what_follows_from_which_clue():
    text = "order A B C D\nB < D\nA = C + 1\n|D - C| = 2\nD != 4"
    assert trace(read_puzzle(text)).split("\n")[:3] == [
        "B < D: B123 D234",
        "A = C + 1: A234 C123",
        "|D - C| = 2: C12 D34",
    ]
    text = "knights A B C\nA: not B\nB: A = C\nC: not A\nC: A and B or A"
    lines = trace(read_puzzle(text)).split("\n")
    assert (
        lines[0] == "try A1"
        and any(line.endswith(": no") for line in lines)
        and any(line.startswith("back: A0") for line in lines)
    )


def test_deduction_gives_up_in_bounded_work():
    names = " ".join("abcdefgh")
    text = f"number {names}, 0 9\n" + "\n".join(
        f"{a} * {b} + {c} % 7 != {d} * {d} + 1" for a, b, c, d in ("abcd", "efgh", "hgfa")
    )
    text += "\na + b + c + d + e + f + g + h = 50\na * b * c = d * e * f + 7"
    solver = Solver(read_puzzle(text))
    with pytest.raises(TooHardError):
        solver.solve(most=10**9)
    assert MAX_WORK < solver.counts.work <= 1.1 * MAX_WORK
    assert effort(text).work <= 1.1 * MAX_WORK  # a measure is a number all the same


def test_difficulty_is_the_solvers_own_count():
    easy, hard = "order A B C\nA = 1\nB = 2", "knights A B C\nA: B = C\nB: A and not C\nC: A or B"
    tasks = [Task("1", "", "", PUZZLE.name, text, ("",), ("",)) for text in (easy, hard)]
    assert measure(tasks[0]) == {"clues": 2.0, "names": 3.0, "deductions": 4.0, "decisions": 0.0, "conflicts": 0.0}
    assert measure(tasks[1])["decisions"] > 0 and puzzle_level(hard) > puzzle_level(easy)
    assert sort_of(tasks[0]) == "logic_puzzle order plain" and sort_of(tasks[1]) == "logic_puzzle knights and+not+or"
    assert size_of(tasks[1]) == "logic_puzzle names 3 clues 2"


def test_the_normal_form_forgets_names_the_order_of_clues_and_sides():
    one = "order A B C D\nA < B\n|B - D| = 1\nC = A + 2"
    two = "order W X Y Z\nW = Z + 2\n1 = |Y - X|\nY > Z"
    three = "order A B C D\nA < B\n|B - D| = 1\nC = A + 1"
    forms = [normal_form(read_puzzle(text)) for text in (one, two, three)]
    assert forms[0] == forms[1] != forms[2]


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_the_frozen_suite_has_as_many_puzzles_of_every_level_and_z3_agrees_with_its_answers(every: int):
    items = LOGIC.suite()
    assert Counter(item.stratum for item in items) == {f"puzzles/{level}": TASKS_PER_LEVEL for level in LEVELS}
    for item in items[::every]:
        assert judge(item.task.code) == ("ok", item.task.code, item.task.outputs[0])
