"""A real run with every switch of the learner on: each is at work, and resuming it changes nothing."""

from pathlib import Path

import pytest
from cut_run import check_it_goes_on_as_if_never_cut, checkpoint, play

from redqueen.journal import Journal

OPTIONS = (
    "run.num_steps=5",
    "run.num_lanes=2",
    "run.checkpoint_every_steps=1",
    "evaluate.control=false",
    "propose.complete_at_last_input=true",
    "learn.updates_per_step=2",
    "learn.decay=cosine",
    "learn.kl_weight=0.1",
    "learn.teacher_baseline=running",
    "evolve.fitness=reward",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("learner") / "run")


def test_members_are_held_to_the_base(journal: Journal) -> None:
    rows = journal.query("SELECT value FROM metric WHERE name LIKE 'learn/%/kl'")
    assert max(row["value"] for row in rows) > 0.0


def test_the_state_remembers_what_teachers_have_earned(run: Path) -> None:
    state = checkpoint(run, 3).state["state"]
    assert set(state["baselines"]["by_teacher"]) == {i["id"] for i in state["individuals"] if i["role"] == "teacher"}
    assert all(-1 <= reward <= 1 for rewards in state["rewards"].values() for reward in rewards)


@pytest.mark.parametrize("step", [3])
def test_a_run_cut_off_after_a_checkpoint_goes_on_as_if_it_had_never_been(run: Path, tmp_path: Path, step: int) -> None:
    check_it_goes_on_as_if_never_cut(run, tmp_path / "cut", step)
