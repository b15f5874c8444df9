"""The curriculum's measures against hand-computed numbers."""

import math
from dataclasses import asdict

import pytest

from redqueen.domains.code.measures import measure
from redqueen.journal.schema import MEASURES
from redqueen.propose.curriculum import curriculum_metrics

FLAT = "def f(x):\n    return x"
DEEP = "def f(x):\n    y = x\n    if x > 0:\n        y = x + 1\n    return y"


def fixed_at(*values: float) -> dict[str, float]:
    return dict(zip(MEASURES, values, strict=True))


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


def test_the_verifiers_measures_go_in_as_they_are() -> None:
    metrics = curriculum_metrics([asdict(measure(FLAT)), asdict(measure(DEEP))], 2)
    assert metrics["curriculum/cyclomatic"] == pytest.approx(1.5)
    assert metrics["curriculum/lines"] == pytest.approx((2 + 5) / 2)
    assert metrics["curriculum/variables"] == pytest.approx((1 + 2) / 2)
