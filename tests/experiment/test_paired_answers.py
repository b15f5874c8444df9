"""Two evaluations beside each other, on answers that are counted by hand."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from paired_answers import main, together

KINDS = ("code_o", "code_i", "code_f")


def answers(path: Path, right: dict[str, str], *, examinee: str = "base", lost: str = "") -> Path:
    """Write one greedy answer and one sample to each item of the functions in ``right``, a mark for each kind."""
    rows = [
        {"examinee": examinee, "question": f"{name}/{kind}", "mode": mode, "correct": mark == "1"}
        | {"lost": f"{name}/{kind}" == lost}
        for name, marks in right.items()
        for kind, mark in zip(KINDS, marks, strict=True)
        for mode in ("greedy", "sampled")
    ]
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *paths: Path) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["paired_answers.py", *map(str, paths)])
    main()
    return capsys.readouterr().out.splitlines()


def test_the_items_of_one_function_are_drawn_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = answers(tmp_path / "one.jsonl", {"a": "111", "b": "000"})
    other = answers(tmp_path / "other.jsonl", {"a": "000", "b": "000"})
    greedy, first, best = printed(monkeypatch, capsys, one, other)
    assert greedy == "greedy: +50.0 (0.0 to 100.0)"  # six items on their own would hardly ever give all or none
    assert first == best == "pass@1: +50.0 (0.0 to 100.0)"


@pytest.mark.parametrize(
    ("one", "other", "both", "alone"),
    [(1.0, 0.0, 1.0, 0.5), (0.5, 0.5, 0.75, 1.0), (0.5, 0.0, 0.5, 0.5), (0.0, 0.0, 0.0, 0.0)],
)
def test_what_two_solve_together_is_counted_at_equal_attempts(
    one: float, other: float, both: float, alone: float
) -> None:
    assert together(one, other, 2) == (both, alone)


def test_items_of_which_an_answer_was_lost_are_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = answers(tmp_path / "one.jsonl", {"a": "110"}, lost="a/code_i")
    other = answers(tmp_path / "other.jsonl", {"a": "000"})
    said, greedy, *_ = printed(monkeypatch, capsys, one, other)
    assert said.startswith("1 items are left out")
    assert greedy.startswith("greedy: +50.0 (")


def test_answers_of_several_examinees_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = answers(answers(tmp_path / "both.jsonl", {"a": "111"}), {"a": "000"}, examinee="S1")
    monkeypatch.setattr(sys, "argv", ["x", str(both), str(both)])
    with pytest.raises(SystemExit, match="contains answers of S1, base"):
        main()


@pytest.mark.parametrize("text", ["", "no answers"])
def test_a_file_without_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "none.jsonl").write_text(text)
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "none.jsonl"), str(tmp_path / "none.jsonl")])
    with pytest.raises(SystemExit, match=r"none\.jsonl (contains no answers|is not a file of answers)"):
        main()
