"""Answers of a small run, drawn whatever their verdict and distilled into an adapter."""

import sys
from pathlib import Path

import pytest

from redqueen.adapters.peft import read_adapter

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from unverified_answers import drawn_answers, main


def test_as_many_tasks_as_asked_for_have_an_answer_and_verified_ones_are_right(quick_run: Path) -> None:
    answers, right = drawn_answers(quick_run, 2, verified=True, seed=0)
    assert right == 1.0 and len({answer.task.id for answer in answers}) == 2
    assert min(drawn_answers(quick_run, 4, verified=False, seed=seed)[1] for seed in range(9)) < 1.0
    with pytest.raises(SystemExit, match="choose a smaller --num"):
        drawn_answers(quick_run, 1000, verified=False, seed=0)


def test_the_answers_are_distilled_into_a_folder_that_peft_loads(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(quick_run), "--num", "2", "--out", str(tmp_path / "out"), "--set", "run.product=distilled"]
    monkeypatch.setattr(sys, "argv", ["unverified_answers.py", *words])
    main()
    assert capsys.readouterr().out.startswith("2 answers, ")
    assert not read_adapter(tmp_path / "out").genotype.is_zero
