"""The real verifier agrees with the frozen suites: same outputs, every task acceptable, every right answer right."""

import pytest

from redqueen.domains.code.calls import distinct_pairs
from redqueen.domains.code.suite import SUITES, load_functions, load_suite
from redqueen.domains.registry import check, grade
from redqueen.domains.rows import read_checksums
from redqueen.evaluate.external import subset
from redqueen.records import Candidate, Rejection, Task
from redqueen_sandbox import Program, Sandbox

SAYS_LESS = {f"generated/{name}/code_f" for name in ("1-047", "2-050", "1-072", "1-094", "1-110", "2-072", "3-117")}
"""Frozen before inputs that differ in what the program never reads, or by type alone, counted once: 7 of 782."""


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(read_checksums(SUITES)))
def test_the_verifier_reproduces_the_outputs(verifier: Sandbox, name: str, every: int) -> None:
    functions = load_functions(SUITES / name)[::every]
    results = verifier.run([Program(one.id, one.code, (one.input, *one.io_inputs)) for one in functions])
    for function, result in zip(functions, results, strict=True):
        assert (result.verdict, result.outputs) == ("ok", (function.output, *function.io_outputs)), function.id


@pytest.mark.parametrize("num_items", [60, pytest.param(240, marks=pytest.mark.slow)])
def test_suite_items_are_the_tasks_that_the_verifier_would_make(verifier: Sandbox, num_items: int) -> None:
    items = subset(load_suite(), num_items)
    candidates = [
        Candidate(item.id, "", "", item.kind, "", item.task.code, item.task.inputs, item.task.message) for item in items
    ]
    for item, made in zip(items, check(candidates, verifier), strict=True):
        if item.id in SAYS_LESS:
            assert isinstance(made, Rejection) and "distinct inputs where" in made.detail
            continue
        assert isinstance(made, Task), made
        assert (made.inputs, made.outputs, made.num_shown) == (item.task.inputs, item.task.outputs, item.task.num_shown)


def test_seven_frozen_items_have_fewer_telling_pairs_than_they_show_and_no_others() -> None:
    items = [item for item in load_suite() if item.kind == "code_f"]
    fewer = {
        item.id
        for item in items
        if distinct_pairs(item.task.code, item.task.inputs, item.task.outputs) < len(item.task.inputs)
    }
    assert len(items) == 782 and fewer == SAYS_LESS


@pytest.mark.parametrize("num_items", [60, pytest.param(240, marks=pytest.mark.slow)])
def test_right_answers_to_suite_items_are_graded_right(verifier: Sandbox, num_items: int) -> None:
    items = subset(load_suite(), num_items)
    answers = [
        {"code_o": item.task.outputs[0], "code_i": item.task.inputs[0], "code_f": item.task.code}[item.kind]
        for item in items
    ]
    grades = grade([(item.task, answer) for item, answer in zip(items, answers, strict=True)], verifier)
    assert [item.id for item, grade in zip(items, grades, strict=True) if not grade.correct] == []
