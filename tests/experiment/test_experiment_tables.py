"""Tables of an experiment: a row a run, curves, scores, and a report that says what its seeds can tell."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_models import CONFIGS

from redqueen.commands.experiment import plan_text
from redqueen.config import Config
from redqueen.errors import UserError
from redqueen.experiment.plan import Experiment, load_experiment
from redqueen.experiment.recorded import COUNTS, CURVES, FITNESS, RESULTS, fingerprint, recorded_runs
from redqueen.experiment.runner import (
    CONFIG,
    REPORT,
    check_settings,
    finished_runs,
    run_all,
    seconds_left,
    with_limit,
)
from redqueen.experiment.tables import REPORT as TABLES_REPORT
from redqueen.experiment.tables import all_numbers, by_arm, measure, report_text, write_tables
from redqueen.fitting import fit_to_base
from redqueen.journal import Journal, read
from redqueen.run.store import JOURNAL


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_the_tables_hold_every_run_curve_and_score(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "tables"
    report = write_tables(plan, runs, out)
    rows = table(out / RESULTS)
    assert [(r["arm"], r["seed"], r["match"]) for r in rows] == [
        ("4T+4S", "0", "per_adapter"),
        ("single", "0", "per_adapter"),
        ("4T+4S", "1", "per_adapter"),
        ("single", "1", "per_adapter"),
    ]
    with Journal.open(runs / "single-seed1" / JOURNAL, read_only=True) as journal:
        assert float(rows[3]["tokens"]) == pytest.approx(read.tokens_sampled(journal), rel=1e-5)
        rate = read.metric_series(journal)["solve/rate"]
    curve = [r for r in table(out / CURVES) if (r["arm"], r["seed"], r["measure"]) == ("single", "1", "solve/rate")]
    assert [(int(r["step"]), float(r["value"])) for r in curve] == [(s, pytest.approx(v, rel=1e-5)) for s, v in rate]
    assert {r["individual"] for r in table(out / FITNESS)} >= {"base", "A1", "students"}
    text = report.read_text(encoding="utf-8")
    assert "4 of 6 runs are finished" in text and "## single less 4T+4S" in text
    assert "least p possible" in text and "0.333" in text  # 2 / C(4, 2)
    assert "matched less" not in text and "has 2 of the 3 runs needed" in text
    assert not list(out.glob("*.new"))


def test_coverage_is_compared_at_equal_numbers_of_tasks(plan: Experiment, runs: Path) -> None:
    measured = [measure(finished) for finished in finished_runs(plan, runs)]
    found = all_numbers(measured)
    fewest = min(range(4), key=lambda i: sum(measured[i].measures.behaviours))
    for run, numbers in zip(measured, found, strict=True):
        assert numbers["semantic/rarefied_to"] == sum(measured[fewest].measures.behaviours)
        assert 1 <= numbers["semantic/coverage_rarefied"] <= len(run.measures.behaviours) + 1e-9
    assert found[fewest]["semantic/coverage_rarefied"] == pytest.approx(len(measured[fewest].measures.behaviours))
    assert by_arm(measured, found)["single"]["tasks"] == [found[1]["tasks"], found[3]["tasks"]]


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
    with pytest.raises(UserError, match=re.escape("4T+4S-seed0 was played with solve.num_attempts = 77")):
        run_all(plan, tmp_path, 1, print, print)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_tokens": 0}, "was played without the limit that matches it by tokens"),
        ({"max_tokens": 9, "max_seconds": 3.0}, "was played with run.max_seconds = 3.0"),
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


def test_the_report_has_a_row_a_run_arm_by_arm(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    text = write_tables(plan, runs, tmp_path).read_text()
    rows = text.split("## Every run\n\n")[1].split("\n\n")[0].splitlines()[2:]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| single", "0"],
        ["| single", "1"],
        ["| 4T+4S", "0"],
        ["| 4T+4S", "1"],
    ]


def test_the_report_shows_the_product_of_the_runs_that_have_one(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    assert "/product" not in write_tables(plan, runs, tmp_path).read_text()
    measured = recorded_runs(plan, tmp_path)
    numbers = all_numbers(measured)
    for at, found in enumerate(numbers):
        if measured[at].planned.arm == "4T+4S":
            found |= {"fitness/greedy/product": 0.31 + at / 100, "fitness/sampled/product": 0.25}
    text = report_text(plan, measured, numbers)
    every_arm, every_run = (text.split(f"## Every {what}\n\n")[1].split("\n## ")[0] for what in ("arm", "run"))
    # 0.31 and 0.33: t with 1 degree of freedom is 12.706, the standard error 0.01.
    assert r"| fitness/greedy/product | – | 0.320 \[0.193, 0.447\] |" in every_arm
    assert "| fitness/sampled/product | – | 0.250 |" in every_arm
    assert "| fitness/greedy/product | fitness/sampled/product |" in every_run and "| 0.330 | 0.250 |" in every_run


def test_one_run_and_runs_that_do_not_differ_stand_without_an_interval(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    text = write_tables(plan, runs, tmp_path).read_text()
    assert "Student's t intervals over seeds" in text and "bootstrap" not in text.lower()
    assert "| steps | 5 | 5 |" in text
    assert "| steps | 0 | – | – | 1.000 |" in text


def test_the_report_has_the_students_score_on_parts_of_the_suite_beside_the_base(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    text = write_tables(plan, runs, tmp_path).read_text()
    lines = text.split("## Parts of the suite\n\n")[1].split("\n\n")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (lines[0], *lines[2:])]
    rows = {row[0]: dict(zip(cells[0][1:], row[1:], strict=True)) for row in cells[1:]}
    assert list(rows) == ["the bare base", "single", "4T+4S"]
    assert list(rows["the bare base"])[:3] == [r"code\_o", r"code\_i", r"code\_f"]
    assert "all" not in rows["the bare base"] and not any("/" in part for part in rows["the bare base"])
    given = [
        float(row["mean_frac"])
        for row in table(tmp_path / FITNESS)
        if (row["arm"], row["step"], row["individual"], row["stratum"], row["kind"], row["mode"])
        == ("4T+4S", "5", "students", "all", "code_i", "greedy")
    ]
    assert len(given) == 2
    assert float(rows["4T+4S"][r"code\_i"].split()[0]) == pytest.approx(sum(given) / 2, abs=6e-4)


def test_wall_clock_is_not_matched_side_by_side(plan_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(plan_file.read_text().replace('"tokens"', '"wall_clock"'))
    with pytest.raises(UserError, match="--jobs must be 1"):
        run_all(load_experiment(path), tmp_path / "runs", 2, print, print)
    assert not (tmp_path / "runs").exists()


def test_the_time_left_is_told_from_the_runs_of_the_same_arm() -> None:
    assert seconds_left([], ["a"]) is None
    assert seconds_left([("a", 10.0), ("a", 20.0)], ["a", "a"]) == 30.0
    assert seconds_left([("a", 10.0), ("b", 30.0)], ["c"]) == 20.0
    assert seconds_left([("a", 10.0)], ["a", "a", "a", "a"], jobs=2) == 20.0
    assert seconds_left([("a", 10.0)], ["a"], jobs=4) == 10.0
    assert seconds_left([("a", 10.0)], []) == 0.0


def test_the_plan_says_what_is_finished_and_what_is_held_equal(plan: Experiment, runs: Path) -> None:
    lines = plan_text(plan, runs).splitlines()
    assert lines[0].startswith("e: 6 runs in ") and lines[0].endswith("compared with 4T+4S")
    assert "5 steps  (finished)" in lines[1]
    assert any("as many tokens as 4T+4S-seed1, at most 100 steps  (to do)" in line for line in lines)


ALL_TABLES = (RESULTS, CURVES, FITNESS, COUNTS, TABLES_REPORT)


def test_runs_played_elsewhere_stay_in_the_tables_they_are_added_to(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    write_tables(plan, runs, whole)
    for seed in ("0", "1"):
        here = tmp_path / f"machine-{seed}"
        here.mkdir()
        for folder in runs.glob(f"*-seed{seed}"):
            shutil.copytree(folder, here / folder.name)
        write_tables(plan, here, grown, add=True)
        shutil.rmtree(here)
    for name in ALL_TABLES:
        assert (grown / name).read_bytes() == (whole / name).read_bytes(), name
    assert [run.planned.folder for run in recorded_runs(plan, grown)] == [
        "4T+4S-seed0",
        "single-seed0",
        "4T+4S-seed1",
        "single-seed1",
    ]


def test_runs_whose_tasks_leave_no_traces_are_read_back_like_any_other(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    write_tables(plan, runs, tmp_path)
    header, *_ = (tmp_path / COUNTS).read_text().splitlines(keepends=True)
    (tmp_path / COUNTS).write_text(header)  # mathematics, puzzles and proofs are no programs
    read_back = recorded_runs(plan, tmp_path)
    assert [run.measures.behaviours for run in read_back] == [()] * 4
    assert all(run.measures.num_traced == 0 and run.measures.numbers["tasks"] > 0 for run in read_back)


def test_a_recorded_run_is_not_played_again_and_gives_the_limit_of_the_matched(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    write_tables(plan, runs, tmp_path)
    recorded = {run.planned.folder: run.measures.numbers for run in recorded_runs(plan, tmp_path)}
    matched = next(run for run in plan.runs if run.folder == "matched-seed1")
    assert with_limit(plan, matched, tmp_path / "none", recorded) == with_limit(plan, matched, runs)
    assert plan_text(plan, tmp_path / "none", recorded).count("(finished)") == 4


def test_tables_that_cannot_be_added_to_are_named(plan: Experiment, runs: Path, tmp_path: Path) -> None:
    write_tables(plan, runs, tmp_path)
    path = tmp_path / RESULTS
    whole = path.read_text()
    path.write_text(whole.replace(fingerprint(plan.runs[0]), "0" * 12))
    with pytest.raises(UserError, match=re.escape("'4T+4S', seed 0 was played with other settings")):
        write_tables(plan, runs, tmp_path, add=True)
    path.write_text(whole.replace("single,1", "single,7"))
    with pytest.raises(UserError, match="'single', seed 7, which 'e' has not"):
        write_tables(plan, runs, tmp_path, add=True)
    path.write_text(whole)
    curves = (tmp_path / CURVES).read_text()
    (tmp_path / CURVES).write_text(curves + "4T+4S,0\n")
    with pytest.raises(UserError, match=r"cannot be read back \(row [0-9]+ of curves\.csv"):
        write_tables(plan, runs, tmp_path, add=True)
    (tmp_path / CURVES).write_text(curves)
    (tmp_path / COUNTS).unlink()
    with pytest.raises(UserError, match="cannot be read back"):
        write_tables(plan, runs, tmp_path, add=True)


def test_a_recorded_run_whose_match_or_product_is_another_now_is_refused(
    plan: Experiment, runs: Path, tmp_path: Path
) -> None:
    write_tables(plan, runs, tmp_path)

    def changed(**fields: object) -> Experiment:
        return replace(plan, runs=(replace(plan.runs[0], **fields), *plan.runs[1:]))

    with pytest.raises(UserError, match=r"'4T\+4S', seed 0 was played with other settings .*column match"):
        recorded_runs(changed(match="tokens"), tmp_path)
    config = plan.runs[0].config
    fewer = config.model_copy(update={"run": config.run.model_copy(update={"product_tasks": 7})})
    with pytest.raises(UserError, match="column product"):
        recorded_runs(changed(config=fewer), tmp_path)
    path = tmp_path / RESULTS
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0][4] == "product"
    path.write_text("".join(",".join(row[:4] + row[5:]) + "\n" for row in rows))  # as it was before it had the column
    assert len(recorded_runs(changed(config=fewer), tmp_path)) == 4


def test_other_threads_and_limits_leave_the_fingerprint_and_other_settings_change_it(plan: Experiment) -> None:
    planned = plan.runs[0]

    def other(section: str, **fields: object) -> str:
        changed = getattr(planned.config, section).model_copy(update=fields)
        return fingerprint(replace(planned, config=planned.config.model_copy(update={section: changed})))

    assert other("run", num_threads=7, max_tokens=5, max_seconds=3.0) == fingerprint(planned)
    assert other("model", precision="bf16") == fingerprint(planned), "tables are older than the choice by processor"
    assert other("model", precision="fp32") != fingerprint(planned)
    assert other("run", rng_seed=7) != fingerprint(planned)
    assert other("solve", num_attempts=77) != fingerprint(planned)
