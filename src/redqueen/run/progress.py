"""Live progress of runs and long commands, drawn by ``rich.progress``: phase, items done, tokens/s and time left.

On a terminal a block is updated in place. Otherwise (files, pipes, CI, ``NO_COLOR``, ``TERM=dumb``) each step prints
one plain line, and every ten seconds a line shows the progress of the current phase.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from redqueen.display import NOTHING, duration, visible
from redqueen.records import Individual

SECONDS_BETWEEN_LINES = 10.0
NUM_STEPS_FOR_PACE = 10
"""The time left is estimated from the mean duration of this many last steps."""

LEAST_FRAC = 0.02
"""Below this share of items done the time left is not shown, since the shortest completions end first."""

PHASE_WORDS = {
    "load": "loading the base",
    "match": "matching",
    "propose": "proposing",
    "verify": "verifying",
    "solve": "solving",
    "learn": "learning",
    "distill": "distilling the students",
    "evolve": "evolving",
    "product": "distilling the product",
    "evaluate": "evaluating",
    "checkpoint": "saving",
}


def shares_text(metrics: Mapping[str, float]) -> str:
    """Return the shares of a step as ``solved 43 %  valid 92 %  thought 20 %``."""
    named = {"solved": "solve/rate", "valid": "propose/valid_frac", "thought": "solve/thought_frac"}
    shares = {word: metrics.get(name, math.nan) for word, name in named.items()}
    return "  ".join(f"{word} {NOTHING if x != x else f'{100 * x:.0f} %'}" for word, x in shares.items())


def ratings_text(members: Sequence[Individual]) -> str:
    """Return mean and best rating (mu) as ``teachers 26.5 (best 29.0)  students 23.5 (best 23.5)``."""
    sides = {role: [m.rating.mu for m in members if m.role == role] for role in ("teacher", "student")}
    return "  ".join(f"{role}s {sum(mus) / len(mus):.1f} (best {max(mus):.1f})" for role, mus in sides.items() if mus)


def work_text(task: Task) -> str:
    """Return ``340/1,200 (28 %)  2,134 tokens/s  1 min 12 s left``, with the parts that are known."""
    done, total, tokens, spent_s = int(task.completed), int(task.total or 0), task.fields["tokens"], task.elapsed or 0.0
    parts = [f"{done:,}/{total:,} ({100 * done // total} %)" if total else f"{done:,} done" if done else ""]
    if tokens and spent_s >= 1:
        parts.append(f"{tokens / spent_s:,.0f} tokens/s")
    if total and LEAST_FRAC * total <= done < total and spent_s > 0:
        parts.append(f"{duration(spent_s * (total - done) / done)} left")
    elif not done and spent_s >= 1:
        parts.append(duration(spent_s))
    return "  ".join(filter(None, parts))


class _WorkColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(work_text(task), no_wrap=True)


class Activity(Progress):
    """Shows one piece of work at a time while its ``with`` block runs. Calls are those of ``redqueen.timing.Report``.

    ``stream``: standard error by default. ``clock`` returns seconds.
    """

    transient = True
    """Whether the block disappears at the end."""

    def __init__(self, words: str = "", stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self.stream = sys.stderr if stream is None else stream
        self.in_place = self.stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._words, self._part = words, 1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print_often, name="progress", daemon=True)
        columns = (BarColumn(bar_width=20), _WorkColumn())
        console, disable = Console(file=self.stream), not self.in_place
        super().__init__(*columns, console=console, get_time=clock, disable=disable, transient=self.transient)
        self._id = self.add_task("", total=None, tokens=0)
        self._task = self.tasks[0]

    def __enter__(self) -> Self:
        self.start() if self.in_place else self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.stop() if self.in_place else self._thread.join()

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the lines of the block."""
        yield Text(visible(self.words, one_line=True), style="cyan")
        yield self.make_tasks_table(self.tasks)

    def begin(self, words: str) -> None:
        """Begin other work, described by words such as "evaluating"."""
        self._words, self._part = words, 1
        self.reset(self._id, tokens=0)
        self._task.total = None

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        """Show ``done`` of ``total`` items. Another total, or fewer done than before, begins a new part of the work."""
        if self._task.total and (total != self._task.total or done < self._task.completed):
            self._part += 1
            self.reset(self._id)
        self.update(self._id, total=total or None, completed=done, tokens=tokens)

    @property
    def words(self) -> str:
        """The current work and, from the second part on, the number of the part."""
        return self._words if self._part == 1 else f"{self._words}, part {self._part}"

    def text(self) -> str:
        """Return the current work and its progress in one line."""
        return "  ".join(filter(None, (self.words, work_text(self._task))))

    def say(self, text: str) -> None:
        """Print a line of its own, above the block if there is one."""
        text = visible(text, one_line=True)
        if self.in_place:
            self.console.print(Text(text))
        else:
            self.stream.write(f"{text}\n")  # in one call: the other thread may write too
            self.stream.flush()

    def print_status(self) -> None:
        """Print the progress in one line; called every ten seconds where there is no block."""
        self.say(self.text())

    def _print_often(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LINES):
            self.print_status()


