"""Files that are there as a whole or not at all."""

import os
import resource
from pathlib import Path

import pytest

from redqueen.files import making_folder, write_whole


def test_a_file_is_written_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    write_whole(path, "first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="a folder to be made needs a name"), making_folder(Path(".")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_text_with_a_lone_surrogate_is_written_all_the_same(tmp_path: Path) -> None:
    write_whole(tmp_path / "note.txt", "a\ud800b")
    assert (tmp_path / "note.txt").read_text() == "a\\ud800b"


def test_a_write_that_breaks_off_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    write_whole(path, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError):
            write_whole(path, "new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
