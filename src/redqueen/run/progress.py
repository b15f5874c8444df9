"""Live progress in the terminal: one changing block on a terminal; everywhere else a plain line a step, and one every
ten seconds between."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from redqueen.display import NOTHING, duration, visible
from redqueen.records import Individual, Role
from redqueen.run.activity import Activity, every_ten_seconds, is_terminal

NUM_STEPS_FOR_PACE = 10
"""The time left is told from the mean duration of this many last steps, and as many evaluations."""

PHASE_WORDS = {
    "load": "loading the base",
    "match": "matching",
    "propose": "proposing",
    "verify": "verifying",
    "solve": "solving",
    "learn": "learning",
    "distill": "distilling the students:",
    "evolve": "evolving",
    "product": "distilling the product:",
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
    """Tells the time left from how long the last steps and the last evaluations took."""

    def __init__(self) -> None:
        self._steps_s: deque[float] = deque(maxlen=NUM_STEPS_FOR_PACE)
        self._evaluations_s: deque[float] = deque(maxlen=NUM_STEPS_FOR_PACE)
        self._expected_s = 0.0

    def add(self, step_s: float, evaluation_s: float = 0.0) -> None:
        """A step took ``step_s``, of which ``evaluation_s`` were an evaluation (0: there was none)."""
        self._steps_s.append(step_s - evaluation_s)
        if evaluation_s:
            self._evaluations_s.append(evaluation_s)

    def expect(self, evaluation_s: float) -> None:
        """Count on this for an evaluation, as long as none has been seen."""
        self._expected_s = evaluation_s

    def left_s(self, num_steps_left: int, num_evaluations_left: int = 0) -> float | None:
        """Return the seconds left, or None before the first step is done."""
        if not self._steps_s:
            return None
        known = self._evaluations_s
        evaluation_s = sum(known) / len(known) if known else self._expected_s
        return sum(self._steps_s) / len(self._steps_s) * num_steps_left + evaluation_s * num_evaluations_left


@dataclass(frozen=True)
class Schedule:
    """How many steps there will be, after which of them students are evaluated (0: the last alone), and how many."""

    num_steps: int
    evaluate_every: int = 0
    num_students: int = 1

    def evaluations_after(self, step: int) -> int:
        """Return how many evaluations are still to come."""
        if step >= self.num_steps:
            return 0
        every = self.evaluate_every
        return 1 + ((self.num_steps - 1) // every - step // every if every else 0)


class _Steps:
    """What both displays keep: the steps' durations, what is being done, and the time left."""

    def __init__(self, schedule: Schedule | int, clock: Callable[[], float]) -> None:
        self.schedule = Schedule(schedule) if isinstance(schedule, int) else schedule
        self.activity = Activity()
        self._clock, self._pace, self._since = clock, Pace(), clock()
        self._evaluating_since: float | None = None
        self._evaluation_s = 0.0
        self._doing, self._num_done = "", 0

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    def phase(self, step: int, phase: str) -> None:
        """A phase begins."""
        self._end_evaluation()
        if phase == "evaluate":
            self._evaluating_since = self._clock()
        if step and phase == "match":
            self._end_start()
        self._doing = f"step {step}/{self.num_steps}  {PHASE_WORDS.get(phase, phase)}"
        self.activity.begin(self._doing)

    def part(self, words: str) -> None:
        """A part of the phase begins, such as "the students"."""
        self.activity.begin(f"{self._doing} {words}")

    def work(self, done: int, total: int, tokens: int = 0) -> None:
        """So much of the phase is done."""
        self.activity(done, total, tokens)

    def left_s(self, step: int) -> float | None:
        """Return the seconds left after ``step``, the evaluations among them."""
        return self._pace.left_s(self.num_steps - step, self.schedule.evaluations_after(step))

    def left_in_all(self) -> str:
        """Return the time left of the run in words, "" when nobody knows it or it took longer than was thought."""
        left_s = self.left_s(self._num_done)
        if left_s is None:
            return ""
        yet_s = left_s - (self._clock() - self._since)
        return f"{duration(max(0.0, yet_s))} left in all" if yet_s > -1 else ""

    def _finish(self, step: int, metrics: Mapping[str, float], members: Sequence[Individual]) -> StepSummary:
        self._end_evaluation()
        now = self._clock()
        self._pace.add(now - self._since, self._evaluation_s)
        summary = summarise(step, metrics, members, now - self._since)
        self._since, self._evaluation_s, self._num_done = now, 0.0, step
        return summary

    def _end_evaluation(self) -> None:
        if self._evaluating_since is not None:
            self._evaluation_s += self._clock() - self._evaluating_since
            self._evaluating_since = None

    def _end_start(self) -> None:
        """Step 0 is no step to judge the pace by, but its evaluation of the base tells what one of a student costs."""
        if self._evaluation_s:
            self._pace.expect(self._evaluation_s * self.schedule.num_students)
            self._since, self._evaluation_s = self._clock(), 0.0


