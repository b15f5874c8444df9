"""Trackers get each step's metrics, go on with the run they know, and are named when they are not installed."""

import importlib.util
import json
import sqlite3
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from redqueen.config import Config, parse_config
from redqueen.errors import UserError
from redqueen.run import trackers
from redqueen.run.trackers import finite_only, open_tracker, require_tracker


def config(tracker: str) -> Config:
    return parse_config({"run": {"tracker": tracker, "name": "tracked"}}, "a test")


def test_without_a_tracker_nothing_is_sent_or_written(tmp_path: Path) -> None:
    with open_tracker(config("none"), tmp_path, "", -1, print) as tracker:
        tracker.log(1, {"solve/rate": 0.5})
        assert tracker.id == ""
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_gets_event_files_in_the_run_directory_and_a_resumed_run_adds_to_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with open_tracker(config("tensorboard"), tmp_path, "", -1, print) as tracker:
        tracker.log(1, {"solve/rate": 0.25})
        known = tracker.id
    with open_tracker(config("tensorboard"), tmp_path, known, 1, print) as tracker:
        tracker.log(2, {"propose/valid_frac": 0.75})
        assert tracker.id == known
    events = b"".join(path.read_bytes() for path in sorted((tmp_path / "tensorboard").iterdir()))
    assert b"solve/rate" in events and b"propose/valid_frac" in events


def log_in_two_sessions(tracker: str, folder: Path) -> str:
    """Log a step, close, go on with the same run and log another; return its id."""
    with open_tracker(config(tracker), folder, "", -1, print) as first:
        first.log(1, {"solve/rate": 0.25})
    with open_tracker(config(tracker), folder, first.id, 1, print) as second:
        second.log(2, {"solve/rate": 0.5})
    assert second.id == first.id
    return first.id


def test_wandb_works_offline_and_keeps_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    known = log_in_two_sessions("wandb", tmp_path)
    assert list((tmp_path / "wandb").glob(f"offline-run-*-{known}"))


def test_trackio_writes_into_its_own_folder_and_a_resumed_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when it is imported
    pytest.importorskip("trackio")
    known = log_in_two_sessions("trackio", tmp_path)
    with sqlite3.connect(tmp_path / "trackio" / "redqueen.db") as database:
        rows = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY step").fetchall()
    assert [(name, step, json.loads(metrics)) for name, step, metrics in rows] == [
        (known, 1, {"solve/rate": 0.25}),
        (known, 2, {"solve/rate": 0.5}),
    ]


def test_a_package_that_is_missing_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in trackers.PACKAGES:
        with pytest.raises(UserError, match=rf"(?i)run.tracker is {name}, .*pip install 'redqueen\[{name}\]'"):
            require_tracker(config(name))
    require_tracker(config("none"))


def test_an_unknown_tracker_is_refused_by_the_config() -> None:
    with pytest.raises(UserError, match=r"run\.tracker"):
        config("mlflow")


def test_what_is_not_defined_is_left_out() -> None:
    assert finite_only({"a": 1.0, "b": float("nan"), "c": None, "d": float("inf")}) == {"a": 1.0}


@pytest.mark.parametrize("fails", ["init", "log", "finish"])
def test_a_tracker_that_raises_is_told_once_and_ends_nothing(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        if name == fails:
            raise ConnectionError("the server said 500")

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

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, __spec__=ModuleSpec("wandb", None)))
    said: list[str] = []
    with open_tracker(config("wandb"), tmp_path, "known", 1, said.append) as tracker:
        for step in (2, 3):
            tracker.log(step, {"solve/rate": 0.5})
        assert tracker.id == "known"
    assert len(said) == 1 and "ConnectionError: the server said 500" in said[0]
