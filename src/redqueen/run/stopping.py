"""Stopping a run from outside: the first Ctrl-C (or SIGTERM) asks, the second acts at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = b"\nstopping after this phase, with a checkpoint; once more stops at once\n"

BEFORE_LEARNING = frozenset({"match", "propose", "verify", "solve", "learn"})
"""Phases at whose beginning nothing of the step has changed an adapter yet: the step can be dropped there."""


class Stopped(Exception):
    """The step was dropped because a stop was asked for; adapters and state are as they were before it."""


@dataclass
class StopWish:
    """Whether somebody asked the run to stop."""

    asked: bool = False

    def enter(self, phase: str) -> None:
        """Raise Stopped when a stop was asked for and the step that is about to enter ``phase`` can be dropped."""
        if self.asked and phase in BEFORE_LEARNING:
            raise Stopped


@contextmanager
def watching_for_stops() -> Iterator[StopWish]:
    """Note the first SIGINT or SIGTERM as a wish; the second raises KeyboardInterrupt where it strikes.

    Outside the main thread no signal can be caught, and the wish stays unasked.
    """
    wish = StopWish()

    def note(number: int, frame: FrameType | None) -> None:
        if wish.asked:
            raise KeyboardInterrupt
        wish.asked = True
        with suppress(OSError):
            os.write(2, NOTICE)

    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
