"""A run of ``quick.toml`` with options, what its checkpoints hold, and the same run cut off and taken up again."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from redqueen.config import load_config
from redqueen.journal import diff
from redqueen.run.checkpoint import Checkpoint, list_checkpoints
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import CHECKPOINTS, JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"


def play(options: Sequence[str], folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("redqueen.run.lifecycle.NUM_CHECKPOINTS_KEPT", 9)
        start(load_config(QUICK, options), folder)
    return folder


def checkpoint(folder: Path, step: int) -> Checkpoint:
    return Checkpoint.load(dict(list_checkpoints(folder / CHECKPOINTS))[step])


def cut_after(run: Path, folder: Path, step: int) -> Path:
    """Copy a whole run into ``folder`` without the checkpoints after ``step``; return the folder."""
    shutil.copytree(run, folder)
    for at, path in list_checkpoints(folder / CHECKPOINTS):
        if at > step:
            shutil.rmtree(path)
    return folder


def check_it_goes_on_as_if_never_cut(run: Path, folder: Path, step: int) -> None:
    """Copy a whole run into ``folder``, drop what came after ``step``, resume: journal and state are as they were."""
    resume(cut_after(run, folder, step))
    check_same_end(run, folder)


def check_same_end(run: Path, folder: Path) -> None:
    """Check that two finished runs have the same journal, and last checkpoints with the same state and tensors."""
    last = max(at for at, _ in list_checkpoints(run / CHECKPOINTS))
    assert diff(run / JOURNAL, folder / JOURNAL) is None
    first, second = checkpoint(run, last), checkpoint(folder, last)
    assert first.state == second.state and first.tensors.keys() == second.tensors.keys()
    assert all(tensor.equal(second.tensors[name]) for name, tensor in first.tensors.items())
