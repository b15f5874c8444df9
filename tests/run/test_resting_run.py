"""A real run whose members rest in a file: journal and checkpoints are those of a run in memory, also when resumed."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from cut_run import QUICK, check_it_goes_on_as_if_never_cut, checkpoint, play

from redqueen.config import load_config
from redqueen.errors import UserError
from redqueen.journal import diff
from redqueen.run.continuation import lengthened
from redqueen.run.lifecycle import start
from redqueen.run.store import JOURNAL


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The run, and the folder in which its members rested."""
    folder = tmp_path_factory.mktemp("resting")
    (folder / "rest").mkdir()
    return play([f"population.resting_folder={folder / 'rest'}"], folder / "run"), folder / "rest"


def test_the_journal_and_every_checkpoint_are_those_of_a_run_in_memory(
    quick_run: Path, resting: tuple[Path, Path], tmp_path: Path
) -> None:
    run, rest = resting
    assert list(rest.iterdir()) == []
    copy = shutil.copytree(run, tmp_path / "copy")
    with sqlite3.connect(copy / JOURNAL) as journal:  # the config tells where members rested, and is all that differs
        ((text,),) = journal.execute("SELECT config FROM run")
        config = json.loads(text)
        assert config["population"].pop("resting_folder") == str(rest)
        config["population"]["resting_folder"] = ""
        with sqlite3.connect(quick_run / JOURNAL) as other:
            ((plain,),) = other.execute("SELECT config FROM run")
        assert config == json.loads(plain)
        journal.execute("UPDATE run SET config = ?", (plain,))
    assert diff(quick_run / JOURNAL, copy / JOURNAL) is None
    for step in (2, 4):
        first, second = checkpoint(quick_run, step), checkpoint(run, step)
        assert first.state == second.state and first.tensors.keys() == second.tensors.keys()
        assert all(tensor.equal(second.tensors[name]) for name, tensor in first.tensors.items())


def test_it_goes_on_from_a_checkpoint_as_if_it_had_never_been_cut(resting: tuple[Path, Path], tmp_path: Path) -> None:
    check_it_goes_on_as_if_never_cut(resting[0], tmp_path / "cut", 2)


def test_a_folder_that_cannot_be_used_is_refused_before_the_run_has_one(tmp_path: Path) -> None:
    config = load_config(QUICK, [f"population.resting_folder={tmp_path / 'missing'}"])
    with pytest.raises(UserError, match=r"population\.resting_folder: .*missing cannot hold"):
        start(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_may_go_on_with_its_members_in_another_folder_and_not_in_other_numbers(tmp_path: Path) -> None:
    config = load_config(QUICK)
    assert lengthened(config, ["population.resting_folder=/there"]).population.resting_folder == "/there"
    with pytest.raises(UserError, match=r"only .*population\.resting_folder may change"):
        lengthened(config, ["population.lora_rank=4"])


def test_shards_and_a_file_do_not_go_together() -> None:
    with pytest.raises(UserError, match=r"population\.resting_folder needs cluster\.num_shards 1"):
        load_config(QUICK, ["population.resting_folder=/there", "cluster.num_shards=2"])
