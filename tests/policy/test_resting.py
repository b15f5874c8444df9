"""Numbers in a file without a name: kept when they leave memory, and refused in one sentence when there is no room."""

from pathlib import Path

import pytest
import torch
from tiny_models import tiny_bank

from redqueen.errors import UserError
from redqueen.policy.resting import RestingFile


def resident_kb() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


def test_what_was_written_is_there_after_it_left_memory(tmp_path: Path) -> None:
    file = RestingFile(str(tmp_path), (4, 4_000_000))
    assert not file.numbers.any()
    wanted = torch.rand(4, 4_000_000)
    file.numbers.copy_(wanted)
    held = resident_kb()
    file.let_go()
    assert held - resident_kb() > 48_000  # of 64 MB
    assert torch.equal(file.numbers, wanted)


def test_the_file_has_no_name(tmp_path: Path) -> None:
    file = RestingFile(str(tmp_path), (2, 3))
    assert list(tmp_path.iterdir()) == []
    assert file.numbers.shape == (2, 3)


def test_a_folder_that_is_not_there_and_a_disk_that_is_too_small_are_named(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", Path(__file__)):
        with pytest.raises(UserError, match=rf"population\.resting_folder: {folder} cannot hold 24 B .*name a folder"):
            RestingFile(str(folder), (2, 3))
    with pytest.raises(UserError, match=r"cannot hold .* for members at rest"):
        RestingFile(str(tmp_path), (1 << 58,))


def test_members_in_a_file_are_those_in_memory(tmp_path: Path) -> None:
    here, there = tiny_bank(trained=False), tiny_bank(trained=False, resting_folder=str(tmp_path))
    assert torch.equal(here.flat, there.flat)
    for bank in (here, there):
        bank.copy(0, into=2)
        bank.load(1, bank.genotype(2))
        bank.reset(0, 5)
    assert torch.equal(here.flat, there.flat)
    routes = [bank.route([1, 0, -1]) for bank in (here, there)]
    assert all(torch.equal(a, b) for one in ("a", "b") for a, b in zip(*(getattr(r, one) for r in routes), strict=True))
