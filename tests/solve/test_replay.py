"""Which archived tasks are asked again, and who is asked."""

import numpy as np

from redqueen.config import SolveConfig
from redqueen.nouns import Individual, Rating, Task
from redqueen.propose.archive import Archived, TaskArchive
from redqueen.solve.replay import replays

STUDENTS = [Individual(f"S{i}", "student", i, Rating(25, 8)) for i in range(3)]


def archive(num: int) -> TaskArchive:
    tasks = [Task(f"t{i}", "T1", "S1", "code_o", "def f(x): return x", ("1",), ("1",)) for i in range(num)]
    return TaskArchive(64, tuple(Archived(task, 1, 1, 0.5) for task in tasks))


def asked(num_archived: int, num_fresh: int, frac: float) -> list[tuple[Task, Individual]]:
    config = SolveConfig(replay_frac=frac)
    return replays(archive(num_archived), STUDENTS, num_fresh, config, 5, np.random.default_rng(0))


def test_a_third_of_all_tasks_is_half_as_many_as_the_new_ones() -> None:
    found = asked(40, 18, 1 / 3)
    assert len(found) == 9 and len({task.id for task, _ in found}) == 9
    assert sorted(student.id for _, student in found) == sorted(["S0", "S1", "S2"] * 3)


def test_an_empty_archive_has_nothing_to_ask_and_neither_has_a_share_of_0() -> None:
    assert asked(0, 18, 0.5) == asked(40, 18, 0.0) == asked(40, 0, 0.5) == []


def test_a_small_archive_is_asked_whole() -> None:
    assert len(asked(2, 18, 0.5)) == 2
