"""The frozen suite of mathematics: its answers are right, and each item is a task that the judge accepts."""

from collections import Counter

import pytest

from redqueen.domains.maths.kinds import MATHS, load_suite
from redqueen.domains.registry import check, grade
from redqueen.records import Candidate, Task
from redqueen_sandbox import Sandbox


def test_every_level_has_as_many_statements_as_word_problems() -> None:
    counts = Counter((item.stratum, item.kind) for item in load_suite())
    by_level = {"exercises/1": 200, "exercises/2": 700, "exercises/3": 700}
    assert counts == {(level, kind): n for level, n in by_level.items() for kind in ("maths_formal", "maths_word")}
    assert len({item.id for item in load_suite()}) == 3_200 == len(MATHS.suite())


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_items_are_tasks_for_the_judge_with_the_recorded_answers(every: int, verifier: Sandbox) -> None:
    items = load_suite()[::every]
    proposed = [Candidate(i.id, "T1", "S1", i.kind, "", i.task.code, message=i.task.message) for i in items]
    judged = check(proposed, verifier)
    assert [v.outputs if isinstance(v, Task) else v for v in judged] == [item.task.outputs for item in items]
    grades = grade([(item.task, MATHS.kinds[0].gold(item.task)) for item in items], verifier)
    assert all(one.correct for one in grades)
    changed = grade([(item.task, item.task.outputs[0] + "1") for item in items], verifier)
    assert not any(one.correct for one in changed)
