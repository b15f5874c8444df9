"""Where the shards of a run stand, what travelled between them and what was lost, as words, tables and a figure.

The log that says it lies in the run's folder and is untrusted: names and reasons are cut, and written in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from redqueen.display import NOTHING, duration, size, visible
from redqueen.journal.read import Series
from redqueen.nouns import ShardEvent
from redqueen.report.figure import Figure, line
from redqueen.run.cluster_log import ClusterSummary

MAX_ROWS = 100
"""Longest table: shards, and the latest losses and moves."""

MAX_CHARS = 120
"""Longest name of a machine, or reason of a loss, that is shown."""

PURPOSES = {"asked": "asked of the shards", "answered": "answered by them", "backup": "backups between them"}
"""What bytes are for, by its name in the log."""

HEAD = ["shard", "stands on", "opened", "last opening", "lost", "moved"]
TROUBLE_HEAD = ["step", "shard", "what", "where", "why"]
SHARDS_TEXT = (
    "The population is divided among these shards. A shard that is lost is opened again from its backup, and the run "
    "computes what it would have computed. Counts are over all sessions of the run."
)
BYTES_TEXT = (
    "What travelled in each step, by purpose: prompts, completions and advantages to and from the shards, and their "
    "backups from machine to machine. A step with a checkpoint or a birth has the factors in it too."
)


@dataclass(frozen=True)
class ShardTables:
    """What a page shows of the shards; a log that cannot be read leaves a sentence alone.

    ``num_left_out``: shards beyond the table's length; ``num_earlier``: losses and moves beyond it.
    """

    sentence: str
    rows: list[list[str]] = field(default_factory=list)
    num_left_out: int = 0
    trouble_rows: list[list[str]] = field(default_factory=list)
    num_earlier: int = 0
    figures: tuple[Figure, ...] = ()
    head: list[str] = field(default_factory=lambda: HEAD)
    trouble_head: list[str] = field(default_factory=lambda: TROUBLE_HEAD)


def in_words(summary: ClusterSummary) -> str:
    """Return the shards in one sentence."""
    num_lost, num_moved = (sum(event.what == what for _, event in summary.troubles) for what in ("lost", "moved"))
    moved = summary.moved_bytes
    travelled = ", ".join(f"{size(moved[purpose])} {text}" for purpose, text in PURPOSES.items() if moved[purpose])
    down = sum(not shard.is_open for shard in summary.shards.values())
    return (
        f"{_count(len(summary.shards), 'shard')} on {_count(len(summary.nodes), 'machine')}; "
        f"{travelled or 'nothing travelled between machines'}; {num_lost:,} lost, {num_moved:,} moved"
        f"{f'; {down:,} not open again' if down else ''}."
    )


def shard_tables(summary: ClusterSummary, thinned: Callable[[Series], Series] = list) -> ShardTables:
    """Return the tables and figures; ``thinned`` makes a series of bytes by step shorter where a run is long."""
    shown = sorted(summary.shards.items())[:MAX_ROWS]
    rows = [
        [
            str(number),
            in_one_line(shard.node) or NOTHING,
            f"{shard.num_opened:,} times" if shard.num_opened != 1 else "once",
            duration(shard.opening_s),
            f"{shard.num_lost:,}",
            f"{shard.num_moved:,}",
        ]
        for number, shard in shown
    ]
    latest = summary.troubles[-MAX_ROWS:][::-1]
    figure = _bytes_figure(summary, thinned)
    return ShardTables(
        sentence=in_words(summary),
        rows=rows,
        num_left_out=len(summary.shards) - len(shown),
        trouble_rows=[_trouble_row(step, event) for step, event in latest],
        num_earlier=len(summary.troubles) - len(latest),
        figures=() if figure is None else (figure,),
    )


def without_names(summary: ClusterSummary) -> ClusterSummary:
    """Return the summary with numbers in place of the machines' names, for what is shown to others."""
    names = [shard.node for _, shard in sorted(summary.shards.items())]
    names += [event.node for _, event in summary.troubles]
    number = {name: f"machine {i + 1}" for i, name in enumerate(name for name in dict.fromkeys(names) if name)}
    shards = {i: replace(shard, node=number.get(shard.node, "")) for i, shard in summary.shards.items()}
    troubles = tuple((step, replace(one, node=number.get(one.node, ""))) for step, one in summary.troubles)
    return replace(summary, shards=shards, troubles=troubles)


def in_one_line(text: str) -> str:
    """Return an untrusted name or reason as it may be shown."""
    return visible(text, max_chars=MAX_CHARS, one_line=True)


def _trouble_row(step: int, event: ShardEvent) -> list[str]:
    return [str(step), str(event.shard), event.what, in_one_line(event.node) or NOTHING, in_one_line(event.detail)]


def _bytes_figure(summary: ClusterSummary, thinned: Callable[[Series], Series]) -> Figure | None:
    steps = sorted(summary.moved_by_step)
    series = [
        line(text, thinned([(step, summary.moved_by_step[step][purpose] / 1e6) for step in steps]), at, at)
        for at, (purpose, text) in enumerate(PURPOSES.items())
        if any(summary.moved_by_step[step][purpose] for step in steps)
    ]
    if not series:
        return None
    return Figure("moved-bytes", "Bytes moved", "MB a step", BYTES_TEXT, {"type": "lines", "series": series, "low": 0})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
