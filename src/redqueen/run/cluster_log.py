"""What happened to the shards of a run, as lines of JSON beside its journal.

The journal says what a run computed, which is the same wherever its shards stood; this file says where they stood, what
was lost, and what travelled. A resumed run goes on writing at its end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from redqueen.files import open_plain
from redqueen.nouns import ShardEvent, ShardNews
from redqueen.run.store import CLUSTER_LOG

MAX_BYTES = 16 << 20
"""Longest log that is read."""

MAX_SHARDS = 100_000
LARGEST = 2**53
"""Greatest step and number of bytes that a line may hold."""


def write_news(folder: Path, step: int, news: ShardNews) -> None:
    """Append what happened in a step; nothing when nothing did."""
    lines = [{"step": step, **asdict(event)} for event in news.events]
    if news.moved_bytes:
        lines.append({"step": step, "moved_bytes": news.moved_bytes})
    if lines:
        with (folder / CLUSTER_LOG).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


_Bytes = Annotated[int, Field(ge=0, le=LARGEST)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    step: int = Field(ge=0, le=LARGEST)
    shard: int = Field(default=0, ge=0, lt=MAX_SHARDS)
    what: Literal["opened", "lost", "moved"] | None = None
    node: str = Field(default="", max_length=1000)
    detail: str = Field(default="", max_length=10_000)
    seconds: _Seconds = 0.0
    moved_bytes: dict[Literal["asked", "answered", "backup"], _Bytes] = Field(default_factory=dict)


@dataclass
class ShardRecord:
    """One shard: where it was opened last ("" when that is not known) and whether it still is, how long that took (its
    backup restored), and how often it was lost or moved to another machine."""

    node: str = ""
    is_open: bool = False
    opening_s: float = 0.0
    num_opened: int = 0
    num_lost: int = 0
    num_moved: int = 0


@dataclass(frozen=True)
class ClusterSummary:
    """A log read back. All counts are over all sessions: a step that was played again counts again."""

    shards: dict[int, ShardRecord]
    troubles: tuple[tuple[int, ShardEvent], ...] = ()
    """(step, event) for every loss and move, in their order."""
    moved_by_step: dict[int, Counter[str]] = field(default_factory=dict)
    """Bytes by purpose; what was moved before the first step stands at step 0."""

    @property
    def moved_bytes(self) -> Counter[str]:
        """All bytes by purpose: ``asked``, ``answered``, ``backup``."""
        return sum(self.moved_by_step.values(), Counter())

    @property
    def nodes(self) -> set[str]:
        """Where the shards stand now."""
        return {shard.node for shard in self.shards.values()} - {""}


def read_summary(folder: Path) -> ClusterSummary | None:
    """Read the log of a run folder; None when its shards were never apart.

    The folder is untrusted: a line that is none of ours is passed over. Raises UserError when the log is no plain file
    or too large.
    """
    summary, troubles = ClusterSummary({}), []
    for line in _lines(folder / CLUSTER_LOG):
        if line.what is None:
            summary.moved_by_step.setdefault(line.step, Counter()).update(line.moved_bytes)
            continue
        shard = summary.shards.setdefault(line.shard, ShardRecord())
        if line.what == "opened":
            shard.node, shard.opening_s, shard.is_open = line.node, line.seconds, True
            shard.num_opened += 1
            continue
        shard.is_open = False
        shard.num_lost += line.what == "lost"
        shard.num_moved += line.what == "moved"
        troubles.append((line.step, ShardEvent(line.shard, line.what, line.node, line.detail, line.seconds)))
    if not summary.shards and not summary.moved_by_step:
        return None
    return replace(summary, troubles=tuple(troubles))


def _lines(path: Path) -> Iterator[_Line]:
    try:
        file = open_plain(path, MAX_BYTES)
    except FileNotFoundError:
        return
    with file:
        for text in file:
            try:
                line = _Line.model_validate_json(text)
            except ValidationError:
                continue
            if line.what is not None or line.moved_bytes:
                yield line
