"""From scores to verdicts, on made-up trials whose answers can be worked out by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.experiment.retention import outputs
from redqueen.experiment.retention.findings import Finding, Findings, analyse, judge
from redqueen.experiment.retention.lineup import COPY, LINEAR, Entry, lineup
from redqueen.experiment.retention.settings import FULL
from redqueen.experiment.retention.trial import TRIAL, Trial
from redqueen.statistics import Interval

ENTRIES = (Entry("M4", "delta"), Entry("X1", "delta"), Entry(COPY, "delta"), Entry(LINEAR, "delta"))
PROGRAMS = [f"p{i // 2}" for i in range(8)]
"""Four programs with two tasks each."""


def flat(score: float) -> list[float | None]:
    """The same score at every task: a bootstrap then has nothing to vary."""
    return [score] * 8


def trial(curves: dict[str, list[list[float | None]]], seed: int = 0, parent: float = 0.6) -> Trial:
    """A trial with a base of 0.2, parents of ``parent`` and 0.4, measured at updates 0, 1 and 4."""
    measured = tuple(tuple(curves[entry.operator][m] for entry in ENTRIES) for m in range(3))
    parents = (flat(parent), flat(0.4))
    return Trial(seed, 9, flat(0.2), 0, 0, parents, (0.6, 0.4), 1.3, (0.5, 0.2, 0.0, 0.1), (0, 1, 4), measured)


CURVES = {
    "M4": [flat(0.3), flat(0.4), flat(0.6)],
    "X1": [flat(0.5), flat(0.7), flat(0.8)],
    COPY: [flat(0.6), flat(0.6), flat(0.6)],
    LINEAR: [flat(0.5), flat(0.5), flat(0.5)],
}


def by_operator(findings: Findings) -> dict[str, Finding]:
    return {one.entry.operator: one for one in findings.entries}


def found(*trials: Trial) -> dict[str, Finding]:
    return by_operator(analyse(trials, ENTRIES, PROGRAMS))


def test_retention_is_the_share_of_the_first_parents_gain_that_a_child_is_born_with() -> None:
    one = found(trial(CURVES))
    # (0.3 - 0.2) / (0.6 - 0.2), and a copy has it all.
    assert one["M4"].retention.value == pytest.approx(0.25)
    assert one["M4"].retention.interval == pytest.approx((0.25, 0.25))
    assert one[COPY].retention.value == pytest.approx(1.0)


def test_the_area_is_a_mean_by_trapezoids_over_updates_of_unequal_distance() -> None:
    one = found(trial(CURVES))
    # ((0.3 + 0.4) / 2 * 1 + (0.4 + 0.6) / 2 * 3) / 4
    assert one["M4"].area.value == pytest.approx(0.4625)
    assert one["M4"].over_copy.value == pytest.approx(0.4625 - 0.6)
    assert one["M4"].over_linear.value == pytest.approx(0.4625 - 0.5)


def test_the_return_to_the_parents_level_is_the_first_measured_update_there() -> None:
    one = found(trial(CURVES))
    assert [one[name].back_after for name in ("M4", "X1", COPY, LINEAR)] == [4, 1, 0, None]


def test_verdicts_follow_from_the_intervals() -> None:
    one = found(trial(CURVES, 0), trial(CURVES, 1))
    assert [one[name].verdict for name in ("M4", "X1", COPY, LINEAR)] == ["loses", "keeps", "control", "keeps"]
    assert "beats both controls" in one["X1"].sentence
    assert "falls behind the copy and falls behind the mean" in one["M4"].sentence
    assert "loses some of what its parents learned" in one["M4"].sentence and "-13.7 points" in one["M4"].sentence


def test_seeds_that_disagree_leave_an_operator_undecided() -> None:
    worse = {**CURVES, "M4": [flat(0.2)] * 3}
    better = {**CURVES, "M4": [flat(0.9)] * 3}
    one = found(trial(worse, 0), trial(better, 1))["M4"]
    # Seeds are drawn with replacement: both are the worse one in a quarter of the draws, and the better one too.
    assert one.over_copy.interval == pytest.approx((0.2 - 0.6, 0.9 - 0.6))
    assert one.verdict == "undecided" and one.sentence.startswith("M4 (delta) is undecided")


def test_programs_that_disagree_widen_the_interval_as_whole_programs() -> None:
    split = [1.0, 1.0, 0.0, 0.0] * 2
    within = [1.0, 0.0] * 4
    wide = found(trial({**CURVES, "M4": [split] * 3}))["M4"].area
    none = found(trial({**CURVES, "M4": [within] * 3}))["M4"].area
    assert wide.value == none.value == pytest.approx(0.5)
    assert wide.interval.high - wide.interval.low > 0.5
    assert none.interval == pytest.approx((0.5, 0.5))


def test_without_a_gain_there_is_no_verdict_and_no_share() -> None:
    findings = analyse([trial(CURVES, parent=0.2)], ENTRIES, PROGRAMS)
    one = by_operator(findings)
    assert {finding.verdict for name, finding in one.items() if name != COPY} == {"undecided"}
    assert one["M4"].retention.value != one["M4"].retention.value  # not a number
    assert "not measurably better than the base" in one["X1"].sentence


def test_a_program_with_a_lost_task_is_left_out_everywhere() -> None:
    holed: list[float | None] = [None, 1.0, *flat(0.3)[2:]]
    one = trial({**CURVES, "M4": [holed, flat(0.4), flat(0.6)]})
    base: list[float | None] = [1.0, 1.0, *flat(0.2)[2:]]
    assert found(replace(one, base=base))["M4"].retention.value == pytest.approx(0.25)
    with pytest.raises(UserError, match="lost a grade of every held-out program"):
        found(replace(one, base=[None] * 8))


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((-0.04, 0.02), "keeps"),
        ((-0.04, -0.01), "keeps"),
        ((-0.06, -0.01), "loses"),
        ((-0.06, 0.0), "undecided"),
        ((0.01, 0.06), "keeps"),
    ],
)
def test_the_margin_is_what_a_child_may_lack(interval: tuple[float, float], verdict: str) -> None:
    assert judge(ENTRIES[0], Interval(*interval), Interval(0.1, 0.3), 0.05) == verdict
    assert judge(ENTRIES[0], Interval(*interval), Interval(0.0, 0.3), 0.05) == "undecided"


def test_the_line_up_has_every_operator_in_every_space_where_it_makes_another_child() -> None:
    labels = [entry.label for entry in lineup()]
    assert len(labels) == len(set(labels)) == 29
    assert {"M1", "M4 (delta)", "M4 (factor)", "X3", "X9 (factor)", COPY, "linear_0_5 (factor)"} <= set(labels)


def test_the_committed_results_follow_byte_for_byte_from_the_committed_scores(tmp_path: Path) -> None:
    committed = Path(__file__).parents[2] / "experiments" / "retention"
    trials = [TRIAL.validate_json((committed / f"seed-{i}" / "scores.json").read_text()) for i in range(3)]
    programs = [str(i // 2) for i in range(len(trials[0].base))]  # each program is one task of two kinds
    told = json.loads((committed / outputs.FINDINGS).read_text())
    findings = analyse(trials, lineup(), programs)
    outputs.write_outputs(tmp_path, trials, lineup(), findings, FULL, told["base_sha256"], told["command"])
    for name in (outputs.CURVES, outputs.FINDINGS, outputs.REPORT):
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes(), name
