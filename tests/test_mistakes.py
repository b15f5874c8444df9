"""The page of first mistakes says what is printed: every command on it is run, in a folder prepared for it."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import redqueen
from small_bases import masked_base, small_base

from redqueen.commands.init import config_text
from redqueen.run.continuation import CHANGEABLE

PAGE = Path(__file__).parent / "mistakes.md"
PAIR = re.compile(r"^## (.+?)\n.*?^```sh\nredqueen (.+?)\n```\n+```text\n(.+?)\n```", re.MULTILINE | re.DOTALL)
MISTAKES = PAIR.findall(PAGE.read_text(encoding="utf-8"))


def test_the_page_names_all_that_may_change_in_a_run_that_goes_on_and_nothing_else() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## A run that is over")[1].split("\n## ")[0]
    assert re.findall(r"`(\w+\.\w+)`", section) == list(CHANGEABLE)


def test_there_are_ten() -> None:
    assert len(MISTAKES) == PAGE.read_text(encoding="utf-8").count("\n## ") == 10


@pytest.mark.parametrize(("title", "words", "seen"), MISTAKES, ids=[title for title, _, _ in MISTAKES])
def test_a_newcomer_sees_what_the_page_says(
    title: str, words: str, seen: str, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    shutil.copytree(quick_run, tmp_path / "my-run")
    (tmp_path / "my.toml").write_text(config_text("smoke"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    masked_base(tmp_path / "bert")
    small_base(tmp_path / "short", positions=256)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, _, err = redqueen(*shlex.split(words))
    assert seen in err.replace(f"{tmp_path}/", ""), f"{title}: {err}"
    assert code == (2 if seen.startswith("redqueen: ") else 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
