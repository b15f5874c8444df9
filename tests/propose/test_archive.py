"""The archive: a uniform sample of all tasks, and what is drawn from it."""

import numpy as np
import pytest

from redqueen.propose.buffer import Archived, TaskArchive, draw_of_all_ages
from redqueen.records import Task


def task(name: str, kind: str = "code_o") -> Task:
    return Task(name, "T1", "S1", kind, f"def f(x):\n    return {name!r}\n", ("1",), ("2",))


def archived(name: str, step: int = 1, solved: float = 0.5) -> Archived:
    return Archived(task(name), step, solved)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_without_capacity_nothing_is_kept_and_tasks_that_nobody_attempted_are_not() -> None:
    assert TaskArchive().add([task("a")], {"a": 0.5}, 1).entries == ()
    assert TaskArchive(8).add([task("a"), task("b")], {"b": 0.25}, 3).entries == (Archived(task("b"), 3, 0.25),)


def test_what_is_kept_is_a_uniform_sample_of_all_times() -> None:
    archive = TaskArchive(100)
    for step in range(1, 101):
        names = [f"{step}-{i}" for i in range(10)]
        archive = archive.add(map(task, names), dict.fromkeys(names, 0.5), step)
    steps = [one.step for one in archive.entries]
    assert len(steps) == 100 and steps == sorted(steps)
    assert [sum(low < s <= low + 50 for s in steps) for low in (0, 50)] == pytest.approx([50, 50], abs=15)


def test_a_look_renews_the_share_of_what_was_with_solve_fracs() -> None:
    before = TaskArchive(8, (archived("a"), archived("b")))
    assert before.with_solve_fracs({"b": 0.75}).entries == (archived("a"), archived("b", 1, 0.75))


def test_openness_is_largest_where_half_of_the_attempts_are_right() -> None:
    assert [archived("a", solved=p).openness for p in (0.0, 0.5, 1.0)] == pytest.approx([0.05, 0.3, 0.05])


def test_a_probe_has_tasks_of_all_kinds_and_ages() -> None:
    entries = [Archived(task(f"{kind}{step}", kind), step, 0.5) for step in range(40) for kind in KINDS]
    drawn = draw_of_all_ages(entries, 12, rng())
    assert len({one.task.id for one in drawn}) == 12
    for kind in KINDS:
        steps = [one.step for one in drawn if one.task.kind == kind]
        assert [step // 10 for step in steps] == [0, 1, 2, 3]


KINDS = ("code_o", "code_i", "code_f")


def test_a_probe_prefers_tasks_that_some_solve_and_some_do_not() -> None:
    entries = [archived(f"{i}", solved=0.5 if i % 2 else 1.0) for i in range(1000)]
    drawn = draw_of_all_ages(entries, 100, rng())
    # An open task has six times the weight, so 6/7 of those drawn are open.
    assert sum(one.solved_frac == 0.5 for one in drawn) == pytest.approx(600 / 7, abs=12)


def test_a_probe_of_a_small_archive_is_the_whole_archive() -> None:
    entries = [archived("a"), archived("b")]
    assert draw_of_all_ages(entries, 50, rng()) == entries and draw_of_all_ages([], 5, rng()) == []


def test_what_one_kind_lacks_in_a_probe_the_others_give() -> None:
    few = [Archived(task(f"o{i}", "code_o"), i, 0.5) for i in range(1)]
    some = [Archived(task(f"f{i}", "code_f"), i, 0.5) for i in range(3)]
    many = [Archived(task(f"i{i}", "code_i"), i, 0.5) for i in range(100)]
    for num, expected in ((8, [1, 4, 3]), (9, [1, 5, 3]), (40, [1, 36, 3]), (104, [1, 100, 3]), (500, [1, 100, 3])):
        drawn = draw_of_all_ages([*few, *many, *some], num, rng())
        assert [sum(one.task.kind == kind for one in drawn) for kind in KINDS] == expected
        assert len({one.task.id for one in drawn}) == len(drawn)


def test_where_every_kind_has_enough_a_probe_draws_what_it_drew_before() -> None:
    entries = [Archived(task(f"{kind}{step}", kind), step, 0.5) for step in range(9) for kind in KINDS]
    assert [one.task.id for one in draw_of_all_ages(entries, 7, rng(3))] == DRAWN_BEFORE


DRAWN_BEFORE = ["code_o0", "code_o5", "code_i3", "code_i6", "code_f0", "code_f4", "code_f7"]
