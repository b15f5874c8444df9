"""Trackers get each step's metrics, go on with the run they know, and are named when they are not installed."""

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redqueen.config import Config, parse_config
from redqueen.errors import UserError
from redqueen.journal import Journal
from redqueen.run import trackers
from redqueen.run.store import JOURNAL
from redqueen.run.trackers import numbers_of, open_tracker, require_tracker, tasks_of


def config(tracker: str) -> Config:
    return parse_config({"run": {"tracker": tracker, "name": "tracked"}}, "a test")


@pytest.fixture
def journal(quick_run: Path) -> Iterator[Journal]:
    with Journal.open(quick_run / JOURNAL, read_only=True) as opened:
        yield opened


def test_a_step_has_metrics_ratings_evaluations_of_the_product_and_health(journal: Journal) -> None:
    assert {"evaluation/base/greedy", "rating/T1"} <= numbers_of(journal, 0).keys()
    last = numbers_of(journal, 4)
    assert {"solve/rate", "health/lost_frac", "evaluation/product/sampled"} <= last.keys()
    assert any(name.startswith("rating/S") for name in last)
    assert any(name.startswith("product/chosen/") for name in last) and None not in last.values()


def test_at_times_there_is_a_table_of_tasks_with_an_attempt_each(journal: Journal) -> None:
    rows = tasks_of(journal, 1)
    assert rows and {"id", "code", "solved", "attempt", "verdict"} <= rows[0].keys() and tasks_of(journal, 2) == []
    assert any(row["attempt"] for row in rows)


def test_without_a_tracker_nothing_is_sent_or_written(tmp_path: Path, journal: Journal) -> None:
    with open_tracker(config("none"), tmp_path, "", -1, print) as tracker:
        tracker.log(1, journal)
        assert tracker.id == ""
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_gets_event_files_in_the_run_directory_and_a_resumed_run_adds_to_them(
    tmp_path: Path, journal: Journal
) -> None:
    pytest.importorskip("tensorboardX")
    with open_tracker(config("tensorboard"), tmp_path, "", -1, print) as tracker:
        tracker.log(1, journal)
        known = tracker.id
    with open_tracker(config("tensorboard"), tmp_path, known, 1, print) as tracker:
        tracker.log(4, journal)
        assert tracker.id == known
    events = b"".join(path.read_bytes() for path in sorted((tmp_path / "tensorboard").iterdir()))
    assert all(name in events for name in (b"solve/rate", b"rating/T1", b"tasks", b"evaluation/product/greedy"))


def log_in_two_sessions(tracker: str, folder: Path, journal: Journal) -> str:
    """Log a step, close, go on with the same run and log another; return its id."""
    with open_tracker(config(tracker), folder, "", -1, pytest.fail) as first:
        first.log(1, journal)
    with open_tracker(config(tracker), folder, first.id, 1, pytest.fail) as second:
        second.log(2, journal)
    assert second.id == first.id
    return first.id


def test_wandb_works_offline_and_keeps_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    known = log_in_two_sessions("wandb", tmp_path, journal)
    [table] = (tmp_path / "wandb").glob(f"offline-run-*-{known}/files/media/table/tasks_*.table.json")
    sent, tasks = json.loads(table.read_text(encoding="utf-8")), tasks_of(journal, 1)
    assert sent["columns"] == list(tasks[0]) and sent["data"] == [list(row.values()) for row in tasks]


def test_trackio_writes_into_its_own_folder_and_a_resumed_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when it is imported
    pytest.importorskip("trackio")
    known = log_in_two_sessions("trackio", tmp_path, journal)
    with sqlite3.connect(tmp_path / "trackio" / "redqueen.db") as database:
        rows = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY step").fetchall()
    sent = [(name, step, json.loads(metrics)) for name, step, metrics in rows]
    assert [(name, step, numbers["solve/rate"]) for name, step, numbers in sent] == [
        (known, step, numbers_of(journal, step)["solve/rate"]) for step in (1, 2)
    ]
    assert "tasks" in sent[0][2]


def test_a_tracker_is_told_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(trackers, "require_tracker", lambda config: None)
    fake = SimpleNamespace(init=lambda **given: told.append(given["config"]) or nullcontext())
    monkeypatch.setitem(sys.modules, "wandb", fake)
    asked = parse_config({"run": {"tracker": "wandb"}, "model": {"base": "/home/me/own"}}, "a test")
    with open_tracker(asked, tmp_path, "", -1, print):
        pass
    assert [one["model"]["base"] for one in told] == ["own"]


def test_a_package_that_is_missing_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in trackers.PACKAGES:
        with pytest.raises(UserError, match=rf"(?i)run.tracker is {name}, .*pip install 'redqueen\[{name}\]'"):
            require_tracker(config(name))
    require_tracker(config("none"))


def test_an_unknown_tracker_is_refused_by_the_config() -> None:
    with pytest.raises(UserError, match=r"run\.tracker"):
        config("mlflow")


class Mute(Exception):
    """Its own text raises."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("fails", "error", "told"),
    [
        *((name, ConnectionError("the server said 500"), "Error: the server said 500") for name in ("init", "finish")),
        ("log", ConnectionError("the server said 500"), "ConnectionError: the server said 500"),
        ("log", SystemExit(1), "SystemExit: 1"),
        ("log", Mute(), "Mute: <exception str() failed>"),
    ],
)
def test_a_tracker_that_raises_is_told_once_and_ends_nothing(
    fails: str, error: BaseException, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Journal
) -> None:
    def fail(name: str) -> None:
        if name == fails:
            raise error

    class Opened:
        def __enter__(self) -> "Opened":
            return self

        def __exit__(self, *_: object) -> None:
            fail("finish")

        def log(self, *_: object, **__: object) -> None:
            fail("log")

    def init(**_: object) -> Opened:
        fail("init")
        return Opened()

    monkeypatch.setitem(
        sys.modules, "wandb", SimpleNamespace(init=init, Table=lambda **_: None, __spec__=ModuleSpec("wandb", None))
    )
    said: list[str] = []
    with open_tracker(config("wandb"), tmp_path, "known", 1, said.append) as tracker:
        for step in (2, 3):
            tracker.log(step, journal)
        assert tracker.id == "known"
    assert len(said) == 1 and told in said[0]
