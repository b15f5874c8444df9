"""Students that restart from what all have found: when, from what, and that cutting it changes nothing."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import torch
from cut_run import check_it_goes_on_as_if_never_cut, checkpoint, play

from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.write import Row
from redqueen.learn.torch_store import FACTORS
from redqueen.run.lifecycle import resume, start
from redqueen.run.product import probe_tasks
from redqueen.run.reporting import Reporter
from redqueen.run.store import JOURNAL
from redqueen.state import state_from_plain

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


def rows(folder: Path, table: str) -> list[Row]:
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        return journal.query(f"SELECT * FROM {table}")


def test_the_students_become_what_was_distilled_before_the_next_step(run: Path) -> None:
    before, after = (checkpoint(run, step).tensors[FACTORS] for step in (2, 3))
    for slot in STUDENTS:
        assert torch.equal(after[slot], after[DISTILLED]) and not torch.equal(after[slot], before[slot])
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        metrics = read.metric_series(journal)
    [(early, first)], [(late, last)] = metrics["restart/answers"], metrics["distill/answers"]
    assert (early, late) == (3, 4) and first and last and first > 0 and last > 0


def test_a_task_that_was_solved_before_the_restart_too_does_not_choose_the_product(run: Path, tmp_path: Path) -> None:
    config, state = load_config(QUICK, OPTIONS), state_from_plain(checkpoint(run, 4).state["state"])
    path = Path(shutil.copy(run / JOURNAL, tmp_path))
    with Journal.open(path, read_only=True) as journal:
        asked = probe_tasks(config, state, journal)
        steps = [step for (step,) in journal.tuples("SELECT step FROM task")]
    assert asked and min(steps) <= 2
    columns = "teacher, student, kind, inputs, outputs, message, num_shown, protection, behaviour, behaviour_class"
    with closing(sqlite3.connect(path)) as raw, raw:  # as if it had been posed and solved, in another layout, at step 1
        raw.execute(
            f"INSERT INTO task (id, step, num_correct, code, {columns})"
            f" SELECT 'earlier', 1, 1, code || char(10), {columns} FROM task WHERE id = ?",
            [asked[0].id],
        )
    with Journal.open(path, read_only=True) as journal:
        left = probe_tasks(config, state, journal)
    assert asked[0].id not in {task.id for task in left}


def test_it_goes_on_as_if_never_cut(run: Path, tmp_path: Path) -> None:
    check_it_goes_on_as_if_never_cut(run, tmp_path / "again", step=2)


def test_a_restart_before_the_last_step_stands_beside_the_distillation_behind_it(tmp_path: Path) -> None:
    folder = play([*OPTIONS, "run.num_steps=3"], tmp_path / "run")
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        metrics = read.metric_series(journal)
    assert [step for step, _ in metrics["restart/answers"]] == [step for step, _ in metrics["distill/answers"]] == [3]


@pytest.mark.parametrize("phase", ["restart", "solve"])
def test_a_stop_drops_the_step_and_it_is_done_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    once, entered = Reporter.__call__, Reporter.enter
    at = (0, "")

    def stopping(self: Reporter, done: int, total: int, tokens: int = 0) -> None:
        nonlocal at
        if at == (3, phase):
            os.kill(os.getpid(), signal.SIGINT)
            at = (0, "")
        once(self, done, total, tokens)

    def noting(self: Reporter, step: int, name: str) -> None:
        nonlocal at
        at = (step, name)
        entered(self, step, name)

    folder = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(Reporter, "enter", noting)
        patch.setattr(Reporter, "__call__", stopping)
        assert not start(load_config(QUICK, [*OPTIONS, "run.checkpoint_every_steps=3"]), folder)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 2
    kept = checkpoint(folder, 2).tensors[FACTORS]
    assert not torch.equal(kept[STUDENTS[0]], kept[DISTILLED])  # those who were there after step 2
    assert resume(folder)
    with (
        Journal.open(folder / JOURNAL, read_only=True) as journal,
        Journal.open(run / JOURNAL, read_only=True) as other,
    ):
        for table in ("candidate", "attempt", "metric", "evaluation"):
            assert journal.query(f"SELECT * FROM {table}") == other.query(f"SELECT * FROM {table}")


def test_without_a_place_for_the_adapter_or_a_second_role_the_config_is_refused() -> None:
    with pytest.raises(UserError, match="restart_every_steps needs"):
        load_config(QUICK, ["distill.restart_every_steps=2"])
    single = ["population.single=true", "population.num_teachers=1", "population.num_students=1"]
    with pytest.raises(UserError, match="would forget how to propose"):
        load_config(QUICK, [*OPTIONS, *single])
