"""Students that restart from what all have found: when, from what, and that cutting it changes nothing."""

import os
import signal
from pathlib import Path

import pytest
import torch
from cut_run import check_it_goes_on_as_if_never_cut, checkpoint, play

from redqueen.config import DistillConfig, load_config
from redqueen.errors import UserError
from redqueen.journal import Journal, diff, read
from redqueen.learn.torch_learner import TorchLearner
from redqueen.learn.torch_store import FACTORS
from redqueen.run.lifecycle import resume, start
from redqueen.run.restarts import is_restart_due
from redqueen.run.store import JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"
OPTIONS = (
    "run.product=distilled",
    "run.product_tasks=6",
    "run.checkpoint_every_steps=1",
    "run.num_checkpoints_kept=9",
    "distill.batch_size=2",
    "distill.restart_every_steps=2",
    "learn.train_students=false",
    "evolve.enabled=false",
    "evaluate.control=false",
)
STUDENTS, DISTILLED = (2, 3), 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("restarts") / "run")


def test_it_is_due_after_every_so_many_steps_and_never_at_0() -> None:
    every_two = DistillConfig(restart_every_steps=2)
    assert [is_restart_due(every_two, step) for step in range(5)] == [False, False, True, False, True]
    assert not is_restart_due(DistillConfig(), 2)


def test_the_students_become_what_was_distilled_before_the_next_step(run: Path) -> None:
    before, after = (checkpoint(run, step).tensors[FACTORS] for step in (2, 3))
    for slot in STUDENTS:
        assert torch.equal(after[slot], after[DISTILLED]) and not torch.equal(after[slot], before[slot])
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        metrics = read.metric_series(journal)
    assert metrics["distill/restarted"] == [(3, 2.0)]
    (early, first), (late, last) = metrics["distill/answers"]
    assert (early, late) == (3, 4) and first and last and 0 < first <= last


def test_it_goes_on_as_if_never_cut(run: Path, tmp_path: Path) -> None:
    check_it_goes_on_as_if_never_cut(run, tmp_path / "again", step=2)


@pytest.mark.parametrize("supervised", [True, False], ids=["in the distillation", "in the step behind it"])
def test_a_stop_drops_the_step_and_it_is_done_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supervised: bool
) -> None:
    calls = 0
    update = TorchLearner.update

    def stopping(self: TorchLearner, rollouts: object, tunings: object = None) -> object:
        nonlocal calls
        restarting = any(tuning.supervised for tuning in tunings.values())  # type: ignore[attr-defined]
        calls += restarting
        if (supervised and calls == 1) or (calls and not supervised and not restarting):
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, rollouts, tunings)  # type: ignore[arg-type]

    folder = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(TorchLearner, "update", stopping)
        assert not start(load_config(QUICK, OPTIONS), folder)
    assert calls
    assert resume(folder)
    assert diff(run / JOURNAL, folder / JOURNAL) is None
    assert torch.equal(*(checkpoint(one, 4).tensors[FACTORS] for one in (run, folder)))


def test_without_a_place_for_the_distilled_adapter_the_config_is_refused() -> None:
    with pytest.raises(UserError, match="restart_every_steps needs"):
        load_config(QUICK, ["distill.restart_every_steps=2"])
