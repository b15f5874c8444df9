"""What is read of a run, and how a long one is drawn with fewer points, against numbers computed by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import measured

from redqueen.journal import Journal, RunRecord, TaskRecord
from redqueen.records import Task
from redqueen.report.series import MAX_POINTS, ends, mean_series, point_of, rolling, steps_per_point
from redqueen.report.view import read_run, thinned
from redqueen.run.store import JOURNAL


def of_kind(points: list[dict[str, Any]], kind: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(point[column] for column in columns) for point in points if point["kind"] == kind]


def test_the_curriculum_has_means_by_kind_and_coverage_counts_each_behaviour_once(tmp_path: Path) -> None:
    steps = {
        1: [("code_o", measured(4, 1, 2, 1), "a"), ("code_i", measured(6, 3, 4, 3), "b")],
        2: [],
        3: [("code_o", measured(8, 5, 6, 5), "a"), ("code_o", measured(10, 7, 8, 7), "c"), ("code_i", None, "c")],
    }
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0)) as journal:
        for step, tasks in steps.items():
            with journal.step(step) as tx:
                for number, (kind, measures, behaviour) in enumerate(tasks):
                    task = Task(f"{step}.{number}", "T1", "S1", kind, "def f(x): return x", ("1",), ("1",))
                    tx.add_tasks([TaskRecord(task, measures, behaviour)])
    points = read_run(tmp_path).curriculum
    every = of_kind(points, "all", "step", "num_tasks", "ast_depth", "coverage")
    assert every == [(1, 2, 5.0, 2), (2, 0, None, 2), (3, 3, 9.0, 3)]
    of_code_o = of_kind(points, "code_o", "cyclomatic", "num_lines", "num_variables", "coverage")
    assert of_code_o == [(1.0, 2.0, 1.0, 1), (None, None, None, 1), (6.0, 7.0, 6.0, 2)]
    assert {point["kind"] for point in points} == {"all", "code_o", "code_i"}


def test_rolling_means_and_ends_by_hand() -> None:
    series = [(step, float(step)) for step in range(5)]
    assert rolling(series, range(5), 2) == [1.5, 2.5, 3.5]
    assert rolling(series, [1, 2]) == [1.5] and rolling([], []) == []
    assert rolling([(1, 1.0), (2, None), (5, 2.0)], range(1, 6), 2) == [1.0, None, None, 2.0]
    assert ends(series, 4) == {"first": 1.0, "last": 4.0}
    assert ends([(1, 1.0), (2, 3.0), (20, None)], 20) == {"first": 2.0, "last": None}
    assert ends([(step, float(step)) for step in range(1, 20)], 19) == {"first": 1.5, "last": 18.5}


def test_a_point_is_the_mean_of_its_steps_at_the_last_of_them() -> None:
    series = [(0, 9.0), (1, 1.0), (2, 3.0), (3, None), (4, 5.0), (5, None), (6, None), (7, 2.0)]
    assert mean_series(series, 3) == [(0, 9.0), (3, 2.0), (6, 5.0), (7, 2.0)]
    assert mean_series([(1, None), (2, None)], 2) == [(2, None)]


@given(st.integers(1, 100_000))
def test_no_figure_has_more_points_than_its_bound(num_steps: int) -> None:
    size = steps_per_point(num_steps)
    assert point_of(num_steps, size) <= MAX_POINTS
    assert size == 1 or point_of(num_steps, size - 1) > MAX_POINTS


def test_a_thinned_view_keeps_warnings_and_the_last_state(population_dir: Path) -> None:
    check_ups = [
        {"step": 2, "won_frac": 0.25, "lost_frac": None, "warnings": ["a"]},
        {"step": 4, "won_frac": 0.75, "lost_frac": None, "warnings": ["b"]},
        {"step": 6, "won_frac": None, "lost_frac": 0.5, "warnings": []},
    ]
    view = replace(read_run(population_dir), health=check_ups)
    drawn = thinned(view, 5)
    assert drawn.steps == [0, 5, 10, 15, 20, 25, 30, 35, 36] and thinned(view, 1) is view
    assert [row for row in drawn.ratings if row["step"] == 36] == [row for row in view.ratings if row["step"] == 36]
    before, after = (of_kind(points, "all", "step", "coverage") for points in (view.curriculum, drawn.curriculum))
    assert [step for step, _ in after] == drawn.steps[1:] and after[-1] == before[-1]
    assert drawn.health == [
        {"step": 4, "won_frac": 0.5, "lost_frac": None, "warnings": ["a", "b"]},
        {"step": 6, "won_frac": None, "lost_frac": 0.5, "warnings": []},
    ]
