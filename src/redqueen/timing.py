"""A clock for phases, and the callback that receives their progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Called between batches with the progress of a phase; it may raise to stop the work."""

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """``done`` of ``total`` items (0: unknown) are done, with ``tokens`` processed so far."""


def unheard(done: int, total: int, tokens: int = 0) -> None:
    """A report that does nothing."""


class Clock:
    """Sums wall-clock seconds by phase. For live progress ``on_phase`` is called with each phase that begins, and
    ``part`` with a description of each part of a phase."""

    def __init__(
        self, on_phase: Callable[[str], None] = lambda phase: None, part: Callable[[str], None] = lambda words: None
    ) -> None:
        self._on_phase, self.part = on_phase, part
        self._seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the enclosed block under ``name``."""
        self._on_phase(name)
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - began

    def take(self) -> dict[str, float]:
        """Return the seconds by phase since the last call and reset them."""
        seconds, self._seconds = self._seconds, {}
        return seconds
