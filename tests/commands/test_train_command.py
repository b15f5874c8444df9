"""What `train` and `resume` say of a run that was stopped: how to go on."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import redqueen

from redqueen.commands.train import run_and_report
from redqueen.config.load import presets


def interrupted() -> bool:
    raise KeyboardInterrupt


@pytest.mark.parametrize("play", [lambda: False, interrupted], ids=["after the phase", "at once"])
@pytest.mark.parametrize(
    ("name", "remedy"), [("", "stopped; resume it with: redqueen resume"), ("none", "stopped; nothing was written")]
)
def test_a_run_that_is_stopped_leaves_with_130_and_says_how_to_go_on(
    play: Callable[[], bool], name: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = tmp_path / "with a space"
    tmp_path.mkdir()
    with pytest.raises(SystemExit) as end:
        run_and_report(tmp_path / name, play)
    out, err = capsys.readouterr()
    assert name or shlex.split(err.rpartition(": ")[2]) == ["redqueen", "resume", str(tmp_path)]
    assert (end.value.code, out) == (130, "") and remedy in err
    assert not (tmp_path / name / "report.html").exists()


def test_a_preset_whose_base_is_a_folder_is_refused_by_the_dry_run_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = redqueen("train", "smollm2", "--dry-run")
    assert code == 2 and "model.base is ./models/smollm2-135m-instruct, and there is no such folder" in err


@pytest.mark.parametrize("words", [("train",), ("presets",)])
def test_the_presets_are_listed_with_one_line_each(words: tuple[str, ...]) -> None:
    code, out, err = redqueen(*words)
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0 and list(lines) == list(presets()) and "redqueen train NAME" in err
    assert all(line.endswith(".") and len(line) <= 100 for line in lines.values())
    assert list(lines)[:2] == ["maths", "smoke"] and list(lines)[-2:] == ["paper", "paper-7b"]
    assert all(re.search(r"minutes?\b|hours?\b", line) for line in lines.values()), "a line without a time"
