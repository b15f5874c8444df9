"""Students that are distilled during a run: what is written of it, and that interrupting it changes nothing."""

import os
import signal
from pathlib import Path

import pytest
import torch
from cut_run import check_same_end, checkpoint, cut_after, play

from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.learn.torch_learner import FACTORS
from redqueen.run.interruption import Reporter
from redqueen.run.lifecycle import resume
from redqueen.run.store import JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"
OPTIONS = (
    "run.product=distilled",
    "run.product_tasks=6",
    "run.checkpoint_every_steps=1",
    "distill.batch_size=2",
    "distill.every_steps=2",
    "learn.train_students=false",
    "evolve.enabled=false",
    "evaluate.control=false",
)
STUDENTS, DISTILLED = (2, 3), 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("distilled") / "run")


def test_the_step_after_which_students_were_distilled_has_its_figures_and_its_adapters(run: Path) -> None:
    before, after = (checkpoint(run, step).tensors[FACTORS] for step in (1, 2))
    for slot in STUDENTS:
        assert torch.equal(after[slot], after[DISTILLED]) and not torch.equal(after[slot], before[slot])
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        metrics = read.metric_series(journal)
    [(early, first), (late, last)] = metrics["distill/answers"]  # the second one is the product's
    assert (early, late) == (2, 4) and first and last and 0 < first <= last


def test_the_diversity_of_students_that_distillation_made_equal_is_not_measured(run: Path) -> None:
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        [*rows] = journal.query("SELECT student_weight_diversity AS s, teacher_weight_diversity AS t FROM health")
    assert rows and all(row["s"] is None and row["t"] is not None for row in rows)


def test_a_stop_before_a_distillation_drops_the_step_and_a_stop_in_it_lets_the_step_end(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, entered = Reporter.__call__, Reporter.enter
    at, phase = (0, ""), "solve"

    def stopping(self: Reporter, done: int, total: int, tokens: int = 0) -> None:
        nonlocal at
        if at == (2, phase):
            os.kill(os.getpid(), signal.SIGINT)
            at = (0, "")
        once(self, done, total, tokens)

    def noting(self: Reporter, step: int, name: str) -> None:
        nonlocal at
        at = (step, name)
        entered(self, step, name)

    folder = cut_after(run, tmp_path / "cut", 1)
    for phase, last in (("solve", 1), ("distill", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(Reporter, "enter", noting)
            patch.setattr(Reporter, "__call__", stopping)
            assert not resume(folder)
        with Journal.open(folder / JOURNAL, read_only=True) as journal:
            assert read.last_step(journal) == last
        kept = checkpoint(folder, last).tensors[FACTORS]
        assert torch.equal(kept[STUDENTS[0]], kept[DISTILLED]) == (phase == "distill")
    assert resume(folder)
    check_same_end(run, folder)


def test_without_a_place_for_the_adapter_or_a_second_role_the_config_is_refused() -> None:
    with pytest.raises(UserError, match="every_steps needs"):
        load_config(QUICK, ["distill.every_steps=2"])
    single = ["population.single=true", "population.num_teachers=1", "population.num_students=1"]
    with pytest.raises(UserError, match="would forget how to propose"):
        load_config(QUICK, [*OPTIONS, *single])
