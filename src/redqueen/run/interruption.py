"""Interrupting a run: the first Ctrl-C (or SIGTERM) requests a stop after the phase, the second stops at once.

``Reporter`` is passed into the engine: it shows how far the work is and raises ``Stopped``.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from redqueen.run.progress import RunProgress
from redqueen.run.status import StatusFile

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = b"\nstopping after the current phase; `redqueen resume` continues; press Ctrl-C again to stop at once\n"

BEFORE_LEARNING = frozenset({"match", "propose", "verify", "solve", "learn"})
"""Phases at whose beginning the step has not changed any adapter yet, so that the step can be dropped."""

CUT = (BEFORE_LEARNING - {"match", "learn"}) | {"evaluate", "product"}
"""Phases that can be cut between batches: in the others an adapter changes, or they are over at once."""


class Stopped(Exception):
    """A phase was cut because a stop was requested; adapters and state are as they were before the phase."""


@dataclass
class StopRequest:
    """Whether the run has been asked to stop."""

    asked: bool = False

    def enter(self, phase: str) -> None:
        """Raise Stopped when a stop was requested and a step that is about to enter ``phase`` can be dropped."""
        if self.asked and phase in BEFORE_LEARNING:
            raise Stopped

    def between_batches(self, phase: str) -> None:
        """Raise Stopped when a stop was requested and ``phase`` can be cut in the middle."""
        if self.asked and phase in CUT:
            raise Stopped


_playing: list[StopRequest] = []
"""The stop requests of the runs in this process."""


def ask_to_stop() -> None:
    """Ask the runs in this process to stop, as the first Ctrl-C does."""
    for request in _playing:
        request.asked = True


@contextmanager
def catching_signals() -> Iterator[StopRequest]:
    """Record the first SIGINT or SIGTERM as a request to stop; the second raises KeyboardInterrupt at once.

    Outside the main thread no signal can be caught, and only ``ask_to_stop`` makes the request.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.asked:
            raise KeyboardInterrupt
        request.asked = True
        with suppress(OSError):
            os.write(2, NOTICE)

    in_main = threading.current_thread() is threading.main_thread()
    _playing.append(request)
    before = {number: signal.signal(number, note) for number in SIGNALS if in_main}
    try:
        yield request
    finally:
        _playing.remove(request)
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Reporter:
    """Implements ``redqueen.timing.Report``: updates display and status file between batches, and may stop the run."""

    progress: RunProgress
    stop_request: StopRequest = field(default_factory=StopRequest)
    status: StatusFile | None = None
    """The status file, once there is a run directory."""
    _phase: str = ""
    _step: int = 0

    def enter(self, step: int, phase: str) -> None:
        """A phase begins. Raises Stopped when a stop was asked for and the step can be dropped."""
        self._phase, self._step = phase, step
        self.stop_request.enter(phase)
        self.progress.phase(step, phase)
        if self.status is not None:
            self.status.phase(step, phase)

    def part(self, words: str) -> None:
        """A part of the phase begins, such as "the students": its items are counted from 0. May raise Stopped too."""
        self.progress.part(words)
        if self.status is not None and not self._step:
            self.status.phase(0, words)
        self.stop_request.between_batches(self._phase)

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """So much of the phase is done. Raises Stopped when a stop was asked for and the phase can be cut here."""
        self.progress(done, total, tokens)
        if self.status is not None:
            self.status.count(done, total)
        self.stop_request.between_batches(self._phase)
