"""The report card: one sentence and one picture of base, control, members and product, each told apart."""

from pathlib import Path

import pytest
from synthetic_run import founders

from redqueen.journal import EvaluationRecord, Journal, RunRecord
from redqueen.report.card import MARKS, Card, report_card
from redqueen.report.html import report_html
from redqueen.report.view import RunView, read_run
from redqueen.run.store import JOURNAL

Scores = dict[tuple[str, str], tuple[float, float, float]]
BASE = (0.42, 0.40, 0.44)


def run_with(folder: Path, first: Scores, last: Scores) -> RunView:
    """Write a run of three steps with these evaluations (by individual and mode) at its start and at its end."""
    with Journal.create(folder / JOURNAL, RunRecord("r", "1T+1S", 0)) as journal:
        for step, scores in enumerate((first, {}, {}, last)):
            with journal.step(step) as tx:
                if step == 0:
                    tx.add_individuals(founders(1, 1))
                tx.add_metrics({"solve/rate": 0.5})
                tx.add_evaluations(
                    EvaluationRecord(who, "mini", "all", "all", mode, 1200, *score)  # type: ignore[arg-type]
                    for (who, mode), score in scores.items()
                )
    return read_run(folder)


def card(folder: Path, first: Scores, last: Scores) -> Card:
    return report_card(run_with(folder, first, last))


def test_base_and_students_alone_make_a_card(tmp_path: Path) -> None:
    found = card(tmp_path, {("base", "greedy"): BASE}, {("students", "greedy"): (0.45, 0.43, 0.47)})
    assert found.sentence == (
        "No clear change against the base model: right answers on the frozen suite, answering greedily: "
        "base 42.0 %, students 45.0 %."
    )
    assert found.figure is not None and found.figure.chart["categories"] == ["base", "students"]
    assert [one["name"] for one in found.figure.chart["series"]] == ["greedy"]


def test_a_control_and_a_product_stand_in_it_when_the_journal_has_them(tmp_path: Path) -> None:
    first = {("base", "greedy"): BASE, ("control", "greedy"): (0.44, 0.42, 0.46)}
    last = {
        ("students", "greedy"): (0.50, 0.48, 0.52),
        ("product", "greedy"): (0.55, 0.53, 0.57),
        ("product", "sampled"): (0.51, 0.49, 0.53),
    }
    found = card(tmp_path, first, last)
    assert found.sentence.endswith("base 42.0 %, control 44.0 %, students 50.0 %, product 55.0 %.")
    assert found.figure is not None
    assert found.figure.chart["categories"] == ["base", "control", "students", "product"]
    greedy = found.figure.chart["series"][1]
    assert greedy["values"][3] == [0.55, 0.53, 0.57]
    assert found.figure.chart["series"][0]["values"] == [None, None, None, [0.51, 0.49, 0.53]]
    assert found.rows()[3] == ["product", "51.0 % (49.0 to 53.0)", "55.0 % (53.0 to 57.0)"]


def test_the_product_of_an_end_that_was_left_behind_is_not_in_it(tmp_path: Path) -> None:
    product = {("product", "greedy"): (0.55, 0.53, 0.57), ("students", "greedy"): (0.36, 0.34, 0.38)}
    run_with(tmp_path, {("base", "greedy"): BASE}, product)
    with Journal.open(tmp_path / JOURNAL) as journal, journal.step(4) as tx:
        tx.add_metrics({"solve/rate": 0.5})
    found = report_card(read_run(tmp_path))
    assert [entry.name for entry in found.entries] == ["base", "students"] and found.standing == "worse"


@pytest.mark.parametrize(
    ("students", "standing"),
    [((0.50, 0.48, 0.52), "better"), ((0.36, 0.34, 0.38), "worse"), ((0.43, 0.41, 0.45), "unclear")],
)
def test_each_verdict_has_a_shape_of_its_own_on_the_page(
    tmp_path: Path, students: tuple[float, float, float], standing: str
) -> None:
    view = run_with(tmp_path, {("base", "greedy"): BASE}, {("students", "greedy"): students})
    page = report_html([view])
    mark = {"better": "▲", "worse": "▼", "unclear": "≈"}[standing]
    assert report_card(view).standing == standing and report_card(view).mark == mark
    assert f'<span class="standing {standing}" aria-hidden="true">{mark}</span>' in page
    assert page.index('class="headline"') < page.index('id="run-0-card"') < page.index('class="tiles"')


def test_the_shapes_differ_from_each_other() -> None:
    assert len(set(MARKS.values())) == len(MARKS)


def test_without_a_measure_there_is_a_sentence_and_no_picture(tmp_path: Path) -> None:
    found = card(tmp_path, {}, {})
    assert found == Card("unmeasured", "External fitness was not measured.", (), None)


def test_better_on_one_mode_and_worse_on_the_other_is_mixed(tmp_path: Path) -> None:
    first = {("base", "greedy"): BASE, ("base", "sampled"): BASE}
    last = {("students", "greedy"): (0.50, 0.48, 0.52), ("students", "sampled"): (0.36, 0.34, 0.38)}
    assert card(tmp_path, first, last).standing == "mixed"
