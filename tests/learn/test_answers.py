"""The archive of verified answers: what it keeps, which answer is drawn, how it is stored."""

import json
from collections.abc import Sequence

import pytest
from pydantic import TypeAdapter, ValidationError

from redqueen.learn.answers import AnswerArchive
from redqueen.records import Attempt, Grade, Individual, Outcome, Rating, Task
from redqueen.solve import GradedAttempts
from redqueen.streams import Streams

STORED = TypeAdapter(AnswerArchive)


def answered(name: str, texts: Sequence[str], code: str = "", student: str = "S1") -> GradedAttempts:
    """Attempts at one task; those whose text begins with "right" are correct."""
    task = Task(name, "T1", student, "code_o", code or f"def f(x):\n    return x + {name}\n", ("1",), ("2",))
    outcomes = [Outcome(Attempt(name, student, t, t), Grade(t.startswith("right"), "ok")) for t in texts]
    return GradedAttempts(task, Individual(student, "student", 2, Rating(25.0, 8.0)), (), (), tuple(outcomes))


def filled(num_tasks: int, capacity: int = 100, seed: int = 0) -> AnswerArchive:
    archive = AnswerArchive(capacity)
    for step in range(1, num_tasks + 1):
        archive = archive.add([answered(str(step), [f"right {i}" for i in range(8)])], Streams(seed, step))
    return archive


def test_it_keeps_one_correct_answer_of_each_solved_task_with_the_step_in_order() -> None:
    step = [answered("1", ["wrong", "right a"]), answered("2", ["wrong"]), answered("3", ["right b", "right c"])]
    archive = AnswerArchive(10).add(step, Streams(0, 7))
    found = [(one.task.id, one.step) for one in archive.by_task.values()]
    assert found == [("1", 7), ("3", 7)]
    assert next(iter(archive.by_task.values())).text == "right a"


def test_an_answer_is_drawn_from_all_students_by_seed_step_and_task_alone() -> None:
    ours, theirs = answered("1", ["right a", "right b"]), answered("1", ["right c", "right d"], student="S2")
    other = answered("2", ["right e"])

    def drawn(seed: int, step: int, *others: GradedAttempts) -> str:
        archive = AnswerArchive(10).add([*others, ours, theirs], Streams(seed, step))
        return next(one.text for one in archive.by_task.values() if one.task.id == "1")

    assert {drawn(seed, 1) for seed in range(40)} == {f"right {name}" for name in "abcd"}
    assert len({drawn(0, step) for step in range(40)}) == 4
    assert all(drawn(seed, 1) == drawn(seed, 1, other) for seed in range(10))


def test_a_task_that_is_posed_again_in_another_layout_keeps_its_first_answer() -> None:
    first = AnswerArchive(10).add([answered("1", ["right"])], Streams(0, 1))
    again = answered("9", ["right later"], code="def f(y):\n    return (y + 1)\n")
    assert first.add([again], Streams(0, 2)) == first


def test_beyond_its_capacity_it_keeps_a_sample_that_favours_no_age_and_is_the_same_at_any_pace() -> None:
    whole, small = filled(200, capacity=1000), filled(200, capacity=20)
    assert len(whole.by_task) == 200 and len(small.by_task) == 20
    steps = [one.step for one in small.by_task.values()]
    assert steps == sorted(steps) and steps[0] <= 50 and steps[-1] >= 150
    at_once = AnswerArchive(20).add(
        [answered(str(i), [f"right {k}" for k in range(8)]) for i in range(1, 201)], Streams(0, 1)
    )
    assert list(at_once.by_task) == list(small.by_task)


def test_without_a_capacity_it_keeps_nothing() -> None:
    assert filled(3, capacity=0) == AnswerArchive()


def test_it_is_stored_compactly_and_read_back_exactly() -> None:
    archive = filled(300).add([answered("odd", ["right \ud800"])], Streams(0, 500))
    text = json.dumps(STORED.dump_python(archive, mode="json"))
    assert STORED.validate_python(json.loads(text)) == archive
    assert len(text) < 80 * len(archive.by_task)
    with pytest.raises(ValidationError, match="cannot be unpacked"):
        STORED.validate_python({"capacity": 1, "by_task": "bm90IGNvbXByZXNzZWQ="})
