"""What happened to the shards of a run is read back as it was written, and nothing else is."""

import json
import os
from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.nouns import ShardEvent, ShardNews
from redqueen.run.cluster_log import ClusterSummary, ShardRecord, read_summary, write_news
from redqueen.run.store import CLUSTER_LOG


def write_log(folder: Path) -> None:
    """Two shards on two machines; at step 2 one is lost and opened on the other's machine, at step 3 it moves back."""
    opened = (ShardEvent(0, "opened", "a", "", 1.5), ShardEvent(1, "opened", "b", "", 2.5))
    write_news(folder, 0, ShardNews(opened, {"asked": 100}))
    write_news(folder, 1, ShardNews((), {"asked": 1000, "answered": 2000, "backup": 5000}))
    lost = (ShardEvent(1, "lost", "b", "ActorDiedError"), ShardEvent(1, "opened", "a", "", 3.5))
    write_news(folder, 2, ShardNews(lost, {"asked": 1500, "answered": 2000, "backup": 5000}))
    write_news(folder, 3, ShardNews((ShardEvent(1, "moved", "a"), ShardEvent(1, "opened", "c", "", 0.5))))


def read(folder: Path) -> ClusterSummary:
    summary = read_summary(folder)
    assert summary is not None
    return summary


def test_a_log_tells_where_each_shard_stands_what_was_lost_and_what_was_moved(tmp_path: Path) -> None:
    write_log(tmp_path)
    summary = read(tmp_path)
    assert summary.shards == {0: ShardRecord("a", True, 1.5, 1, 0, 0), 1: ShardRecord("c", True, 0.5, 3, 1, 1)}
    assert summary.nodes == {"a", "c"}
    assert [(step, event.what, event.node) for step, event in summary.troubles] == [(2, "lost", "b"), (3, "moved", "a")]
    assert summary.moved_bytes == {"asked": 2600, "answered": 4000, "backup": 10_000}
    assert sorted(summary.moved_by_step) == [0, 1, 2]


def test_a_shard_that_was_lost_last_is_not_open(tmp_path: Path) -> None:
    write_log(tmp_path)
    write_news(tmp_path, 4, ShardNews((ShardEvent(0, "lost", "a", "no progress for 20 s"),)))
    assert [read(tmp_path).shards[number].is_open for number in (0, 1)] == [False, True]


def test_a_step_that_was_played_twice_counts_twice(tmp_path: Path) -> None:
    for _ in range(2):
        write_news(tmp_path, 5, ShardNews((), {"asked": 7}))
    assert read(tmp_path).moved_by_step == {5: {"asked": 14}}


def test_a_run_without_shards_has_no_log(tmp_path: Path) -> None:
    assert read_summary(tmp_path) is None
    write_news(tmp_path, 1, ShardNews())
    assert not (tmp_path / CLUSTER_LOG).exists()


STRANGE: list[object] = [
    [], 7, None, "text", {}, {"step": 1}, {"step": "1", "moved_bytes": {"asked": 1}}, {"step": 1.0, "what": "opened"},
    {"step": -1, "what": "opened"}, {"step": 2**60, "what": "opened"}, {"step": 1, "what": "exploded", "shard": 0},
    {"step": 1, "what": "opened", "shard": -1}, {"step": 1, "what": "opened", "shard": 10**6},
    {"step": 1, "what": "opened", "shard": True}, {"step": 1, "what": "opened", "node": 3},
    {"step": 1, "what": "opened", "node": "x" * 2000}, {"step": 1, "what": "opened", "seconds": -1.0},
    {"step": 1, "what": "opened", "seconds": float("nan")}, {"step": 1, "what": "opened", "seconds": float("inf")},
    {"step": 1, "moved_bytes": {"asked": -1}}, {"step": 1, "moved_bytes": {"asked": 10**30}},
    {"step": 1, "moved_bytes": {"<b>": 1}}, {"step": 1, "moved_bytes": {"asked": 0.5}}, {"step": 1, "moved_bytes": []},
]  # fmt: skip


def test_a_line_that_is_none_of_ours_is_passed_over(tmp_path: Path) -> None:
    write_log(tmp_path)
    before = read(tmp_path)
    with (tmp_path / CLUSTER_LOG).open("ab") as log:
        for line in STRANGE:
            log.write(json.dumps(line).encode() + b"\n")
        log.write(b"\xff\xfe\n" + b"[" * 100_000 + b"\n" + b'{"step": 1, "what": "opened"')
    assert read(tmp_path) == before
    (tmp_path / CLUSTER_LOG).write_text("\n".join(map(json.dumps, STRANGE)))
    assert read_summary(tmp_path) is None


def test_a_log_that_is_a_link_a_pipe_or_too_large_is_refused(tmp_path: Path) -> None:
    log = tmp_path / CLUSTER_LOG
    log.symlink_to("/etc/passwd")
    with pytest.raises(UserError, match="is a link"):
        read_summary(tmp_path)
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(UserError, match="no plain file"):
        read_summary(tmp_path)
    log.unlink()
    with log.open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(UserError, match="at most"):
        read_summary(tmp_path)
