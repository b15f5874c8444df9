"""A real run with every lever of a population and every switch of the learner on; resuming it changes nothing."""

from pathlib import Path

import pytest
from cut_run import check_it_goes_on_as_if_never_cut, checkpoint, play

from redqueen.journal import Journal, read
from redqueen.run.continuation import spent_so_far

OPTIONS = (
    "run.num_steps=3",
    "evolve.every_steps=1",
    "run.num_lanes=2",
    "run.checkpoint_every_steps=1",
    "evaluate.control=false",
    "run.product_tasks=6",
    "solve.num_attempts=4",
    "solve.temperature=0.8",
    "propose.temperature=1.1",
    "propose.complete_at_last_input=true",
    "run.product=distilled",
    "distill.every_steps=2",
    "distill.batch_size=2",
    "learn.updates_per_step=2",
    "learn.decay=cosine",
    "learn.kl_weight=0.1",
    "learn.teacher_baseline=running",
    "evolve.fitness=probe",
    "evolve.probe_tasks=4",
    "evolve.genes=['learning_rate', 'temperature']",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("levers") / "run")


def test_members_are_held_to_the_base(journal: Journal) -> None:
    rows = journal.query("SELECT value FROM metric WHERE name LIKE 'learn/%/kl'")
    assert max(row["value"] for row in rows) > 0.0


def test_the_state_remembers_what_teachers_have_earned(run: Path) -> None:
    state = checkpoint(run, 3).state["state"]
    assert set(state["baselines"]["by_teacher"]) == {i["id"] for i in state["individuals"] if i["role"] == "teacher"}
    assert all(-1 <= reward <= 1 for rewards in state["rewards"].values() for reward in rewards)


def test_every_lever_leaves_its_trace(run: Path, journal: Journal) -> None:
    metrics = read.metric_series(journal)
    assert "evolve/probe_rate" in metrics
    assert any(name.startswith("product/chosen/") for name in metrics)
    state = checkpoint(run, 3).state["state"]
    assert len({str(i["genes"]) for i in state["individuals"]}) == 4
    assert state["archive"]["entries"] and state["probes"]


def test_what_acted_is_measured(journal: Journal) -> None:
    metrics = read.metric_series(journal)
    assert all(0 <= value <= 0.5 for _, value in metrics["match/rating_share"] if value is not None)
    ranks = [value for role in ("teacher", "student") for _, value in metrics[f"evolve/left_rank/{role}"]]
    assert ranks and set(ranks) <= {0.0, 0.5, 1.0}


def test_tokens_that_stand_in_no_row_count_as_spent(journal: Journal) -> None:
    metrics = read.metric_series(journal)
    unlisted = sum(value for _, value in metrics["evolve/probe_tokens"] if value)
    [(listed,)] = journal.tuples(
        "SELECT (SELECT sum(num_tokens) FROM candidate) + (SELECT sum(num_tokens) FROM attempt)"
    )
    assert unlisted > 0 and spent_so_far(journal).tokens == listed + unlisted


def test_a_run_cut_off_after_a_checkpoint_goes_on_as_if_it_had_never_been(run: Path, tmp_path: Path) -> None:
    check_it_goes_on_as_if_never_cut(run, tmp_path / "cut", step=1)
