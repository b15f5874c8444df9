"""The timeline of warnings: what warned, from when to when, and what is wrong now."""

from pathlib import Path

import pytest
from synthetic_run import founders

from redqueen.journal import Journal, RunRecord
from redqueen.report.timeline import Health, health_of
from redqueen.report.view import read_run
from redqueen.run.store import JOURNAL


def health(folder: Path, warnings: dict[int, list[str]], num_steps: int = 8) -> Health:
    """Return the health of a run whose check-ups warned of this; each of its steps took a minute."""
    with Journal.create(folder / JOURNAL, RunRecord("r", "1T+1S", 0)) as journal:
        for step in range(num_steps + 1):
            with journal.step(step) as tx:
                tx.add_timings({"solve": 50.0, "learn": 10.0})
                if step == 0:
                    tx.add_individuals(founders(1, 1))
                if step in warnings:
                    tx.add_health({"won_frac": 0.1}, warnings[step])
    return health_of(read_run(folder))


def test_a_warning_of_the_past_is_told_with_its_date_though_the_last_check_up_is_well(tmp_path: Path) -> None:
    found = health(tmp_path, {2: ["Cycling: 40% off the ladder."], 4: []})
    assert found.now == [] and (found.num_check_ups, found.last_step) == (2, 4)
    assert found.rows == [["2", "1", "after 3 min 0 s", "Cycling: 40% off the ladder."]]


def test_a_warning_that_stays_is_one_in_its_last_words_and_one_that_returns_is_two(tmp_path: Path) -> None:
    low, lower = "Loss of diversity: 20% apart.", "Loss of diversity: 12% apart."
    found = health(tmp_path, {2: [low], 4: [lower], 6: [], 8: [low]})
    assert [(one.steps, one.num_check_ups, one.text) for one in found.past] == [
        ("8", 1, low),
        ("2 to 4", 2, lower),
    ]
    assert found.now == [low]


def test_two_warnings_of_one_check_up_are_two(tmp_path: Path) -> None:
    both = ["Cycling: 40% off.", "Forgetting: fell by 30%."]
    found = health(tmp_path, {2: both, 4: both[1:]})
    assert {(one.steps, one.text) for one in found.past} == {("2", both[0]), ("2 to 4", both[1])}


@pytest.mark.parametrize(("warnings", "num"), [({}, 0), ({3: []}, 1)])
def test_without_warnings_the_timeline_is_empty(tmp_path: Path, warnings: dict[int, list[str]], num: int) -> None:
    assert health(tmp_path, warnings) == Health([], [], num, max(warnings, default=0))
