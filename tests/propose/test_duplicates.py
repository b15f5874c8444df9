"""Refusing what was asked before."""

from dataclasses import replace

from redqueen.domains.code.checking import signature
from redqueen.domains.code.kinds import IDENTITY
from redqueen.domains.registry import check
from redqueen.propose.buffer import TaskBuffer, task_key
from redqueen.propose.filters import reject_duplicates
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Sandbox

DOUBLE = "def f(x):\n    return x * 2\n"
RENAMED = "def f(n):\n    return n * 2\n"


def candidate(name: str) -> Candidate:
    return Candidate(name, "T1", "S1", "code_o", "text")


def task(name: str, code: str = DOUBLE, input_: str = "1", kind: str = "code_o") -> Task:
    return Task(name, "T1", "S1", kind, code, (input_,), ("2",))


def reasons(judged: list[Task | Rejection], asked: list[Task]) -> list[str]:
    candidates = [candidate(str(i)) for i in range(len(judged))]
    result = reject_duplicates(candidates, judged, map(task_key, asked), range(len(judged)))
    assert [r.candidate.id for r in result if isinstance(r, Rejection) and r.reason == "duplicate"] == [
        str(i) for i, r in enumerate(result) if isinstance(r, Rejection) and r.reason == "duplicate"
    ]
    return [r.reason if isinstance(r, Rejection) else "ok" for r in result]


def test_a_task_that_was_asked_before_is_refused_also_under_other_names() -> None:
    assert reasons([task("a"), task("b", RENAMED)], [task("old")]) == ["duplicate", "duplicate"]


def test_of_equal_tasks_in_one_step_the_first_stays() -> None:
    assert reasons([task("a"), task("b", RENAMED), task("c", input_="2")], []) == ["ok", "duplicate", "ok"]


def test_the_same_program_asked_in_another_way_is_another_task() -> None:
    assert (
        reasons([task("a"), task("b", kind="code_i"), task("c", input_="3")], [task("old", input_="9")]) == ["ok"] * 3
    )


def test_another_program_that_gives_the_same_for_these_inputs_and_others_is_a_duplicate(verifier: Sandbox) -> None:
    total = "def f(x):\n    return sum(x)\n"
    others = {
        "def f(x):\n    n = 0\n    for i in x:\n        n += i\n    return n\n": "duplicate",
        "def f(x):\n    return sum(x[::-1]) + 0\n": "duplicate",
        "def f(x):\n    return sum(x) if len(x) == 3 else 0\n": "ok",
        "def f(x):\n    return sum(set(x))\n": "ok",
        "def f(x):\n    return [1, 2, 4, sum(x)][-1]\n": "duplicate",
    }
    asked = [replace(candidate(str(i)), code=code, inputs=("[1, 2, 4]",)) for i, code in enumerate([total, *others])]
    first, *judged = check(asked, verifier)
    elsewhere = check([replace(one, inputs=("[5, 1, 7]",)) for one in asked[1:]], verifier)
    buffer = TaskBuffer(8).add([one for one in [first] if isinstance(one, Task)])
    for found, wanted in ((judged, [*others.values()]), (elsewhere[:1], ["ok"])):
        result = reject_duplicates(asked[1 : 1 + len(found)], found, buffer.asked, range(len(found)))
        assert [getattr(one, "reason", "ok") for one in result] == wanted


def test_a_signature_makes_no_duplicate_of_a_task_with_other_inputs() -> None:
    other = "def f(x):\n    return x + x\n"
    judged = [
        replace(task(name, code, given), signature="s")
        for name, code, given in (("a", DOUBLE, "1"), ("b", other, "2"), ("c", other, "1"))
    ]
    assert reasons([*judged], []) == ["ok", "ok", "duplicate"]


def test_few_or_like_outputs_tell_programs_apart_by_their_text_alone() -> None:
    assert signature(["1", "2", "3", "4", "1", "1", "1"]) == signature(["1", "2", "3"] * 5) == ""
    assert signature(["1", "2", "3", "4"] * 2) == signature(("1", "2", "3", "4") * 2) != ""
    assert signature(["1", "2", "3", "4"] * 2) != signature(["1", "2", "4", "3"] * 2)


def test_what_was_rejected_already_keeps_its_reason_and_blocks_nothing() -> None:
    bad = Rejection(candidate("x"), "syntax")
    assert reasons([bad, task("a")], []) == ["syntax", "ok"]


def test_what_was_asked_is_remembered_though_the_buffer_did_not_keep_it() -> None:
    buffer = TaskBuffer(8, (IDENTITY,)).add([task("a"), task("b", input_="2")])
    assert [t.id for t in buffer.tasks] == ["seed", "a"]  # b is the same program
    result = reject_duplicates([candidate("c")], [task("c", RENAMED, input_="2")], buffer.asked, [0])
    assert isinstance(result[0], Rejection) and result[0].reason == "duplicate"
