"""Verified answers of one student as examples for the others."""

from redqueen.learn.sharing import shared_rollouts
from redqueen.nouns import Attempt, Completion, Grade, Individual, Outcome, Rating, Task
from redqueen.solve.solving import Answered

RIGHT, WRONG, LOST = Grade(True, "ok"), Grade(False, "ok"), Grade(False, "infra", lost=True)
STUDENTS = [Individual(f"S{i}", "student", i, Rating(25, 8)) for i in (1, 2, 3)]


def completion(mark: int, length: int = 2) -> Completion:
    return Completion((mark,) * length, (-1.0,) * length, 1.0, True)


def answered(name: str, student: int, *grades: Grade, lengths: tuple[int, ...] = ()) -> Answered:
    task = Task(name, "T1", "S1", "code_o", "def f(x):\n    return x\n", ("1",), ("1",))
    outcomes = tuple(Outcome(Attempt(name, f"S{student}", "text", "1"), grade) for grade in grades)
    lengths = lengths or (2,) * len(grades)
    completions = tuple(completion(10 * student + i, n) for i, n in enumerate(lengths))
    return Answered(task, STUDENTS[student - 1], (7, 8), completions, outcomes)


def test_a_right_answer_is_an_example_for_every_other_student() -> None:
    found = shared_rollouts([answered("a", 1, WRONG, RIGHT)], STUDENTS, 0.5)
    assert [(r.slot, r.prompt, r.completions, r.advantages) for r in found] == [
        (slot, (7, 8), (completion(11),), (0.5,)) for slot in (2, 3)
    ]


def test_who_solved_it_needs_no_example_and_the_shortest_right_answer_is_shown() -> None:
    one = answered("a", 1, RIGHT, WRONG, RIGHT, lengths=(9, 1, 4))
    two = answered("a", 2, WRONG, RIGHT, WRONG, lengths=(1, 3, 1))
    (rollout,) = shared_rollouts([one, two], STUDENTS, 1.0)
    assert (rollout.slot, rollout.completions) == (3, (completion(21, 3),))


def test_what_was_always_solved_never_solved_or_lost_is_not_shared() -> None:
    answers = [answered("a", 1, RIGHT, RIGHT, LOST), answered("b", 2, WRONG, LOST), answered("c", 3, LOST)]
    assert shared_rollouts(answers, STUDENTS, 1.0) == []


def test_at_weight_0_nothing_is_shared() -> None:
    assert shared_rollouts([answered("a", 1, WRONG, RIGHT)], STUDENTS, 0.0) == []
