"""What is shown of a run's shards: a sentence, tables and a figure, in every page and for the doctor."""

import json
import unicodedata
from pathlib import Path

import pytest
from command_line import redqueen
from synthetic_run import build_run

from redqueen.nouns import ShardEvent, ShardNews
from redqueen.report.html import write_report
from redqueen.report.markdown import write_markdown
from redqueen.report.shards import MAX_ROWS, in_words, shard_tables, without_names
from redqueen.run.cluster_log import ClusterSummary, read_summary, write_news

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e" + "y" * 500


@pytest.fixture
def divided_run(tmp_path: Path) -> Path:
    """A run of two shards, one of which was lost in step 2, on machines with hostile names."""
    folder = build_run(tmp_path / "divided", 3, 1, 1, tasks_per_match=2, num_attempts=2)
    write_news(folder, 0, ShardNews((ShardEvent(0, "opened", "first"), ShardEvent(1, "opened", HOSTILE))))
    for step in (1, 2, 3):
        write_news(folder, step, ShardNews((), {"asked": 1000 * step, "answered": 500, "backup": 2_000_000}))
    write_news(folder, 2, ShardNews((ShardEvent(1, "lost", HOSTILE, HOSTILE), ShardEvent(1, "opened", "first"))))
    return folder


def summary_of(folder: Path) -> ClusterSummary:
    summary = read_summary(folder)
    assert summary is not None
    return summary


def test_the_shards_fit_in_a_sentence(divided_run: Path) -> None:
    assert in_words(summary_of(divided_run)) == (
        "2 shards on 1 machine; 6 kB asked of the shards, 1.5 kB answered by them, 6 MB backups between them; 1 lost, "
        "0 moved."
    )
    write_news(divided_run, 4, ShardNews((ShardEvent(0, "lost", "first"),)))
    assert in_words(summary_of(divided_run)).endswith("; 2 lost, 0 moved; 1 not open again.")


def test_shards_in_one_process_move_nothing(tmp_path: Path) -> None:
    write_news(
        tmp_path, 0, ShardNews((ShardEvent(0, "opened", "this process"), ShardEvent(1, "opened", "this process")))
    )
    assert in_words(summary_of(tmp_path)) == (
        "2 shards on 1 machine; nothing travelled between machines; 0 lost, 0 moved."
    )


def test_the_figure_has_the_bytes_of_each_step_in_megabytes(divided_run: Path) -> None:
    (figure,) = shard_tables(summary_of(divided_run)).figures
    points = {line["name"]: line["points"] for line in figure.chart["series"]}
    assert points["asked of the shards"] == [[1, 0.001], [2, 0.002], [3, 0.003]]
    assert points["backups between them"] == [[1, 2.0], [2, 2.0], [3, 2.0]]


def test_a_thousand_shards_and_losses_make_no_endless_page(tmp_path: Path) -> None:
    events = [ShardEvent(number, "opened", f"m{number}") for number in range(1000)]
    events += [ShardEvent(number, "lost", f"m{number}", "gone") for number in range(1000)]
    write_news(tmp_path, 1, ShardNews(tuple(events)))
    tables = shard_tables(summary_of(tmp_path))
    assert (len(tables.rows), tables.num_left_out) == (MAX_ROWS, 1000 - MAX_ROWS)
    assert (len(tables.trouble_rows), tables.num_earlier) == (MAX_ROWS, 1000 - MAX_ROWS)
    assert tables.trouble_rows[0][:2] == ["1", "999"], "the latest comes first"


def test_names_of_machines_are_cut_and_written_out(divided_run: Path) -> None:
    tables = shard_tables(summary_of(divided_run))
    for cell in [*tables.trouble_rows[0], *tables.rows[1]]:
        assert len(cell) < 200 and not any(unicodedata.category(c) in ("Cc", "Cf") for c in cell)


def test_machines_without_names_are_still_told_apart(divided_run: Path) -> None:
    nameless = without_names(summary_of(divided_run))
    assert nameless.nodes == {"machine 1"}
    assert [event.node for _, event in nameless.troubles] == ["machine 2"]


def test_the_report_has_the_sentence_and_of_a_run_without_shards_nothing(divided_run: Path, tmp_path: Path) -> None:
    html = write_report([divided_run], tmp_path / "r.html").read_text()
    text = write_markdown([divided_run], tmp_path / "r.md").read_text()
    assert "2 shards on 1 machine" in html and "2 shards on 1 machine" in text
    whole = build_run(tmp_path / "whole", 2, 1, 1, tasks_per_match=1, num_attempts=1)
    assert "shards" not in write_report([whole], tmp_path / "w.html").read_text()
    assert "shard" not in write_markdown([whole], tmp_path / "w.md").read_text()


def test_the_doctor_tells_of_a_runs_shards_and_which_are_gone(divided_run: Path, tmp_path: Path) -> None:
    _, out, _ = redqueen("doctor", divided_run)
    assert "ok   shards: 2 shards on 1 machine" in out and "ok   shard 1: on first; lost 1 times, moved 0" in out
    assert "\x1b" not in out and "\u202e" not in out
    write_news(divided_run, 4, ShardNews((ShardEvent(0, "lost", "first"),)))
    code, out, _ = redqueen("doctor", divided_run, "--json")
    lines = {line["name"]: line for line in json.loads(out)}
    assert code == 1 and lines["shard 0"]["value"].startswith("lost: `redqueen resume`") and not lines["shard 0"]["ok"]
    assert redqueen("doctor", tmp_path / "nowhere")[0] == 2


def test_a_bug_report_names_no_machine_of_a_run(divided_run: Path) -> None:
    _, out, _ = redqueen("doctor", "--copy", divided_run)
    assert "shard 0: on machine 1" in out and "on machine 2" in out and "first" not in out.split("shards:")[1]
