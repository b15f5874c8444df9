"""Every number has a name a reader understands."""

import pytest

from redqueen.report.metrics import METRICS, describe


def test_every_metric_has_a_title_a_unit_and_one_sentence() -> None:
    for name, metric in METRICS.items():
        assert metric.title and metric.unit, name
        assert metric.explanation.endswith(".") and metric.explanation[0].isupper(), name


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("solve/rate", "Solve rate"),
        ("solve/rate/code_i", "Solve rate of code_i"),
        ("propose/valid_frac/code_f", "Validity of code_f"),
        ("propose/rejected/timeout", "Rejected: timeout"),
    ],
)
def test_a_name_with_a_placeholder_is_found(name: str, title: str) -> None:
    assert describe(name).title == title


def test_an_unknown_name_is_shown_as_it_is() -> None:
    assert describe("health/lag").title == "health/lag"
    assert describe("solve/rate/code_o/more").title == "solve/rate/code_o/more"
