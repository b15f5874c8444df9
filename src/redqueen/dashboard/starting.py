"""A run before its first step is in the journal: what it is, what it does right now, and since when."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from redqueen.display import duration
from redqueen.journal import Journal, RunRecord, read
from redqueen.run.now import Now, read_now

PARTS = {
    "propose": "The base model writes the first tasks, and the sandbox checks them.",
    "evaluate": "The base model is measured on the frozen suite: what the members will be compared with.",
    "checkpoint": "The founders are saved.",
}
"""What happens in step 0, in this order."""

DOING = {
    "match": "matching teachers with students",
    "propose": "writing tasks",
    "verify": "checking in the sandbox",
    "solve": "solving",
    "learn": "learning",
    "distill": "distilling verified answers into the students",
    "evolve": "breeding",
    "product": "distilling the product",
    "evaluate": "measuring on the frozen suite",
    "checkpoint": "saving",
}


@dataclass(frozen=True)
class Beginning:
    """A run without a finished step. ``now`` is None when nothing says what it does; ``for_s``: since when it runs."""

    record: RunRecord
    now: Now | None
    for_s: float | None


def beginning(journal: Journal, folder: Path, clock: Callable[[], float] = time.time) -> Beginning | None:
    """Return how far a run is that has no finished step, None when it has one."""
    if read.last_step(journal) is not None:
        return None
    started = journal.query("SELECT max(started_at_s) AS at_s FROM session")[0]["at_s"]
    for_s = None if started is None else max(0.0, clock() - started)
    return Beginning(read.run_record(journal), read_now(folder), for_s)


def doing(now: Now | None, clock: Callable[[], float] = time.time) -> str:
    """Return in words what a running run does, "" when nothing says so."""
    if now is None:
        return ""
    parts = [f"step {now.step:,}: {DOING.get(now.phase, now.phase)}"]
    if now.num_all:
        parts.append(f"{now.num_done:,} of {now.num_all:,}")
    parts.append(f"for {duration(max(0.0, clock() - now.since_s))}")
    return ", ".join(parts)
