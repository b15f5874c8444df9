"""Tables of an experiment: scores, and a report that says what its seeds can tell."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_models import CONFIGS

from redqueen.commands.experiment import plan_text
from redqueen.config import Config
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, load_experiment
from redqueen.experiment.runner import (
    CONFIG,
    REPORT,
    check_settings,
    finished_runs,
    run_all,
    seconds_left,
    with_limit,
)
from redqueen.experiment.tables import REPORT as REPORT_FILE
from redqueen.experiment.tables import SCORES, measure, report_text, write_tables
from redqueen.fitting import fit_to_base
from redqueen.journal import Journal, read
from redqueen.run.store import JOURNAL


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_the_tables_hold_every_run_and_score(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "tables"
    text = write_tables(plan, runs, out)
    rows = table(out / SCORES)
    assert [(r["arm"], r["seed"]) for r in rows if (r["who"], r["mode"]) == ("base", "greedy")] == [
        ("4T+4S", "0"),
        ("single", "0"),
        ("4T+4S", "1"),
        ("single", "1"),
    ]
    with Journal.open(runs / "single-seed1" / JOURNAL, read_only=True) as journal:
        scored = {
            (str(row["step"]), row["individual"], row["mode"]): row["mean_frac"]
            for row in read.evaluations(journal)
            if (row["stratum"], row["kind"]) == ("all", "all")
        }
    own = [r for r in rows if (r["arm"], r["seed"]) == ("single", "1")]
    assert {r["who"] for r in own} == {"base", "students"}
    assert all(float(r["mean"]) == pytest.approx(scored[r["step"], r["who"], r["mode"]], rel=1e-5) for r in own)
    assert (out / REPORT_FILE).read_text() == text
    assert "4 of 6 runs are finished" in text and "## single less 4T+4S" in text
    assert "0.333" in text  # the least p of two against two: 2 / C(4, 2)
    assert "matched less" not in text and not list(out.glob("*.new"))


def test_nothing_finished_is_no_table(plan: Experiment, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no finished run of the experiment 'e'"):
        write_tables(plan, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_without_its_report_is_not_finished(plan: Experiment, runs: Path) -> None:
    (runs / "single-seed1" / REPORT).rename(runs / "single-seed1" / "away")
    try:
        assert [one.planned.folder for one in finished_runs(plan, runs)] == [
            "4T+4S-seed0",
            "single-seed0",
            "4T+4S-seed1",
        ]
    finally:
        (runs / "single-seed1" / "away").rename(runs / "single-seed1" / REPORT)


def test_a_report_that_was_written_halfway_does_not_end_a_run(plan: Experiment, runs: Path) -> None:
    path = runs / "single-seed1" / CONFIG
    whole = path.read_text()
    longer = json.loads(whole)
    longer["run"]["num_steps"] = 6
    path.write_text(json.dumps(longer))
    try:
        assert "single-seed1" not in [one.planned.folder for one in finished_runs(plan, runs)]
        longer["run"]["max_tokens"] = 100
        path.write_text(json.dumps(longer))
        assert "single-seed1" in [one.planned.folder for one in finished_runs(plan, runs)]
    finally:
        path.write_text(whole)


def test_a_matched_run_gets_what_the_reference_of_its_seed_has_sampled(plan: Experiment, runs: Path) -> None:
    matched = next(run for run in plan.runs if run.folder == "matched-seed1")
    config: Config = with_limit(plan, matched, runs)
    with Journal.open(runs / "4T+4S-seed1" / JOURNAL, read_only=True) as journal:
        assert config.run.max_tokens == read.tokens_sampled(journal) > 0
    assert with_limit(plan, plan.runs[0], runs) == plan.runs[0].config


def test_a_run_made_with_other_settings_is_refused_by_name(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    check_settings(plan, runs)
    other = plan.runs[0].config.model_dump(mode="json")
    other["solve"]["num_attempts"] = 77
    (tmp_path / plan.runs[0].folder).mkdir()
    (tmp_path / plan.runs[0].folder / CONFIG).write_text(json.dumps(other))
    with pytest.raises(UserError, match=re.escape("4T+4S-seed0 was run with solve.num_attempts = 77")):
        run_all(plan, tmp_path, 1, print, print)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_tokens": 0}, "was run without the limit that matches it by tokens"),
        ({"max_tokens": 9, "max_seconds": 3.0}, "was run with run.max_seconds = 3.0"),
    ],
)
def test_a_matched_run_that_ended_by_another_limit_is_refused(
    plan: Experiment, tmp_path: Path, limits: dict[str, float], why: str
) -> None:
    matched = next(run for run in plan.runs if run.folder == "matched-seed1")
    other = matched.config.model_dump(mode="json")
    (tmp_path / matched.folder).mkdir()
    path = tmp_path / matched.folder / CONFIG
    path.write_text(json.dumps(other | {"run": other["run"] | {"max_tokens": 9}}))
    check_settings(plan, tmp_path)
    path.write_text(json.dumps(other | {"run": other["run"] | limits}))
    with pytest.raises(UserError, match=f"matched-seed1 {why}"):
        check_settings(plan, tmp_path)


def test_what_an_arm_leaves_open_is_fitted_to_its_base_as_for_a_single_run(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text(json.dumps(CONFIGS["llama"].to_dict()))
    path = tmp_path / "e.toml"
    path.write_text(
        '[experiment]\nname = "e"\nsteps = 5\nseeds = [0]\n'
        f'set = {{ "model.base" = "{tmp_path / "base"}" }}\n[[arm]]\nname = "4T+4S"\n'
    )
    plan = load_experiment(path)
    played = with_limit(plan, plan.runs[0], tmp_path)
    assert played == fit_to_base(plan.runs[0].config).config
    assert played.model.prompt_format == "fewshot" and played.solve.temperature == 0.7


def test_threads_may_differ_between_the_machines_that_share_an_experiment(plan: Experiment, tmp_path: Path) -> None:
    other = plan.runs[0].config.model_dump(mode="json")
    other["run"]["num_threads"] = 5
    (tmp_path / plan.runs[0].folder).mkdir()
    (tmp_path / plan.runs[0].folder / CONFIG).write_text(json.dumps(other))
    check_settings(plan, tmp_path)


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_run_may_have_begun_with_either_precision_where_the_plan_leaves_it_to_the_processor(
    plan: Experiment, tmp_path: Path, precision: str
) -> None:
    other = plan.runs[0].config.model_dump(mode="json")
    assert other["model"]["precision"] == "auto"
    other["model"]["precision"] = precision
    (tmp_path / plan.runs[0].folder).mkdir()
    (tmp_path / plan.runs[0].folder / CONFIG).write_text(json.dumps(other))
    check_settings(plan, tmp_path)


def test_a_place_that_can_hold_no_folder_is_named(plan: Experiment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"--out .*file.* cannot be made a folder"):
        run_all(plan, tmp_path / "file", 1, print, print)


def test_the_report_compares_arms_by_welch_and_seed_by_seed(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    shares = {"single-seed0": 0.30, "single-seed1": 0.34, "4T+4S-seed0": 0.31, "4T+4S-seed1": 0.39}
    measured = [
        replace(measure(one), numbers={"product/greedy": shares[one.planned.folder], "steps": 5.0})
        for one in finished_runs(plan, runs)
    ]
    text = report_text(plan, measured)
    # Means 0.32 and 0.35. t with one degree of freedom is 12.706; standard errors 0.02, 0.04 and their root sum 0.0447;
    # seed by seed -0.01 and -0.05.
    assert "| product/greedy | 0.320 (0.066 to 0.574) | 0.350 (-0.158 to 0.858) |" in text
    assert "| product/greedy | -0.030 (-0.598 to 0.538) | -0.030 (-0.284 to 0.224) | 0.667 | 0.333 |" in text
    assert "| steps | 5 | 5 |" in text and "| steps | 0 | 0 | 1.000 |" in text


def test_the_time_left_is_told_from_the_runs_of_the_same_arm() -> None:
    assert seconds_left([], [("a", 1.0)]) is None
    assert seconds_left([("a", 10.0), ("a", 20.0)], [("a", 1.0), ("a", 1.0)]) == 30.0
    assert seconds_left([("a", 10.0), ("b", 30.0)], [("c", 1.0)]) == 20.0
    assert seconds_left([("a", 10.0)], 4 * [("a", 1.0)], jobs=2) == 20.0
    assert seconds_left([("a", 10.0)], 2 * [("a", 0.25)] + 2 * [("a", 1.0)], jobs=2) == 12.5
    assert seconds_left([("a", 10.0)], [("a", 1.0)], jobs=4) == 10.0
    assert seconds_left([("a", 10.0)], []) == 0.0


def test_the_plan_says_what_is_finished_and_what_is_held_equal(plan: Experiment, runs: Path) -> None:
    lines = plan_text(plan, runs).splitlines()
    assert lines[0].startswith("e: 6 runs in ") and lines[0].endswith("compared with 4T+4S")
    assert "5 steps  (finished)" in lines[1]
    assert any("as many tokens as 4T+4S-seed1, at most 100 steps  (to do)" in line for line in lines)
