"""What children keep of their parents: a miniature is played, and its comparison is counted by hand."""

import csv
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "experiments" / "retention" / "retention.py"))


def test_a_miniature_has_a_row_for_the_base_both_parents_and_each_operator() -> None:
    quick = SCRIPT["QUICK"]
    with SCRIPT["open_bench"](quick, 1) as engine:
        trial = SCRIPT["Trial"](engine, 0, quick)
        rows = {row["member"]: row for row in trial.run()}
    assert list(rows) == ["base", "parent 1", "parent 2", *quick.operators]
    assert float(rows["copy_parent"]["change"]) == 0 < float(rows["M1"]["change"])
    assert all(0 <= float(row["birth"]) <= 1 for row in rows.values())
    assert not {task.id for task in trial.held_out} & {task.id for tasks in trial.trained for task in tasks}


def test_the_area_is_a_mean_by_trapezoids_over_updates_of_unequal_distance() -> None:
    # ((0.3 + 0.4) / 2 * 1 + (0.4 + 0.6) / 2 * 3) / 4
    assert SCRIPT["area"]([0, 1, 4], [0.3, 0.4, 0.6]) == pytest.approx(0.4625)


def test_areas_are_compared_seed_by_seed(tmp_path: Path) -> None:
    areas = {"M1": (0.5, 0.6), "copy_parent": (0.4, 0.3), "linear_0_5": (0.5, 0.6)}
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(SCRIPT["COLUMNS"])
        for seed in range(2):
            writer.writerows([seed, name, "", birth, "", ""] for name, birth in (("base", 0.2), ("parent 1", 0.4)))
            writer.writerows([seed, name, 0, 0, 0, own[seed]] for name, own in areas.items())
    # 10 and 30 points: the mean 20, the standard error 10, t with one degree of freedom 12.7062.
    assert "| M1 | 55.0 | 20.0 (-107.1 to 147.1) | 0.0 |" in SCRIPT["report"](path)
