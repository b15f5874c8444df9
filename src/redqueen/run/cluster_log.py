"""What happened to the shards of a run, as lines of JSON beside its journal.

The journal says what a run computed, which is the same wherever its shards stood; this file says where they stood, what
was lost, and what travelled. A resumed run goes on writing at its end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from redqueen.files import open_plain
from redqueen.nouns import ShardEvent, ShardNews
from redqueen.run.store import CLUSTER_LOG

MAX_BYTES = 64 << 20
"""Longest log that is read."""


def write_news(folder: Path, step: int, news: ShardNews) -> None:
    """Append what happened in a step; nothing when nothing did."""
    lines = [{"step": step, **asdict(event)} for event in news.events]
    if news.moved_bytes:
        lines.append({"step": step, "moved_bytes": news.moved_bytes})
    if lines:
        with (folder / CLUSTER_LOG).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    step: int
    shard: int = -1
    what: str = Field(default="", max_length=100)
    node: str = Field(default="", max_length=1000)
    detail: str = Field(default="", max_length=10_000)
    seconds: float = 0.0
    moved_bytes: dict[str, int] = Field(default_factory=dict, max_length=100)


@dataclass(frozen=True)
class ClusterSummary:
    """A log read back: where each shard was opened last, (step, event) for every loss and move, bytes by purpose."""

    nodes: dict[int, str] = field(default_factory=dict)
    troubles: tuple[tuple[int, ShardEvent], ...] = ()
    moved_bytes: Counter[str] = field(default_factory=Counter)
    num_steps: int = 0
    """Steps in which something travelled, the first evaluation included."""


def read_summary(folder: Path) -> ClusterSummary | None:
    """Read the log of a run folder; None when its shards were never apart. The folder is untrusted: a line that is
    none of ours is passed over."""
    nodes: dict[int, str] = {}
    troubles: list[tuple[int, ShardEvent]] = []
    moved: Counter[str] = Counter()
    steps: set[int] = set()
    lines = list(_lines(folder / CLUSTER_LOG))
    for line in lines:
        if line.moved_bytes:
            moved.update(line.moved_bytes)
            steps.add(line.step)
        elif line.what == "opened":
            nodes[line.shard] = line.node
        else:
            event = ShardEvent(line.shard, line.what, line.node, line.detail, line.seconds)
            troubles.append((line.step, event))
    return ClusterSummary(nodes, tuple(troubles), moved, len(steps)) if lines else None


def _lines(path: Path) -> Iterator[_Line]:
    try:
        file = open_plain(path, MAX_BYTES)
    except FileNotFoundError:
        return
    with file:
        for text in file:
            try:
                yield _Line.model_validate_json(text)
            except ValidationError:
                continue