@dataclass(frozen=True)
class Schedule:
    """Number of steps, steps between evaluations of students (0: only after the last), and students evaluated."""

    num_steps: int
    evaluate_every: int = 0
    num_students: int = 1

    def evaluations_after(self, step: int) -> int:
        """Return how many evaluations of single students come after ``step``."""
        if step >= self.num_steps:
            return 0
        every = self.evaluate_every
        return self.num_students * (1 + ((self.num_steps - 1) // every - step // every if every else 0))


class RunProgress(Activity):
    """The progress of a run: its phases, its steps, and the time left of both."""

    transient = False
    evaluation_s = 0.0
    """Seconds of the evaluation of one student: expected, later measured."""
    end_s = 0.0
    """Expected seconds after the last step, in which the product is distilled, chosen and evaluated."""

    def __init__(
        self, schedule: Schedule, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.schedule, self._clock, self._step, self._phase = schedule, clock, 0, ""
        self._numbers: list[str] = []
        self._since = self._phase_since = clock()
        self._evaluating_s = 0.0
        self._steps_s: deque[float] = deque(maxlen=NUM_STEPS_FOR_PACE)
        super().__init__("", stream, clock)

    def phase(self, step: int, phase: str) -> None:
        """Begin a phase."""
        self._end_phase()
        self._phase = phase
        if step and phase == "match" and not self._steps_s:  # the time before the first step does not count
            self._since, self._evaluating_s = self._clock(), 0.0
        words = PHASE_WORDS.get(phase, phase)
        self._doing = f"step {step}/{self.schedule.num_steps}  {words}" if step else ""
        self.begin(self._doing or words)

    def part(self, words: str) -> None:
        """Begin a part of the phase, such as "the students"; before step 1 only ``words`` are shown."""
        self.begin(f"{self._doing} {words}".strip())

    def finish_step(
        self,
        step: int,
        metrics: Mapping[str, float],
        members: Sequence[Individual],
        to_come: tuple[int, float] | None = None,
    ) -> None:
        """Show the numbers of a finished step and the time left; ``to_come``: see ``remaining_work``."""
        self._end_phase()
        now, num_steps = self._clock(), self.schedule.num_steps
        self._steps_s.append(now - self._since - self._evaluating_s)
        took = f"{self._steps_s[-1]:.1f} s" + f", evaluation {self._evaluating_s:.1f} s" * bool(self._evaluating_s)
        if self._evaluating_s:
            self.evaluation_s = self._evaluating_s / max(1, self.schedule.num_students)
        self._since, self._evaluating_s, self._step = now, 0.0, step
        self._left = to_come or (num_steps - step, math.inf)
        self._numbers = [f"{shares_text(metrics)}  {took}", ratings_text(members)]
        self.begin(f"step {step}/{num_steps}")
        if not self.in_place:
            head = f"step {step:>{len(str(num_steps))}}/{num_steps}"
            shown = head, shares_text(metrics), ratings_text(members), took, f"{duration(self.left_s() or 0.0)} left"
            self.say("  ".join(filter(None, shown)))

    def left_s(self) -> float | None:
        """Return the seconds left after the last finished step, including the run's end; None before the first."""
        if not self._steps_s:
            return None
        step_s = sum(self._steps_s) / len(self._steps_s)
        steps, limit_s = self._left
        if limit_s < step_s * steps:  # the run ends after the step that reaches the limit
            steps = max(1, math.ceil(limit_s / step_s))
        schedule = replace(self.schedule, num_steps=self._step + steps)
        return step_s * steps + self.evaluation_s * schedule.evaluations_after(self._step) + self.end_s * (steps > 0)

    def left_in_all(self) -> str:
        """Return the time left of the run in words; "" before the first step, and if it takes longer than expected."""
        left_s = (self.left_s() or -math.inf) - (self._clock() - self._since)
        return f"{duration(max(0.0, left_s))} left in all" if left_s > -1 else ""

    def text(self) -> str:
        return "  ".join(filter(None, (super().text(), self.left_in_all())))

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield from (Text(line, style="dim") for line in (self.left_in_all(), *self._numbers) if line)

    def _end_phase(self) -> None:
        if self._phase in ("product", "evaluate"):
            self._evaluating_s += self._clock() - self._phase_since
        self._phase, self._phase_since = "", self._clock()
