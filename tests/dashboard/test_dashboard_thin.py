"""Long runs are drawn with fewer points, against numbers computed by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.dashboard.pages import in_points, with_living_meetings
from redqueen.dashboard.thin import mean_series, stretch, stretch_steps, sum_series, thin
from redqueen.report.sections import sections_of
from redqueen.report.view import read_run


def test_a_point_is_the_mean_of_its_stretch_at_the_stretchs_last_step() -> None:
    series = [(0, 9.0), (1, 1.0), (2, 3.0), (3, None), (4, 5.0), (5, None), (6, None), (7, 2.0)]
    assert mean_series(series, 3) == [(0, 9.0), (3, 2.0), (6, 5.0), (7, 2.0)]
    assert mean_series([(1, None), (2, None)], 2) == [(2, None)]


def test_bars_add_up_and_stand_at_the_stretchs_end() -> None:
    series = [(0, 4.0), (2, 1.0), (5, 2.0), (6, None), (7, 8.0)]
    assert sum_series(series, 3, last_step=7) == [(0, 4.0), (3, 1.0), (6, 2.0), (7, 8.0)]


@given(st.integers(1, 100_000), st.integers(1, 500))
def test_no_run_has_more_points_than_asked_for(num_steps: int, max_points: int) -> None:
    size = stretch_steps(num_steps, max_points)
    assert stretch(num_steps, size) <= max_points
    assert size == 1 or stretch(num_steps, size - 1) > max_points


def test_a_thin_view_keeps_sums_and_the_last_state(runs_dir: Path) -> None:
    view = read_run(runs_dir / "arms" / "population-0")
    drawn = thin(view, 5)
    assert drawn.steps == [0, 5, 10, 12] and thin(view, 1) is view
    for phase, series in view.timings.items():
        assert sum(v or 0 for _, v in drawn.timings[phase]) == pytest.approx(sum(v or 0 for _, v in series))
    assert sum(row["num"] for row in drawn.rejections) == sum(row["num"] for row in view.rejections)
    assert [row for row in drawn.ratings if row["step"] == 12] == [row for row in view.ratings if row["step"] == 12]
    totals = [point for point in drawn.curriculum if point.kind == "all"]
    assert [point.step for point in totals] == [5, 10, 12]
    assert totals[-1].coverage == max(point.coverage for point in view.curriculum if point.kind == "all")


def test_check_ups_become_means_and_keep_every_warning(runs_dir: Path) -> None:
    check_ups = [
        {"step": 2, "won_frac": 0.25, "lost_frac": None, "warnings": ["a"]},
        {"step": 4, "won_frac": 0.75, "lost_frac": None, "warnings": ["b"]},
        {"step": 6, "won_frac": None, "lost_frac": 0.5, "warnings": []},
    ]
    view = replace(read_run(runs_dir / "arms" / "population-0"), health=check_ups)
    assert thin(view, 1).health == check_ups and thin(view, 5).health == [
        {"step": 4, "won_frac": 0.5, "lost_frac": None, "warnings": ["a", "b"]},
        {"step": 6, "won_frac": None, "lost_frac": 0.5, "warnings": []},
    ]


def test_a_matrix_that_cannot_hold_everybody_holds_the_living(runs_dir: Path) -> None:
    view = read_run(runs_dir / "arms" / "population-0")
    assert with_living_meetings(view) is view
    met = {"student": "S1", "num_matches": 1, "num_tasks": 1, "solve_frac": 0.5}
    gone = [{"teacher": f"T9.{n}", **met} for n in range(30)]
    shown = with_living_meetings(replace(view, meetings=[*gone, *view.meetings])).meetings
    living = {member["id"] for member in view.individuals if member["left_step"] is None}
    assert shown == [row for row in view.meetings if {row["teacher"], row["student"]} <= living] != []


def test_notes_speak_of_points_where_a_point_is_several_steps(runs_dir: Path) -> None:
    view = read_run(runs_dir / "arms" / "population-0")
    long = replace(view, metrics={"solve/rate": [(step, 0.5) for step in range(1, 50)]})
    race = sections_of(long)[0]
    assert "over the 11 steps around; thin: each step" in in_points(race, 1).figures[0].text
    assert "over the 11 points around; thin: each point" in in_points(race, 6).figures[0].text
