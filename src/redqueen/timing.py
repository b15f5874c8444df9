"""A clock for phases: how long each took, and who wants to know which one runs now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Sums wall-clock seconds by phase; ``on_phase`` is told when one begins (for live progress)."""

    def __init__(self, on_phase: Callable[[str], None] = lambda phase: None) -> None:
        self._on_phase = on_phase
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
        """Return the seconds by phase since the last call and start afresh."""
        seconds, self._seconds = self._seconds, {}
        return seconds
