"""Checkpoints: whole or absent, exact, checked, and honest about damage."""

from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from processes import APART
from rights import files_of_at_most, without_root_rights

from redqueen.errors import UserError
from redqueen.run import checkpoint
from redqueen.run.checkpoint import Checkpoint, DamagedCheckpoint

TENSORS = {
    "bank.A": torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7,
    "bank.half": torch.tensor([1.5, -0.0], dtype=torch.bfloat16),
    "rng": torch.tensor([0, 255, 7], dtype=torch.uint8),
}
STATE = {"ratings": {"T1": [25.0, 25 / 3]}, "rng": {"state": 2**127 - 1}, "name": "Läufer", "none": None, "flag": True}


def save(folder: Path, step: int, **more: int) -> Path:
    return Checkpoint.save(folder, step, {"x": torch.full((2,), float(step))}, {"step": step}, **more)


def test_what_was_saved_comes_back_bit_by_bit(tmp_path: Path) -> None:
    Checkpoint.save(tmp_path, 3, TENSORS, STATE)
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 3 and found.skipped == ()
    assert found.state == STATE
    assert set(found.tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name].view(torch.uint8), tensor.view(torch.uint8))


def test_a_view_and_a_tensor_saved_twice_are_stored_as_they_are(tmp_path: Path) -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    Checkpoint.save(tmp_path, 1, {"whole": whole, "column": whole[:, 1], "again": whole}, {})
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None
    assert found.tensors["column"].tolist() == [1.0, 4.0]
    assert torch.equal(found.tensors["again"], whole)


def test_only_the_newest_are_kept_and_the_newest_is_found(tmp_path: Path) -> None:
    for step in (5, 10, 15, 20):
        save(tmp_path, step, num_kept=2)
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path)] == [15, 20]
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 20


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "altered", "missing", "empty"])
def test_a_damaged_checkpoint_is_passed_over_and_named(tmp_path: Path, name: str, damage: str) -> None:
    save(tmp_path, 10)
    victim = save(tmp_path, 20) / name
    content = victim.read_bytes()
    if damage == "missing":
        victim.unlink()
    elif damage == "altered":
        victim.write_bytes(content.replace(b"20", b"21") if b"20" in content else content[:-1] + b"\x01")
    else:
        victim.write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 10
    assert found.tensors["x"].tolist() == [10.0, 10.0]
    assert len(found.skipped) == 1 and "step-000020" in found.skipped[0] and name in found.skipped[0]


def test_a_checkpoint_reached_again_replaces_the_damaged_one(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (save(tmp_path, 20) / "state.json").write_text("{}")
    save(tmp_path, 20)
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 20 and found.skipped == ()


def test_when_all_are_damaged_the_error_names_each(tmp_path: Path) -> None:
    for step in (10, 20):
        (save(tmp_path, step) / "state.json").unlink()
    with pytest.raises(UserError, match=r"(?s)step-000020.*step-000010.*start a new run"):
        Checkpoint.latest_valid(tmp_path)


def test_a_run_killed_before_its_first_checkpoint_has_none(tmp_path: Path) -> None:
    (tmp_path / ".writing-000010").mkdir()
    assert Checkpoint.latest_valid(tmp_path) is None


def test_an_absent_folder_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no checkpoint folder .*nowhere"):
        Checkpoint.latest_valid(tmp_path / "nowhere")


def test_another_schema_version_is_refused_by_name(tmp_path: Path) -> None:
    manifest = save(tmp_path, 1) / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 2', '"schema_version": 3'))
    with pytest.raises(UserError, match="schema 3, and this redqueen reads schema 2"):
        Checkpoint.latest_valid(tmp_path)


def test_loading_one_damaged_folder_says_what_is_wrong(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    (path / "tensors.safetensors").write_bytes(b"short")
    with pytest.raises(DamagedCheckpoint, match=r"tensors.safetensors differs from what was written"):
        Checkpoint.load(path)


def test_leftovers_of_a_killed_writer_vanish_with_the_next_save(tmp_path: Path) -> None:
    leftover = tmp_path / ".writing-000010"
    leftover.mkdir()
    (leftover / "state.json").write_text("{")
    save(tmp_path, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000020"]


def test_a_step_saved_again_is_there_whenever_that_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 7, num_kept=1)
    renamed = Path.rename
    names: list[str] = []

    def cut_at_the_second(path: Path, target: Path) -> Path:
        names.append(target.name)
        if len(names) == 2:
            raise KeyboardInterrupt
        return renamed(path, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", cut_at_the_second)
        save(tmp_path, 7, num_kept=1)
    assert Checkpoint.latest_valid(tmp_path) is None
    checkpoint.restore_replaced(tmp_path)
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 7
    save(tmp_path, 8, num_kept=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000008"]


def test_a_manifest_without_a_version_is_damage_and_not_another_version(tmp_path: Path) -> None:
    save(tmp_path, 10)
    (save(tmp_path, 20) / "manifest.json").write_text("{}")
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 10 and "manifest.json differs from what was written" in found.skipped[0]


def test_later_checkpoints_go_when_a_run_falls_back(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step)
    checkpoint.remove_after(tmp_path, 10)
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path)] == [10]


def test_a_folder_without_write_permission_is_the_users_error(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    folder.chmod(0o555)
    with without_root_rights(), pytest.raises(UserError, match=r"the checkpoint folder .*checkpoints cannot be used"):
        save(folder, 1)


def test_a_file_in_the_folders_place_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("")
    with pytest.raises(UserError, match=r"the checkpoint folder .* cannot be used"):
        save(tmp_path / "checkpoints", 1)


def test_a_write_that_breaks_off_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    """A limit on the size of files breaks the write in the middle, as a full disk does."""
    Checkpoint.save(tmp_path, 1, {"x": torch.ones(4)}, {})
    with files_of_at_most(65_536), pytest.raises(UserError, match=r"the checkpoint folder .* cannot be used"):
        Checkpoint.save(tmp_path, 2, {"x": torch.ones(1_000_000)}, {})
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.step == 1
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def save_forever(folder: Path, saved: Connection) -> None:
    for step in range(1, 10_000):
        Checkpoint.save(folder, step, {"x": torch.full((200_000,), float(step))}, {"step": step})
        saved.send(step)


def test_a_process_killed_while_it_saves_leaves_a_checkpoint_that_loads(tmp_path: Path) -> None:
    ours, theirs = APART.Pipe(duplex=False)
    writer = APART.Process(target=save_forever, args=(tmp_path, theirs), daemon=True)
    writer.start()
    while ours.recv() < 5:
        pass
    writer.kill()
    writer.join()
    found = Checkpoint.latest_valid(tmp_path)
    assert found is not None and found.skipped == ()
    assert found.step >= 5 and found.state == {"step": found.step}
    assert torch.equal(found.tensors["x"], torch.full((200_000,), float(found.step)))
