"""A run on another embedded base: not resumed, evaluated or exported, since its adapters mean nothing here."""

import shutil
from pathlib import Path

import pytest

from redqueen.commands.examinees import open_examination
from redqueen.commands.export import open_member
from redqueen.errors import UserError
from redqueen.run import checkpoint as checkpoint_module
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.lifecycle import resume
from redqueen.run.store import CHECKPOINTS


def test_a_checkpoint_names_the_weights_it_stands_on_and_is_refused_on_others(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(quick_run, folder)
    checkpoint = Checkpoint.latest_valid(folder / CHECKPOINTS)
    assert checkpoint is not None and len(checkpoint.state["embedded_base"]) == 64
    monkeypatch.setattr(checkpoint_module, "weights_sha256", lambda folder: "0" * 64)
    for use in (
        lambda: resume(folder),
        lambda: open_member(folder, "S1"),
        lambda: open_examination(str(folder), ()).__enter__(),
    ):
        with pytest.raises(UserError, match=f"{folder} was trained on another embedded base"):
            use()


def test_a_run_of_a_base_of_the_user_s_own_names_none() -> None:
    assert checkpoint_module.named_base("owner/name") == {}
