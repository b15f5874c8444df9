"""A real run with every option of evolution switched on: all of it is at work, and resuming it changes nothing."""

import json
from pathlib import Path

import pytest
from cut_run import check_it_goes_on_as_if_never_cut, play

from redqueen.journal import Journal
from redqueen.report.pages import write_report

OPTIONS = (
    "run.num_steps=3",
    "run.checkpoint_every_steps=1",
    "evaluate.control=false",
    "evaluate.every_steps=2",
    "evolve.every_steps=1",
    "match.hall_of_fame_frac=0.7",
    "match.hall_of_fame_size=1",
    "propose.policy_rules=['import', 'while']",
    "learn.novelty_bonus=0.3",
    "learn.crowding_penalty=0.2",
    "learn.size_guard_frac=1.0",
    "evolve.fitness=reward",
    "evolve.protected_steps=3",
    "evolve.child_rating=inherit",
    "evolve.constants={M1 = {mutation_std = 0.05}, M4 = {mutation_std = 0.05}}",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("options") / "run")


def test_past_members_enter_at_every_generation_and_play(journal: Journal) -> None:
    entered = journal.query("SELECT * FROM hall ORDER BY step, slot")
    assert [(e["step"], e["id"][0]) for e in entered] == [(1, "T"), (1, "S"), (2, "T"), (2, "S")]
    assert all(e["id"] == f"{e['member']}@{e['step']}" and e["slot"] in (4, 5) for e in entered)
    past = {e["id"]: e["step"] for e in entered}
    matches = journal.query("SELECT * FROM match ORDER BY step, teacher, student")
    played = [(m["step"], name) for m in matches for name in (m["teacher"], m["student"]) if name in past]
    assert played and all(step > past[name] for step, name in played)
    rated = {r["individual"] for r in journal.query("SELECT DISTINCT individual FROM rating")}
    assert not rated & set(past)


def test_every_task_has_its_class_and_what_the_counter_pressures_read(journal: Journal) -> None:
    tasks = journal.query("SELECT * FROM task")
    assert tasks
    for task in tasks:
        assert task["behaviour_class"].startswith(f"{task['kind']} ")
        assert 0 <= task["novelty"] <= 1 and 0 < task["crowd_frac"] <= 1 and 0 <= task["size_hardness"] <= 1


def test_births_say_what_the_operator_acted_on_and_how_far_each_layer_moved(journal: Journal) -> None:
    births = journal.query("SELECT * FROM birth")
    assert births and {b["space"] for b in births} == {"delta"}
    for birth in births:
        layers = json.loads(birth["layer_changes"])
        assert len(layers) > 1 and all(change >= 0 for change in layers.values())
        if layers.values() and birth["relative_change"]:
            assert min(layers.values()) <= birth["relative_change"] <= max(layers.values())


def test_every_generation_has_its_check_up(journal: Journal) -> None:
    rows = journal.query("SELECT * FROM health ORDER BY step")
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        solved = journal.query(
            "SELECT num_correct, num_attempts FROM task WHERE step = ? AND num_attempts > 0", (row["step"],)
        )
        won = sum(t["num_correct"] == t["num_attempts"] for t in solved)
        assert row["won_frac"] == (pytest.approx(won / len(solved)) if solved else None)
        assert json.loads(row["warnings"]) == []  # no warning within the first ten steps
        assert row["student_weight_diversity"] is None or row["student_weight_diversity"] >= 0


def test_students_are_evaluated_at_the_interval_and_at_the_end(journal: Journal) -> None:
    assert {row["step"] for row in journal.query("SELECT step FROM evaluation")} == {0, 2, 3}


def test_the_report_shows_the_check_ups(run: Path, tmp_path: Path) -> None:
    page = write_report([run], tmp_path / "report.html").read_text()
    assert "Health of the co-evolution" in page


@pytest.mark.slow
def test_a_run_cut_off_after_a_checkpoint_goes_on_as_if_it_had_never_been(run: Path, tmp_path: Path) -> None:
    check_it_goes_on_as_if_never_cut(run, tmp_path / "cut", step=1)
