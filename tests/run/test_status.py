"""The status file names the phase of a run while a process runs it, and does not exist otherwise."""

import json
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.run.status import BETWEEN_S, STATUS, Status, StatusFile, read_status
from redqueen.run.store import refuse_links


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def test_a_phase_is_told_at_once_and_gone_when_the_run_ends(tmp_path: Path) -> None:
    clock = Hand()
    with StatusFile(tmp_path, clock) as status:
        status.phase(0, "propose")
        clock.at_s = 130.0
        status.phase(0, "evaluate")
        assert read_status(tmp_path) == Status(0, "evaluate", 130.0)
    assert read_status(tmp_path) is None and list(tmp_path.iterdir()) == []


def test_a_count_is_written_once_a_second_at_most_and_ends_with_its_phase(tmp_path: Path) -> None:
    clock = Hand()
    with StatusFile(tmp_path, clock) as status:
        status.phase(3, "solve")
        status.count(1, 96)
        assert read_status(tmp_path) == Status(3, "solve", 100.0)
        clock.at_s += BETWEEN_S
        status.count(7, 96)
        assert read_status(tmp_path) == Status(3, "solve", 100.0, 7, 96)
        status.phase(3, "learn")
        assert read_status(tmp_path) == Status(3, "learn", 100.0 + BETWEEN_S)


def test_a_folder_that_cannot_be_written_to_does_not_end_the_run(tmp_path: Path) -> None:
    with StatusFile(tmp_path / "gone") as status:
        status.phase(1, "match")
    assert read_status(tmp_path / "gone") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"step": 1}',
        '{"step": -1, "phase": "solve", "since_s": 1}',
        '{"step": 1, "phase": 7, "since_s": 1}',
        '{"step": true, "phase": "solve", "since_s": 1}',
        '{"step": 1, "phase": "solve", "since_s": NaN}',
        '{"step": 1, "phase": "solve", "since_s": 1, "num_all": 1e400}',
        '{"step": 1, "phase": "solve", "since_s": 1, "more": 2}',
        json.dumps({"step": 1, "phase": "x" * 5000, "since_s": 1}),
        "[" * 4000,
    ],
)
def test_a_file_that_no_run_writes_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / STATUS).write_text(text)
    assert read_status(tmp_path) is None


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"step": 1, "phase": "solve", "since_s": 1}')
    (tmp_path / STATUS).symlink_to(tmp_path / "elsewhere")
    assert read_status(tmp_path) is None


def test_a_folder_with_a_link_in_its_place_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / STATUS).symlink_to("/dev/null")
    with pytest.raises(UserError, match=r"status\.json is a link"):
        refuse_links(tmp_path)
