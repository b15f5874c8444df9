"""What a teacher of the compact format writes is held to the assignment that it wrote first."""

import sys
from types import FrameType

import pytest

from redqueen.config import parse_config
from redqueen.domains.logic.checking import repair
from redqueen.domains.logic.deduction import solve
from redqueen.domains.logic.language import read_puzzle
from redqueen.domains.prompt_format import choose_format
from redqueen.errors import UserError


def test_a_clue_that_is_false_of_the_assignment_is_struck():
    assert repair("A = 1, B = 2, C = 3", "order A B C\nA < B\nC < B\nB < C") == "order A B C\nA < B\nB < C"


def test_a_name_that_stays_open_is_told():
    assert repair("x = 3, y = 4", "number x y, 1 9\nx * y = 12") == "number x y, 1 9\nx * y = 12\nx = 3"
    for plan, said in (("A = 1, B = 0", "A: A"), ("A = 0, B = 1", "A: not B"), ("A = 1, B = 1", "B: B or not A")):
        mended = read_puzzle(repair(plan, f"knights A B\n{said}"))
        (solution,) = solve(mended).solutions
        assert ", ".join(f"{name} = {value}" for name, value in zip("AB", solution, strict=True)) == plan


def test_what_needs_more_than_that_is_left_as_it_is():
    for plan, text in (
        ("A = 1, B = 2, C = 3", "order A B C\nC < B"),  # nothing of it is true
        ("a = 1, b = 2, c = 3, d = 4", "number a b c d, 1 9\na < b"),  # too much is open
        ("A = 1, B = 1", "order A B\nA = 1"),  # no such order
        ("x = 12, y = 1", "number x y, 1 9\nx > y"),  # out of range
        ("A = 1", "order A B\nA < B\nB < A"),
        ("A < B", "order A B\nA < B\nB < A"),
        ("", "order A B C\nA < B"),
        ("A = 1, B = 2", "no puzzle"),
    ):
        assert repair(plan, text) == text


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"
LABORIOUS = {
    "one long sum": f"order {' '.join(LETTERS)}\n"
    + " + ".join(f"{name} * {place}" for place, name in enumerate(LETTERS, start=1))
    + " = 5525\nA - B * C + D * E - F * G < 100",
    "long sums, many values": f"number {' '.join(LETTERS)}, 0 99\n"
    + "\n".join([" + ".join(LETTERS) + " > 24", " + ".join(f"{name} * {name}" for name in LETTERS) + " > 24"] * 5),
    "many passes": f"order {' '.join(LETTERS)}\n" + "\n".join(["A + B > 2", "A * B * C > 1"] * 12),
    "long clues": "number a b c, 0 9\n" + "\n".join(["a * b" + " + a + b + c" * 25 + " >= 0"] * 6),
    "knights": f"knights {' '.join(LETTERS)}\n"
    + "\n".join(f"{name}: {' + '.join(LETTERS)} > 0" for name in LETTERS[:15]),
}
MOST_CALLS = 2_000_000
"""Calls of functions in holding one proposal to its plan: some 0.2 s."""


@pytest.mark.parametrize("name", LABORIOUS)
def test_a_laborious_proposal_is_held_to_its_plan_in_bounded_work(name: str) -> None:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    names = read_puzzle(LABORIOUS[name]).names
    places = range(1, len(names) + 1) if name in ("one long sum", "many passes") else [1] * len(names)
    plan = ", ".join(f"{name} = {place}" for name, place in zip(names, places, strict=True))
    sys.setprofile(count)
    try:
        repair(plan, LABORIOUS[name])
    finally:
        sys.setprofile(None)
    assert calls < MOST_CALLS


def test_a_run_without_the_solver_is_refused_before_it_begins(monkeypatch):
    config = parse_config({"propose": {"domains": ["logic"]}}, "test")
    choose_format(config)
    monkeypatch.setattr("redqueen.domains.logic.kinds.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"z3, which is not installed: pip install 'redqueen\[logic\]'"):
        choose_format(config)
