"""The figures hold the journal's numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import build_run

from redqueen.config import LearnConfig
from redqueen.journal import Journal, RunRecord
from redqueen.report.compare import arm_names, arm_rows, comparison_sections, labels_of, setting_rows
from redqueen.report.figure import Figure, lines_of, running_mean
from redqueen.report.figures import MAX_MATRIX_SIDE, sections_of
from redqueen.report.lineage import founder_shares, lineage_of, num_lasting
from redqueen.report.view import read_run
from redqueen.run.store import JOURNAL


def figures_of(run_dir: Path) -> dict[str, Figure]:
    return {figure.id: figure for section in sections_of(read_run(run_dir)) for figure in section.figures}


def part(figure: Figure, name: str) -> dict[str, Any]:
    return next(series for series in figure.chart["series"] if series["name"] == name)


def test_a_population_has_every_figure(population_dir: Path) -> None:
    race = {"solve-rate", "validity", "ratings-teacher", "ratings-student", "matchups"}
    curriculum = {"ast-depth", "cyclomatic", "lines", "variables", "coverage"}
    fitness = {"fitness-time", "fitness-kinds"}
    behaviour = {"entropy", "lengths", "thought", "rewards", "rejections"}
    assert set(figures_of(population_dir)) == race | curriculum | fitness | behaviour | {"phase-times", "gradients"}


def test_the_single_arm_has_no_ratings_no_matchups_no_lineage(single_dir: Path) -> None:
    shown = set(figures_of(single_dir))
    assert not shown & {"ratings-teacher", "ratings-student", "matchups"} and lineage_of(read_run(single_dir)) is None
    assert {"solve-rate", "validity", "ast-depth", "fitness-time", "entropy"} <= shown


def test_every_figure_says_its_unit_and_what_it_shows(population_dir: Path) -> None:
    for figure in figures_of(population_dir).values():
        assert figure.unit and figure.text.endswith("."), figure.id


def test_words_beside_figures_hold_for_runs_with_counter_pressures_and_pairs(population_dir: Path) -> None:
    figures = figures_of(population_dir)
    pressures = ("unsolved_reward", "certain_reward", "novelty_bonus", "crowding_penalty", "size_guard_frac")
    assert all(name in LearnConfig.model_fields and name in figures["rewards"].text for name in pressures)
    assert "paired by item" in figures["fitness-time"].text  # as the verdict is


def test_each_step_of_the_solve_rate_is_drawn_as_it_is_in_the_journal(population_dir: Path) -> None:
    with Journal.open(population_dir / JOURNAL, read_only=True) as journal:
        rows = journal.query("SELECT step, value FROM metric WHERE name = 'solve/rate' ORDER BY step")
    drawn = part(figures_of(population_dir)["solve-rate"], "all kinds, each step")
    assert drawn["points"] == [[row["step"], row["value"]] for row in rows]


def test_ratings_break_where_a_child_takes_a_place_over(population_dir: Path) -> None:
    view = read_run(population_dir)
    figure = figures_of(population_dir)["ratings-teacher"]
    num_births = sum(1 for row, _ in view.births if row["child"].startswith("T"))
    breaks = sum(value is None for line in figure.chart["series"] for _, value in line["points"])
    assert num_births == 6 and breaks == num_births
    bands = sum(len(line["bands"]) for line in figure.chart["series"])
    assert bands == 4 + num_births
    first = next(row for row in view.ratings if row["individual"] == "T1" and row["step"] == 1)
    low, high = first["mu"] - first["sigma"], first["mu"] + first["sigma"]
    assert part(figure, "T1")["bands"][0][1] == [1, low, high]


def test_the_matchup_matrix_holds_solve_rates_weighted_by_tasks(population_dir: Path) -> None:
    chart = figures_of(population_dir)["matchups"].chart
    with Journal.open(population_dir / JOURNAL, read_only=True) as journal:
        rows = journal.query(
            "SELECT sum(solve_frac * num_tasks) / sum(num_tasks) AS rate, sum(num_tasks) AS num FROM match "
            "WHERE teacher = 'T1' AND student = 'S1'"
        )
    column, row = chart["columns"].index("S1"), chart["rows"].index("T1")
    [cell] = [cell for cell in chart["cells"] if cell[:2] == [column, row]]
    assert cell[2] == pytest.approx(rows[0]["rate"]) and cell[3] == rows[0]["num"]


def test_large_populations_are_drawn_in_summary(tmp_path: Path) -> None:
    run = build_run(tmp_path / "large", 4, 30, 30, tasks_per_match=3, num_attempts=2, evolve_every=2)
    figures = figures_of(run)
    assert [series["name"] for series in figures["ratings-teacher"].chart["series"]] == ["middle", "best", "worst"]
    assert len(figures["matchups"].chart["rows"]) == MAX_MATRIX_SIDE
    assert "latest born" in figures["matchups"].text


def test_a_run_with_only_its_first_state_has_no_figure_of_steps(tmp_path: Path) -> None:
    figures = figures_of(build_run(tmp_path / "new", 0))
    assert set(figures) == {"ratings-teacher", "ratings-student"}


def test_running_means_by_hand() -> None:
    series = [(1, 1.0), (2, None), (3, 3.0), (4, 5.0)]
    assert running_mean(series, 1) == [(1, 2.0), (3, 3.0), (4, 4.0)]


def test_short_series_are_drawn_as_they_are_and_long_ones_thin_under_their_mean() -> None:
    assert [line["name"] for line in lines_of("x", [(n, 1.0) for n in range(29)], 0)] == ["x"]
    assert [line["name"] for line in lines_of("x", [(n, 1.0) for n in range(30)], 0)] == ["x", "x, each step"]


def test_runs_side_by_side_share_a_colour_by_arm_and_differ_in_marks(
    population_dir: Path, single_dir: Path, tmp_path: Path
) -> None:
    views = [read_run(run) for run in (population_dir, build_run(tmp_path / "seed1", 12, rng_seed=1), single_dir)]
    section, _ = comparison_sections(views)
    solve = next(figure for figure in section.figures if figure.id == "compare-solve-rate")
    looks = [(series["name"], series["color"], series["symbol"]) for series in solve.chart["series"]]
    assert looks == [("population-seed0", 0, "circle"), ("seed1", 0, "square"), ("single-seed0", 1, "triangle")]


def test_the_spread_over_runs_of_an_arm_is_their_range(population_dir: Path, single_dir: Path, tmp_path: Path) -> None:
    views = [read_run(run) for run in (population_dir, build_run(tmp_path / "seed1", 12, rng_seed=1), single_dir)]
    rows = {(row[0], row[1]): row[2:] for row in arm_rows(views)}
    num, *spread = rows["change against the base, sampled", "4T+4S"]
    mean, lowest, highest = map(float, spread)
    assert num == "2" and lowest < mean < highest and mean == pytest.approx((lowest + highest) / 2, abs=0.01)
    assert rows["change against the base, sampled", "single"][0::2] == ["1", "–"]


def test_runs_of_one_name_are_told_apart_by_as_many_folders_above_as_it_takes(tmp_path: Path) -> None:
    one, other, third = (tmp_path / name for name in ("x/code/seed0", "y/code/seed0", "y/seed1"))
    assert labels_of([one, other, third]) == ["x/code/seed0", "y/code/seed0", "seed1"]
    assert labels_of([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]
    assert labels_of([tmp_path / "a", tmp_path / "a"]) == ["a", "a"]


def record(rng_seed: int, arm: str = "4T+4S", **settings: object) -> RunRecord:
    config = {"run": {"rng_seed": rng_seed, "num_steps": 100}, "evolve": {"enabled": True}, "match": {"rule": "pfsp"}}
    for path, value in settings.items():
        section, name = path.split("__")
        config[section] = config[section] | {name: value}
    return RunRecord(f"seed{rng_seed}", arm, rng_seed, config)


def test_runs_that_differ_in_a_setting_are_different_arms_and_the_rarer_value_is_named() -> None:
    still = {"evolve__enabled": False}
    runs = [record(0), record(1), record(0, **still), record(1, **still), record(0, match__rule="uniform")]
    names = ["4T+4S", "4T+4S, evolve.enabled = false", "4T+4S, match.rule = uniform"]
    assert arm_names(runs) == [names[0], names[0], names[1], names[1], names[2]]


def test_where_two_arms_differ_both_say_how_and_another_arm_keeps_its_name() -> None:
    runs = [record(0), record(0, run__num_steps=400), record(0, "single", match__rule="uniform")]
    assert arm_names(runs) == ["4T+4S", "4T+4S", "single"]


def test_a_setting_that_an_older_run_does_not_know_makes_no_arm() -> None:
    assert arm_names([record(0), record(1, evolve__newer=3)]) == ["4T+4S", "4T+4S"]


def test_the_settings_in_which_runs_differ_are_listed_with_their_values(tmp_path: Path) -> None:
    view = read_run(build_run(tmp_path / "run", 2, 1, 1))
    views = [replace(view, run=record(0)), replace(view, run=record(0, match__rule="uniform", evolve__newer=3))]
    assert setting_rows(views) == [["match.rule", '"pfsp"', '"uniform"'], ["evolve.newer", "–", "3"]]
    assert setting_rows(views[:1] * 2) == []


# The lineage ---------------------------------------------------------------------------------------------------------

# Founders S0..S3. Step 10: S0 leaves, S0.10 = M1(S3). Step 20: S1 leaves, S1.20 = X3(S0.10, S2).
# Step 30: S0.10 leaves, S0.30 = M1(S1.20). Living: S0.30, S1.20, S2, S3.
FAMILY: list[tuple[dict[str, Any], list[str]]] = [
    ({"child": "S0.10", "operator": "M1"}, ["S3"]),
    ({"child": "S1.20", "operator": "X3"}, ["S0.10", "S2"]),
    ({"child": "S0.30", "operator": "M1"}, ["S1.20"]),
]
LIVING = ["S0.30", "S1.20", "S2", "S3"]


def test_founders_shares_add_up_and_two_parents_count_half_each() -> None:
    # S0.30 and S1.20 are half S3 and half S2; S2 and S3 are themselves.
    assert founder_shares(FAMILY, LIVING) == pytest.approx({"S3": 0.5, "S2": 0.5})
    restart = ({"child": "S2.40", "operator": "founder"}, [])
    assert founder_shares([*FAMILY, restart], ["S2.40"]) == {"S2.40": 1.0}


def test_an_operator_is_judged_by_the_children_that_last() -> None:
    assert num_lasting(FAMILY, LIVING) == {"M1": 2, "X3": 1}
    assert num_lasting(FAMILY, ["S2", "S3"]) == {"M1": 0, "X3": 0}


def test_the_lineage_has_every_life_and_a_link_to_every_parent(population_dir: Path) -> None:
    view = read_run(population_dir)
    found = lineage_of(view)
    assert found is not None
    chart = found.section.figures[0].chart
    assert chart["rows"] == ["T1", "T2", "T3", "T4", "S1", "S2", "S3", "S4"]
    assert len(chart["lives"]) == 8 + len(view.births)
    assert len(chart["links"]) == sum(len(parents) for _, parents in view.births)
    for row, _ in view.births:
        gone = next(life for life in chart["lives"] if life["id"] == row["replaced"])
        child = next(life for life in chart["lives"] if life["id"] == row["child"])
        assert gone["end"] == child["start"] == row["step"] and gone["row"] == child["row"] and not gone["alive"]
    assert len(found.births) == found.num_births == len(view.births)
