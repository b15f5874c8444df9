"""Nothing of the frozen suite is trained on."""

import pytest

from redqueen.domains.registry import DOMAINS
from redqueen.propose.filters import reject_held_out
from redqueen.records import Candidate, Rejection, Task


def reasons(*tasks: Task) -> list[str]:
    candidates = [Candidate(task.id, "T1", "S1", task.kind, "text") for task in tasks]
    judged = reject_held_out(candidates, tasks)
    return [one.reason if isinstance(one, Rejection) else "ok" for one in judged]


def statement(code: str) -> Task:
    return Task("a", "T1", "S1", "maths_formal", code, ("",), ("4",))


@pytest.mark.parametrize("name", ["code", "maths", "logic"])
def test_every_item_of_a_domains_suite_is_refused_as_a_task(name: str) -> None:
    items = DOMAINS[name].suite()[::7]
    assert set(reasons(*(item.task for item in items))) == {"held-out"}


def test_an_item_under_other_names_and_in_another_order_is_refused() -> None:
    item = "y where x + y = 12, x - y = 4"
    assert item in {one.task.code for one in DOMAINS["maths"].suite()}
    assert reasons(statement(item), statement("b where a - b = 4, a + b = 12")) == ["held-out"] * 2


def test_what_the_suite_does_not_ask_may_be_asked() -> None:
    assert reasons(statement("x where 731*x = 1462"), statement("918273*645")) == ["ok", "ok"]


def test_of_a_program_in_the_suite_nothing_is_asked_whatever_the_input() -> None:
    item = next(one.task for one in DOMAINS["code"].suite() if one.kind == "code_o")
    assert reasons(Task("a", "T1", "S1", "code_i", item.code, ("99, 98",), ("1",))) == ["held-out"]


def test_what_was_rejected_already_keeps_its_reason() -> None:
    bad = Rejection(Candidate("a", "T1", "S1", "code_o", "text"), "syntax")
    assert reject_held_out([bad.candidate], [bad]) == [bad]
