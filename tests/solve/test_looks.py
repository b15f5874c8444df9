"""Two looks: what is asked again, and how the attempts are put together."""

import pytest

from redqueen.config import parse_config
from redqueen.errors import UserError
from redqueen.nouns import Attempt, Completion, Grade, Individual, Outcome, Rating, Task
from redqueen.solve.looks import joined, undecided
from redqueen.solve.solving import Answered

GRADES = {"r": Grade(True, "ok"), "w": Grade(False, "ok"), "l": Grade(False, "infra", lost=True)}


def answered(name: str, grades: str, student: str = "S1", mark: int = 0) -> Answered:
    task = Task(name, "T1", student, "code_o", "def f(x):\n    return x\n", ("1",), ("1",))
    outcomes = tuple(Outcome(Attempt(name, student, "text", "1"), GRADES[g]) for g in grades)
    completions = tuple(Completion((mark + i,), (-1.0,), 1.0, True) for i in range(len(grades)))
    return Answered(task, Individual(student, "student", 0, Rating(25, 8)), (1,), completions, outcomes)


def test_only_where_the_first_attempts_disagree_there_are_more() -> None:
    looked = [
        answered(name, grades) for name, grades in (("a", "rw"), ("b", "rr"), ("c", "ww"), ("d", "rl"), ("e", "ll"))
    ]
    assert [one.task.id for one in undecided(looked)] == ["a"]


def test_the_attempts_of_the_second_look_stand_behind_those_of_the_first() -> None:
    first = [answered("a", "rw"), answered("b", "rr"), answered("a", "rw", "S2")]
    second = [answered("a", "www", "S2", mark=50), answered("a", "rrw", mark=70)]
    found = joined(first, second)
    assert [[o.grade.correct for o in one.outcomes] for one in found] == [
        [True, False, True, True, False], [True, True], [True, False, False, False, False],
    ]  # fmt: skip
    assert [c.tokens[0] for c in found[0].completions] == [0, 1, 70, 71, 72]
    assert found[0].solve_frac == 0.6


@pytest.mark.parametrize("first", [1, 8, 9])
def test_a_first_look_that_cannot_disagree_or_leaves_nothing_is_refused(first: int) -> None:
    with pytest.raises(UserError, match="first_attempts must be 0, or at least 2 and below num_attempts"):
        parse_config({"solve": {"num_attempts": 8, "first_attempts": first}}, "test")