class LineProgress(_Steps):
    """One line a step, and one every ten seconds between: for files, pipes, ``NO_COLOR`` and CI."""

    def __init__(self, schedule: Schedule | int, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        super().__init__(schedule, clock)
        self._stream, self._beating = stream, ExitStack()

    def __enter__(self) -> LineProgress:
        self._since = self._clock()
        self._beating.enter_context(every_ten_seconds(self.beat))
        return self

    def __exit__(self, *_: object) -> None:
        self._beating.close()
        self._stream.flush()

    def beat(self) -> None:
        """Ten seconds are over: print how far the present phase is."""
        self.say("  ".join(filter(None, (self.activity.text(), self.left_in_all()))))

    def finish_step(self, step: int, metrics: Mapping[str, float], members: Sequence[Individual]) -> None:
        """A step is done: print its line."""
        self.say(step_line(self._finish(step, metrics, members), self.num_steps, self.left_s(step)))

    def say(self, text: str) -> None:
        """Print a line of its own."""
        self._stream.write(f"{visible(text, one_line=True)}\n")  # in one piece: the other thread may write too
        self._stream.flush()


class LiveProgress(_Steps):
    """One block that changes in place: for a terminal."""

    def __init__(self, schedule: Schedule | int, console: Console, clock: Callable[[], float] = time.monotonic):
        super().__init__(schedule, clock)
        self._console = console
        self._summary: StepSummary | None = None
        self._live = Live(get_renderable=self.block, console=console, refresh_per_second=4, transient=False)

    def __enter__(self) -> LiveProgress:
        self._since = self._clock()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.refresh()
        self._live.stop()

    def finish_step(self, step: int, metrics: Mapping[str, float], members: Sequence[Individual]) -> None:
        """A step is done: show its numbers and the time left."""
        self._summary = self._finish(step, metrics, members)
        self.activity.begin(f"step {step}/{self.num_steps}")

    def say(self, text: str) -> None:
        """Print a line of its own above the block."""
        self._console.print(Text(visible(text, one_line=True)))

    def block(self) -> Group:
        """Return what is on the screen now."""
        num_done = self._num_done
        head = Table.grid(padding=(0, 2))
        head.add_row(
            ProgressBar(total=max(1, self.num_steps), completed=num_done, width=30),
            Text(self.left_in_all(), style="dim"),
            Text(visible(self.activity.text(), one_line=True), style="cyan"),
        )
        return Group(head, _numbers(self._summary)) if self._summary is not None else Group(head)


def open_progress(schedule: Schedule | int, stream: TextIO | None = None) -> LineProgress | LiveProgress:
    """Return the progress that suits the stream (standard error by default), to be used in a ``with`` block.

    A terminal gets the changing block; anything else, and a terminal under ``NO_COLOR`` or ``TERM=dumb``, plain lines.
    """
    stream = sys.stderr if stream is None else stream
    if is_terminal(stream):
        return LiveProgress(schedule, Console(file=stream))
    return LineProgress(schedule, stream)


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
