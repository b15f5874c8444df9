"""The curriculum's measures against hand-computed numbers."""

import math
from dataclasses import asdict
from pathlib import Path

import pytest

from redqueen.domains.code.measures import measure
from redqueen.journal import Journal, RunRecord, TaskRecord
from redqueen.journal.records import MEASURES
from redqueen.nouns import Task
from redqueen.propose.curriculum import curriculum_metrics
from redqueen.report.curriculum import curriculum_steps

FLAT = "def f(x):\n    return x"
DEEP = "def f(x):\n    y = x\n    if x > 0:\n        y = x + 1\n    return y"


def fixed_at(*values: float) -> dict[str, float]:
    return dict(zip(MEASURES, (*values, 0.0), strict=True))


def task(step: int, number: int, kind: str) -> Task:
    return Task(f"{step}.{number}", "T1", "S1", kind, FLAT, ("1",), ("1",))  # type: ignore[arg-type]


def test_the_metrics_of_a_step_are_means_over_its_programs() -> None:
    metrics = curriculum_metrics([fixed_at(4, 1, 2, 1), fixed_at(7, 4, 6, 2)], 9)
    assert metrics == {
        "curriculum/ast_depth": 5.5,
        "curriculum/cyclomatic": 2.5,
        "curriculum/lines": 4.0,
        "curriculum/variables": 1.5,
        "curriculum/coverage": 9.0,
    }


def test_a_step_without_a_valid_task_has_no_means_but_keeps_its_coverage() -> None:
    metrics = curriculum_metrics([], 9)
    assert metrics.pop("curriculum/coverage") == 9.0
    assert all(math.isnan(value) for value in metrics.values())


def test_the_journal_gives_means_by_kind_and_coverage_counts_each_behaviour_once(tmp_path: Path) -> None:
    steps = {
        1: [("code_o", fixed_at(4, 1, 2, 1), "a"), ("code_i", fixed_at(6, 3, 4, 3), "b")],
        2: [],
        3: [("code_o", fixed_at(8, 5, 6, 5), "a"), ("code_o", fixed_at(10, 7, 8, 7), "c"), ("code_i", None, "c")],
    }
    with Journal.create(tmp_path / "j", RunRecord("r", "1T+1S", 0)) as journal:
        for step, tasks in steps.items():
            with journal.step(step) as tx:
                tx.add_tasks(
                    TaskRecord(task(step, n, kind), fixed, sign) for n, (kind, fixed, sign) in enumerate(tasks)
                )
        points = curriculum_steps(journal)
    every = [point for point in points if point.kind == "all"]
    assert [(p.step, p.num_tasks, p.ast_depth, p.coverage) for p in every] == [
        (1, 2, 5.0, 2),
        (2, 0, None, 2),
        (3, 3, 9.0, 3),
    ]
    of_code_o = [point for point in points if point.kind == "code_o"]
    assert [(p.cyclomatic, p.num_lines, p.num_variables, p.coverage) for p in of_code_o] == [
        (1.0, 2.0, 1.0, 1),
        (None, None, None, 1),
        (6.0, 7.0, 6.0, 2),
    ]
    assert {point.kind for point in points} == {"all", "code_o", "code_i"}


def test_the_verifiers_measures_go_in_as_they_are() -> None:
    metrics = curriculum_metrics([asdict(measure(FLAT)), asdict(measure(DEEP))], 2)
    assert metrics["curriculum/cyclomatic"] == pytest.approx(1.5)
    assert metrics["curriculum/lines"] == pytest.approx((2 + 5) / 2)
    assert metrics["curriculum/variables"] == pytest.approx((1 + 2) / 2)
