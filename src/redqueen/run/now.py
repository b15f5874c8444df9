"""What a run is doing at this moment, as a small file beside its journal: a step is told there before it is finished.

The journal takes a step as a whole, so while one is played it says nothing of it. Whoever looks at a run reads this
file too. It is gone when no process plays the run; after a crash it is left behind, and means nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from redqueen.errors import UserError
from redqueen.files import read_plain, write_whole

NOW = "now.json"
MAX_BYTES = 4096
BETWEEN_S = 1.0
"""A count is written at most this often."""


@dataclass(frozen=True)
class Now:
    """``phase`` of ``step`` (0: before the first), begun at ``since_s`` (Unix seconds), with ``num_done`` of
    ``num_all`` answers written (0: not counted)."""

    step: int
    phase: str
    since_s: float
    num_done: int = 0
    num_all: int = 0


class NowFile:
    """Keeps the file of one run up to date: ``with NowFile(folder) as now: ...``. A full disk does not end the run."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time):
        self._path, self._clock = folder / NOW, clock
        self._now = Now(0, "", clock())
        self._written_s = 0.0

    def __enter__(self) -> NowFile:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def phase(self, step: int, phase: str) -> None:
        """A phase begins."""
        self._now = Now(step, phase, self._clock())
        self._write()

    def count(self, num_done: int, num_all: int) -> None:
        """So many answers of the phase are written."""
        self._now = replace(self._now, num_done=num_done, num_all=num_all)
        if self._clock() - self._written_s >= BETWEEN_S:
            self._write()

    def _write(self) -> None:
        self._written_s = self._clock()
        with suppress(OSError):
            write_whole(self._path, json.dumps(asdict(self._now)))


def read_now(folder: Path) -> Now | None:
    """Return what the file says, None when it is not there or says nothing that a run writes."""
    try:
        found = json.loads(read_plain(folder / NOW, MAX_BYTES))
        now = Now(**found)
    except (OSError, UserError, ValueError, TypeError, RecursionError):
        return None
    whole = all(type(value) is int and 0 <= value < 2**53 for value in (now.step, now.num_done, now.num_all))
    timed = isinstance(now.since_s, float | int) and 0 <= now.since_s < 2**53
    return now if whole and timed and isinstance(now.phase, str) else None
