"""Live progress in the terminal: one changing block on a terminal, one plain line a step everywhere else."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from redqueen.display import NOTHING, duration, visible
from redqueen.nouns import Individual, Role

NUM_STEPS_FOR_PACE = 10
"""The time left is told from the mean duration of this many last steps."""

PHASE_WORDS = {
    "match": "matching",
    "propose": "proposing",
    "verify": "verifying",
    "solve": "solving",
    "learn": "learning",
    "evolve": "evolving",
    "evaluate": "evaluating",
    "checkpoint": "saving",
}


@dataclass(frozen=True)
class SideRating:
    """Mean and best rating (mu, rating points) of one side."""

    mean: float
    best: float


@dataclass(frozen=True)
class StepSummary:
    """What the terminal says about a finished step; None where there is nothing to say. Shares are 0..1."""

    step: int
    solve_frac: float | None
    valid_frac: float | None
    thought_frac: float | None
    teachers: SideRating | None
    students: SideRating | None
    step_s: float


def summarise(step: int, metrics: Mapping[str, float], members: Sequence[Individual], step_s: float) -> StepSummary:
    """Return the summary of a step from its metrics and the members as they are after it."""

    def known(name: str) -> float | None:
        value = metrics.get(name)
        return None if value is None or value != value else value

    return StepSummary(
        step=step,
        solve_frac=known("solve/rate"),
        valid_frac=known("propose/valid_frac"),
        thought_frac=known("solve/thought_frac"),
        teachers=_side(members, "teacher"),
        students=_side(members, "student"),
        step_s=step_s,
    )


def step_line(summary: StepSummary, num_steps: int, left_s: float | None) -> str:
    """Return one step as a plain line."""
    width = len(str(num_steps))
    parts = [
        f"step {summary.step:>{width}}/{num_steps}",
        f"solved {_percent(summary.solve_frac)}",
        f"valid {_percent(summary.valid_frac)}",
        f"thought {_percent(summary.thought_frac)}",
    ]
    if summary.teachers is not None:
        parts.append(f"teachers {summary.teachers.mean:.1f} (best {summary.teachers.best:.1f})")
    if summary.students is not None:
        parts.append(f"students {summary.students.mean:.1f} (best {summary.students.best:.1f})")
    parts.append(f"{summary.step_s:.1f} s")
    if left_s is not None:
        parts.append(f"{duration(left_s)} left")
    return "  ".join(parts)


class Pace:
    """Tells the time left from how long the last steps took."""

    def __init__(self) -> None:
        self._durations_s: deque[float] = deque(maxlen=NUM_STEPS_FOR_PACE)

    def add(self, step_s: float) -> None:
        self._durations_s.append(step_s)

    def left_s(self, num_steps_left: int) -> float | None:
        """Return the seconds left, or None before the first step is done."""
        return sum(self._durations_s) / len(self._durations_s) * num_steps_left if self._durations_s else None


class LineProgress:
    """One line a step: for files, pipes, ``NO_COLOR`` and CI."""

    def __init__(self, num_steps: int, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self.num_steps, self._stream, self._clock = num_steps, stream, clock
        self._pace, self._since = Pace(), clock()

    def __enter__(self) -> LineProgress:
        self._since = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def phase(self, step: int, phase: str) -> None:
        """A phase begins: nothing to say in lines."""

    def finish_step(self, step: int, metrics: Mapping[str, float], members: Sequence[Individual]) -> None:
        """A step is done: print its line."""
        now = self._clock()
        self._pace.add(now - self._since)
        summary = summarise(step, metrics, members, now - self._since)
        self._since = now
        self.say(step_line(summary, self.num_steps, self._pace.left_s(self.num_steps - step)))

    def say(self, text: str) -> None:
        """Print a line of its own."""
        print(visible(text, one_line=True), file=self._stream, flush=True)


class LiveProgress:
    """One block that changes in place: for a terminal."""

    def __init__(self, num_steps: int, console: Console, clock: Callable[[], float] = time.monotonic):
        self.num_steps, self._console, self._clock = num_steps, console, clock
        self._pace, self._since = Pace(), clock()
        self._step, self._phase = 0, ""
        self._summary: StepSummary | None = None
        self._live = Live(self.block(), console=console, refresh_per_second=4, transient=False)

    def __enter__(self) -> LiveProgress:
        self._since = self._clock()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(self.block(), refresh=True)
        self._live.stop()

    def phase(self, step: int, phase: str) -> None:
        """A phase begins: name it."""
        self._step, self._phase = step, phase
        self._live.update(self.block())

    def finish_step(self, step: int, metrics: Mapping[str, float], members: Sequence[Individual]) -> None:
        """A step is done: show its numbers and the time left."""
        now = self._clock()
        self._pace.add(now - self._since)
        self._summary = summarise(step, metrics, members, now - self._since)
        self._since, self._step, self._phase = now, step, ""
        self._live.update(self.block())

    def say(self, text: str) -> None:
        """Print a line of its own above the block."""
        self._console.print(Text(visible(text, one_line=True)))

    def block(self) -> Group:
        """Return what is on the screen now."""
        num_done = 0 if self._summary is None else self._summary.step
        left_s = self._pace.left_s(self.num_steps - num_done)
        head = Table.grid(padding=(0, 2))
        head.add_row(
            Text(f"step {self._step}/{self.num_steps}", style="bold"),
            ProgressBar(total=max(1, self.num_steps), completed=num_done, width=30),
            Text(PHASE_WORDS.get(self._phase, self._phase), style="cyan"),
            Text("" if left_s is None else f"{duration(left_s)} left", style="dim"),
        )
        return Group(head, _numbers(self._summary)) if self._summary is not None else Group(head)


def open_progress(num_steps: int, stream: TextIO | None = None) -> LineProgress | LiveProgress:
    """Return the progress that suits the stream (standard error by default), to be used in a ``with`` block.

    A terminal gets the changing block; anything else, and a terminal under ``NO_COLOR`` or ``TERM=dumb``, plain lines.
    """
    stream = sys.stderr if stream is None else stream
    if stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        return LiveProgress(num_steps, Console(file=stream))
    return LineProgress(num_steps, stream)


def _numbers(summary: StepSummary) -> Table:
    table = Table.grid(padding=(0, 2))
    row = [
        Text.assemble(("solved ", "dim"), _percent(summary.solve_frac)),
        Text.assemble(("valid ", "dim"), _percent(summary.valid_frac)),
        Text.assemble(("thought ", "dim"), _percent(summary.thought_frac)),
    ]
    for name, side in (("teachers ", summary.teachers), ("students ", summary.students)):
        if side is not None:
            row.append(Text.assemble((name, "dim"), f"{side.mean:.1f}", (f" (best {side.best:.1f})", "dim")))
    row.append(Text(f"{summary.step_s:.1f} s a step", style="dim"))
    table.add_row(*row)
    return table


def _side(members: Sequence[Individual], role: Role) -> SideRating | None:
    mus = [member.rating.mu for member in members if member.role == role]
    return SideRating(sum(mus) / len(mus), max(mus)) if mus else None


def _percent(frac: float | None) -> str:
    return NOTHING if frac is None else f"{100 * frac:.0f} %"
