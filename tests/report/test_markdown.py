"""The summary in markdown: the same words and numbers, and hostile names stay text."""

from pathlib import Path

import pytest

from redqueen.errors import UserError
from redqueen.journal import Journal, RunRecord
from redqueen.report.markdown import report_markdown, write_markdown
from redqueen.report.story import tell
from redqueen.report.view import read_run
from redqueen.run.store import JOURNAL


def test_the_summary_has_the_story_the_members_and_the_births(population_dir: Path, tmp_path: Path) -> None:
    text = write_markdown([population_dir], tmp_path / "report.md").read_text(encoding="utf-8")
    view = read_run(population_dir)
    assert "## population-seed0 (4T+4S, 36 steps, seed 0)" in text
    assert f"▲ **{tell(view).headline}: right answers on the frozen suite" in text
    assert "### Members at the end" in text
    assert text.count("\n| T") + text.count("\n| S") >= 8 + len(view.births)


def test_every_table_has_as_many_cells_in_each_row_as_in_its_head(population_dir: Path, single_dir: Path) -> None:
    text = report_markdown([read_run(population_dir), read_run(single_dir)])
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1
    assert "## Side by side" in text


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    name = "a|b <img src=x onerror=alert(1)> [x](javascript:alert(1)) `code` \x1b[31m"
    with Journal.create(tmp_path / JOURNAL, RunRecord(name, name, 0)) as journal, journal.step(0):
        pass
    heading = next(line for line in report_markdown([read_run(tmp_path, name)]).splitlines() if line.startswith("## "))
    assert "\\<img src=x onerror=alert(1)\\>" in heading and "\\[x\\](javascript" in heading
    assert "\\`code\\`" in heading and "␛" in heading


def test_a_place_that_cannot_be_written_is_the_users_error(population_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Cannot write the summary to .*report.md"):
        write_markdown([population_dir], tmp_path / "missing" / "report.md")
