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
"""Phases before which the step has not changed any adapter, so that it can still be dropped."""

CUT = (BEFORE_LEARNING - {"match", "learn"}) | {"evaluate", "product"}
"""Phases that can be interrupted between batches; the others change an adapter or take almost no time."""


class Stopped(Exception):
    """A phase was interrupted by a request to stop; adapters and state are as they were before the phase."""


@dataclass
class StopRequest:
    """Whether the run has been asked to stop."""

    asked: bool = False

    def enter(self, phase: str) -> None:
        """Raise Stopped when a stop was requested and a step that is about to begin ``phase`` can be dropped."""
        if self.asked and phase in BEFORE_LEARNING:
            raise Stopped

    def between_batches(self, phase: str) -> None:
        """Raise Stopped when a stop was requested and ``phase`` can be interrupted."""
        if self.asked and phase in CUT:
            raise Stopped


_stop_requests: list[StopRequest] = []
"""The stop requests of the runs in this process."""


def ask_to_stop() -> None:
    """Request the runs in this process to stop, as the first Ctrl-C does."""
    for request in _stop_requests:
        request.asked = True


@contextmanager
def catching_signals() -> Iterator[StopRequest]:
    """Record the first SIGINT or SIGTERM as a request to stop; the second raises KeyboardInterrupt at once.

    Outside the main thread no signal can be caught, and only ``ask_to_stop`` can request a stop.
    """
    request = StopRequest()

    def request_stop(number: int, frame: FrameType | None) -> None:
        if request.asked:
            raise KeyboardInterrupt
        request.asked = True
        with suppress(OSError):
            os.write(2, NOTICE)

    in_main = threading.current_thread() is threading.main_thread()
    _stop_requests.append(request)
    before = {number: signal.signal(number, request_stop) for number in SIGNALS if in_main}
    try:
        yield request
    finally:
        _stop_requests.remove(request)
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
        """Begin a phase. Raises Stopped when a stop was requested and the step can be dropped."""
        self._phase, self._step = phase, step
        self.stop_request.enter(phase)
        self.progress.phase(step, phase)
        if self.status is not None:
            self.status.phase(step, phase)

    def part(self, words: str) -> None:
        """Begin a part of the phase, such as "the students"; its items are counted from 0. May raise Stopped."""
        self.progress.part(words)
        if self.status is not None and not self._step:
            self.status.phase(0, words)
        self.stop_request.between_batches(self._phase)

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """Show the progress of the phase. Raises Stopped when a stop was requested and the phase can be interrupted."""
        self.progress(done, total, tokens)
        if self.status is not None:
            self.status.count(done, total)
        self.stop_request.between_batches(self._phase)
