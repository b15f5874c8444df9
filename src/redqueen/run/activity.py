"""What long work says of itself while it goes on: what is being done, how much of it is done, how fast, how long yet.

Work is told of by calls ``report(done, total, tokens)`` (``redqueen.timing.Report``). On a terminal a line changes in
place; everywhere else a line is printed every ten seconds, so that nothing is silent for longer.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from redqueen.display import duration, visible

SECONDS_BETWEEN_LINES = 10.0

LEAST_FRAC = 0.02
"""No time left is told before this share is done: the first answers to end are the shortest."""


@dataclass(frozen=True)
class Work:
    """One stretch of work: its words, when it began, and how far it is. ``total`` 0: nobody knows it.

    ``part`` counts the stretches of the same work, from 1.
    """

    words: str = ""
    since_s: float = 0.0
    done: int = 0
    total: int = 0
    tokens: int = 0
    part: int = 1

    def text(self, now_s: float) -> str:
        """Return ``evaluating  340/1,200 (28 %)  2,134 tokens/s  1 min 12 s left``, as far as it is known."""
        spent_s = now_s - self.since_s
        parts = [self.words if self.part == 1 else f"{self.words}, part {self.part}"]
        if self.total:
            parts.append(f"{self.done:,}/{self.total:,} ({100 * self.done // self.total} %)")
        elif self.done:
            parts.append(f"{self.done:,} done")
        if self.tokens and spent_s > 0:
            parts.append(f"{self.tokens / spent_s:,.0f} tokens/s")
        if self.total and LEAST_FRAC * self.total <= self.done < self.total and spent_s > 0:
            parts.append(f"{duration(spent_s * (self.total - self.done) / self.done)} left")
        elif not self.done and spent_s >= 1:
            parts.append(duration(spent_s))
        return "  ".join(parts)


class Activity:
    """Keeps what is being done now; every call replaces one whole record, so that another thread may read it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._now = Work(since_s=clock())

    def begin(self, words: str) -> None:
        """Something else begins, in words such as "evaluating"."""
        self._now = Work(words, self._clock())

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """So much is done of ``total`` items; another total, or less than before, is a new stretch of the same work."""
        now = self._now
        anew = total != now.total or done < now.done
        another = anew and now.total > 0
        since_s, part = (self._clock(), now.part + 1) if another else (now.since_s, now.part)
        self._now = Work(now.words, since_s, done, total, tokens, part)

    def text(self) -> str:
        """Return what is being done, in one line."""
        return self._now.text(self._clock())


@contextmanager
def every_ten_seconds(beat: Callable[[], None]) -> Iterator[None]:
    """Call ``beat`` every ten seconds, from another thread, while the block runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_LINES):
            beat()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def showing(words: str, stream: TextIO | None = None) -> Iterator[Activity]:
    """Show one activity on the stream (standard error by default) while the block runs."""
    stream = sys.stderr if stream is None else stream
    activity = Activity()
    activity.begin(words)

    def shown() -> str:
        return visible(activity.text(), one_line=True)

    if is_terminal(stream):
        console = Console(file=stream)
        with Live(get_renderable=lambda: Text(shown()), console=console, refresh_per_second=4, transient=True):
            yield activity
    else:
        with every_ten_seconds(lambda: print(shown(), file=stream, flush=True)):
            yield activity


def is_terminal(stream: TextIO) -> bool:
    """Tell whether lines may change in place: on a terminal without ``NO_COLOR`` and ``TERM=dumb``."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
