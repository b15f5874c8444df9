"""Students beside their base on the items of one evaluation, on answers that are counted by hand."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from students_above_base import main

RIGHT = {"base": "1000", "T1": "1111", "S1": "1100", "S2": "1110"}
ROLES = {"base": "base", "T1": "teacher", "S1": "student", "S2": "student"}


def answers(folder: Path, right: dict[str, str]) -> Path:
    rows = [
        {"examinee": name, "role": ROLES[name], "question": f"{'even' if i % 2 == 0 else 'odd'}-{i}", "mode": mode}
        | {"sample": 0, "correct": mark == "1" and mode == "greedy", "lost": mark == "?"}
        for name, marks in right.items()
        for i, mark in enumerate(marks)
        for mode in ("greedy", "sampled")
    ]
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["students_above_base.py", *words])
    main()
    return capsys.readouterr().out.splitlines()


def test_students_are_compared_greedily_with_the_base_together_and_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, together, first, second = printed(monkeypatch, capsys, str(answers(tmp_path, RIGHT)))
    assert head == "4 items, base 25.0"
    assert together.startswith("students: +37.5 (")
    assert first.startswith("S1: +25.0 (")
    assert second.startswith("S2: +50.0 (")


def test_only_some_items_are_compared_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, together, *_ = printed(monkeypatch, capsys, str(answers(tmp_path, RIGHT)), "--only", "odd")
    assert head == "2 items, base 0.0"
    assert together == "students: +50.0 (0.0 to 100.0)"


def test_items_of_which_an_answer_was_lost_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = answers(tmp_path, {"base": "1000", "T1": "1111", "S1": "110?"})
    head, together, _ = printed(monkeypatch, capsys, str(path))
    assert head == "3 items, base 33.3"
    assert together.startswith("students: +33.3 (")


def test_answers_without_students_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", str(answers(tmp_path, {"base": "10"}))])
    with pytest.raises(SystemExit, match="of the base and of students"):
        main()


def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "none.jsonl")])
    with pytest.raises(SystemExit, match=r"none\.jsonl is not a file"):
        main()
