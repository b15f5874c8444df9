"""The reporter that is handed down into a run's engine: it shows how far work is, and lets it be stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from redqueen.run.interruption import StopRequest
from redqueen.run.now import NowFile
from redqueen.run.progress import LineProgress, LiveProgress


@dataclass
class Reporter:
    """Implements ``redqueen.timing.Report``: told between batches, it updates display and ``now``, and obeys a stop."""

    progress: LineProgress | LiveProgress
    stop_request: StopRequest = field(default_factory=StopRequest)
    now: NowFile | None = None
    """The file in the run directory that says what is done, once there is such a directory."""
    _phase: str = ""

    def enter(self, step: int, phase: str) -> None:
        """A phase begins. Raises Stopped when a stop was asked for and the step can be dropped."""
        self._phase = phase
        self.stop_request.enter(phase)
        self.progress.phase(step, phase)
        if self.now is not None:
            self.now.phase(step, phase)

    def part(self, words: str) -> None:
        """A part of the phase begins, such as "the students": its items are counted anew. May raise Stopped too."""
        self.progress.part(words)
        self.stop_request.between_batches(self._phase)

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """So much of the phase is done. Raises Stopped when a stop was asked for and the phase can be cut here."""
        self.progress.work(done, total, tokens)
        if self.now is not None:
            self.now.count(done, total)
        self.stop_request.between_batches(self._phase)
