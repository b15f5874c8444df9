"""Figures of an experiment: what is drawn is what was measured, and the same runs give the same files."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from redqueen.commands.experiment import run_experiment
from redqueen.errors import UserError
from redqueen.experiment.figures import band, running_mean, write_figures
from redqueen.experiment.plan import Experiment
from redqueen.experiment.recorded import recorded_runs
from redqueen.experiment.tables import write_tables


def test_a_running_mean_leaves_out_what_is_not_defined() -> None:
    assert running_mean([(1, 2.0), (2, None), (3, 4.0), (4, 9.0)], window=2) == [(1, 2.0), (2, 2.0), (3, 4.0), (4, 6.5)]
    assert running_mean([(1, None)]) == []


def test_a_band_spans_the_least_and_greatest_seed_where_all_have_values() -> None:
    one, other = [(1, 2.0), (2, 2.0)], [(1, 4.0), (2, 8.0), (3, 9.0)]
    assert band([one, other]) == [(1, 3.0, 2.0, 4.0), (2, 4.0, 2.0, 6.0)]
    assert band([]) == []


def test_curves_and_scores_are_drawn_with_every_arm_named_and_again_alike(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    write_tables(plan, runs, tmp_path, figures=True)
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["curves-1.svg", "fitness.svg"]
    recorded = recorded_runs(plan, tmp_path)
    drawn = {path.name: path.read_bytes() for path in write_figures(recorded, plan.reference, tmp_path)}
    for content in drawn.values():
        words = "".join(ElementTree.fromstring(content).itertext())
        assert "4T+4S" in words and "single" in words
    again = write_figures(recorded, plan.reference, tmp_path)
    assert {path.name: path.read_bytes() for path in again} == drawn


def test_an_arm_matched_by_tokens_is_drawn_over_all_its_steps_a_line_a_run(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    write_tables(plan, runs, tmp_path)
    recorded = recorded_runs(plan, tmp_path)
    longer = [
        replace(run, planned=replace(run.planned, arm="matched", match="tokens"))
        for run in recorded
        if run.planned.arm == "single"
    ]
    for run in longer:
        run.measures.curves["solve/rate"] += [(step, 0.5) for step in range(6, 21)]
    paths = write_figures([*recorded, *longer], plan.reference, tmp_path)
    drawn = next(path for path in paths if path.name == "matched-1.svg").read_text()
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert "matched, seed 0" in words and "matched, seed 1" in words and "4T+4S (2 seeds)" in words and "20" in words


def test_without_matplotlib_the_remedy_is_named_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(__file__).parents[2] / "experiments" / "smoke.toml"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--figures needs the package matplotlib: pip install"):
        run_experiment(file, tmp_path / "runs", None, 1, False, False, figures=True)
    assert not (tmp_path / "runs").exists()
