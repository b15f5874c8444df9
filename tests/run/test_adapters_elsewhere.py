"""A run whose adapters stand in another process is the same run."""

import shutil
from pathlib import Path

import pytest
import torch
from adapters_elsewhere import adapters_elsewhere
from scripted import config_of

from redqueen.journal import Journal
from redqueen.journal.compare import diff
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import CHECKPOINTS, JOURNAL

pytestmark = pytest.mark.usefixtures("own_base_scores")

CONFIG = config_of(
    run={"num_threads": 1, "num_steps": 2, "device": "cpu", "checkpoint_every_steps": 1, "product": "none"},
    propose={"num_proposals": {"code_o": 2, "code_i": 0, "code_f": 0}, "max_new_tokens": 44, "num_seed_proposals": 1},
    solve={"num_attempts": 3, "max_new_tokens": 24},
    match={"hall_of_fame_frac": 0.5, "hall_of_fame_size": 2},
    evolve={"enabled": True, "every_steps": 1, "operators": ["M4", "X2"]},
    evaluate={"max_items": 3, "num_samples": 1, "control": False},
    verify={"num_workers": 1, "accept_cpu_ms": 4000, "kill_cpu_ms": 8000},
)


@pytest.mark.slow
def test_a_run_with_its_adapters_in_another_process_writes_the_same_journal_and_checkpoint(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    assert start(CONFIG, here)
    with adapters_elsewhere() as (load, pipes):
        assert start(CONFIG, elsewhere, load)
    assert pipes[0].num_calls > 20
    with Journal.open(here / JOURNAL, read_only=True) as journal:
        for table in ("birth", "hall", "attempt", "health"):
            assert journal.query(f"SELECT 1 FROM {table}"), f"nothing in {table} crossed the pipe"
    assert diff(here / JOURNAL, elsewhere / JOURNAL) is None
    one, two = (Checkpoint.latest_valid(folder / CHECKPOINTS) for folder in (here, elsewhere))
    assert one is not None and two is not None and one.state == two.state
    assert one.tensors.keys() == two.tensors.keys() and any(name.startswith("learner.") for name in one.tensors)
    assert all(torch.equal(tensor, two.tensors[name]) for name, tensor in one.tensors.items())


@pytest.mark.slow
def test_a_run_that_began_here_goes_on_elsewhere(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert start(CONFIG, whole)
    shutil.copytree(whole, cut)
    (cut / CHECKPOINTS / "step-000002" / "manifest.json").unlink()
    with adapters_elsewhere() as (load, _):
        assert resume(cut, load=load)
    assert diff(whole / JOURNAL, cut / JOURNAL) is None
