"""The status file: the phase that a run is in, for readers such as the dashboard.

The journal stores only finished steps; this file, next to the journal, holds the current one. It is removed when the
process ends; after a crash it remains and is ignored.
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

STATUS = "status.json"
MAX_BYTES = 4096
BETWEEN_S = 1.0
"""Minimum seconds between two writes of a count."""


@dataclass(frozen=True)
class Status:
    """``phase`` of ``step`` (0: before the first), begun at ``since_s`` (Unix seconds), with ``num_done`` of
    ``num_all`` items done (0: not counted)."""

    step: int
    phase: str
    since_s: float
    num_done: int = 0
    num_all: int = 0


class StatusFile:
    """Keeps the status file of one run up to date, in a ``with`` block. A full disk does not end the run."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time):
        self._path, self._clock = folder / STATUS, clock
        self._status, self._written_s = Status(0, "", clock()), 0.0

    def __enter__(self) -> StatusFile:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def phase(self, step: int, phase: str) -> None:
        """Write the beginning of a phase."""
        self._status = Status(step, phase, self._clock())
        self._write()

    def count(self, num_done: int, num_all: int) -> None:
        """Write that ``num_done`` of ``num_all`` items of the phase are done, at most once in ``BETWEEN_S``."""
        self._status = replace(self._status, num_done=num_done, num_all=num_all)
        if self._clock() - self._written_s >= BETWEEN_S:
            self._write()

    def _write(self) -> None:
        self._written_s = self._clock()
        with suppress(OSError):
            write_whole(self._path, json.dumps(asdict(self._status)))


def read_status(folder: Path) -> Status | None:
    """Return the status; None when there is no file, or not one that a run could have written."""
    try:
        status = Status(**json.loads(read_plain(folder / STATUS, MAX_BYTES)))
    except (OSError, UserError, ValueError, TypeError, RecursionError):
        return None
    whole = all(type(value) is int and 0 <= value < 2**53 for value in (status.step, status.num_done, status.num_all))
    timed = isinstance(status.since_s, float | int) and 0 <= status.since_s < 2**53
    return status if whole and timed and isinstance(status.phase, str) else None
