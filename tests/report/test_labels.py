"""What runs are called where several stand beside each other."""

from __future__ import annotations

from pathlib import Path

from redqueen.report.labels import labels_of


def test_a_run_is_called_by_its_folder(tmp_path: Path) -> None:
    assert labels_of([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]


def test_runs_of_one_name_are_told_apart_by_as_many_folders_above_as_it_takes(tmp_path: Path) -> None:
    one, other, third = (tmp_path / name for name in ("x/code/seed0", "y/code/seed0", "y/seed1"))
    assert labels_of([one, other, third]) == ["x/code/seed0", "y/code/seed0", "seed1"]
    assert labels_of([tmp_path / "a/seed0", tmp_path / "b/seed0"]) == ["a/seed0", "b/seed0"]


def test_one_run_named_twice_keeps_one_name(tmp_path: Path) -> None:
    assert labels_of([tmp_path / "a", tmp_path / "a"]) == ["a", "a"]
