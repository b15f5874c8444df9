"""Live progress: a changing block on a real terminal, plain lines elsewhere, and nothing a model wrote is obeyed."""

import io
import os
import pty
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from redqueen.records import Individual, Rating
from redqueen.run import activity as activity_module
from redqueen.run.activity import Activity, Work, showing
from redqueen.run.progress import (
    LineProgress,
    LiveProgress,
    Pace,
    Schedule,
    SideRating,
    open_progress,
    step_line,
    summarise,
)

METRICS = {"solve/rate": 0.4321, "propose/valid_frac": 0.925, "solve/thought_frac": 0.2}
MEMBERS = [
    Individual("T1", "teacher", 0, Rating(24.0, 2.0)),
    Individual("T2", "teacher", 1, Rating(29.0, 2.0)),
    Individual("S1", "student", 2, Rating(23.5, 2.0)),
]


def ticking(*times_s: float) -> Callable[[], float]:
    """A clock that shows these times one after the other."""
    times: Iterator[float] = iter(times_s)
    return lambda: next(times)


def test_a_step_is_one_plain_line() -> None:
    stream = io.StringIO()
    with LineProgress(100, stream, ticking(0.0, 0.0, 9.0, 20.0)) as progress:
        progress.phase(1, "solve")
        progress.finish_step(1, METRICS, MEMBERS)
        progress.finish_step(2, METRICS, MEMBERS)
    assert stream.getvalue().splitlines() == [
        "step   1/100  solved 43 %  valid 92 %  thought 20 %  teachers 26.5 (best 29.0)  students 23.5 (best 23.5)"
        "  9.0 s  14 min 51 s left",
        "step   2/100  solved 43 %  valid 92 %  thought 20 %  teachers 26.5 (best 29.0)  students 23.5 (best 23.5)"
        "  11.0 s  16 min 20 s left",
    ]


def test_the_single_arm_and_a_step_without_tasks_leave_out_what_there_is_not() -> None:
    both = [Individual("A1", "both", 0, Rating(25.0, 8.0))]
    summary = summarise(3, {"solve/rate": float("nan"), "propose/valid_frac": 0.0}, both, 1.0)
    assert (summary.solve_frac, summary.teachers, summary.students) == (None, None, None)
    assert step_line(summary, 9, None) == "step 3/9  solved –  valid 0 %  thought –  1.0 s"


def test_ratings_are_told_by_side() -> None:
    summary = summarise(1, METRICS, MEMBERS, 1.0)
    assert summary.teachers == SideRating(26.5, 29.0) and summary.students == SideRating(23.5, 23.5)


def test_the_time_left_follows_the_last_ten_steps() -> None:
    pace = Pace()
    assert pace.left_s(5) is None
    for step_s in [100.0] + [2.0] * 10:
        pace.add(step_s)
    assert pace.left_s(5) == 10.0


def test_evaluations_to_come_are_part_of_the_time_left() -> None:
    pace = Pace()
    pace.expect(30.0)
    pace.add(10.0)
    assert pace.left_s(4, 2) == 4 * 10.0 + 2 * 30.0  # by what the base's evaluation took
    pace.add(30.0, evaluation_s=20.0)
    assert pace.left_s(3, 2) == 3 * 10.0 + 2 * 20.0


@pytest.mark.parametrize(
    ("schedule", "step", "left"),
    [
        (Schedule(10), 0, 1),
        (Schedule(10), 10, 0),
        (Schedule(10, 4), 0, 3),
        (Schedule(10, 4), 4, 2),
        (Schedule(8, 4), 4, 1),
    ],
)
def test_evaluations_are_counted_with_the_last_one(schedule: Schedule, step: int, left: int) -> None:
    played = [s for s in range(step + 1, schedule.num_steps + 1)]
    every = schedule.evaluate_every
    assert left == sum(s == schedule.num_steps or (bool(every) and s % every == 0) for s in played)
    assert schedule.evaluations_after(step) == left


def test_the_bases_evaluation_in_step_0_tells_what_the_students_will_cost() -> None:
    stream = io.StringIO()
    times = ticking(0.0, 0.0, 10.0, 15.0, 20.0, 28.0)
    with LineProgress(Schedule(3, 0, 4), stream, times) as progress:
        progress.phase(0, "evaluate")  # from 10 s to 15 s: 5 s for the base, so 20 s for four students
        progress.phase(1, "match")
        progress.finish_step(1, METRICS, MEMBERS)
    assert stream.getvalue().strip().endswith("8.0 s  36 s left")


def test_work_is_told_by_items_speed_and_time_left() -> None:
    work = Work("evaluating", 100.0, 300, 1200, 5000)
    assert work.text(110.0) == "evaluating  300/1,200 (25 %)  500 tokens/s  30 s left"
    assert Work("evaluating", 100.0, 1, 152).text(122.0) == "evaluating  1/152 (0 %)"  # the first done is the shortest
    assert Work("verifying", 100.0, 40, 0).text(110.0) == "verifying  40 done"
    assert Work("loading the base", 100.0).text(175.0) == "loading the base  1 min 15 s"
    assert Work("learning", 100.0, 8, 8, 80).text(104.0) == "learning  8/8 (100 %)  20 tokens/s"


def test_another_call_of_the_same_phase_is_measured_from_its_own_beginning() -> None:
    activity = Activity(ticking(0.0, 0.0, 60.0, 70.0, 80.0, 80.0))
    activity.begin("evaluating")
    activity(100, 100, 900)
    activity(0, 40, 0)
    activity(20, 40, 100)
    assert activity.text() == "evaluating, part 2  20/40 (50 %)  10 tokens/s  10 s left"
    activity.begin("saving")
    assert activity.text() == "saving"


def test_the_parts_of_a_phase_have_names() -> None:
    stream = io.StringIO()
    with LineProgress(3, stream, lambda: 0.0) as progress:
        progress.phase(3, "evaluate")
        progress.part("the students")
        progress.work(5, 10)
        progress.beat()
    assert stream.getvalue().startswith("step 3/3  evaluating the students  5/10 (50 %)")


def test_a_pipe_hears_how_long_the_whole_run_takes_yet() -> None:
    stream, now = io.StringIO(), [0.0]
    with LineProgress(4, stream, lambda: now[0]) as progress:
        now[0] = 60.0
        progress.finish_step(1, METRICS, MEMBERS)
        progress.phase(2, "solve")
        for moment in (75.0, 300.0):
            now[0] = moment
            progress.beat()
    step, early, late = stream.getvalue().splitlines()
    assert step.endswith("60.0 s  3 min 0 s left")
    assert early == "step 2/4  solving  2 min 45 s left in all"
    assert late == "step 2/4  solving"  # it takes longer than was thought: nothing is said


def test_a_pipe_hears_of_the_present_phase_whenever_ten_seconds_are_over() -> None:
    stream = io.StringIO()
    progress = LineProgress(7, stream)
    for phase, words in (("load", "loading the base"), ("propose", "proposing"), ("checkpoint", "saving")):
        progress.phase(0, phase)
        progress.beat()
        assert stream.getvalue().splitlines()[-1] == f"step 0/7  {words}"
    progress.phase(0, "evaluate")
    progress.work(3, 12)
    progress.beat()
    assert stream.getvalue().splitlines()[-1].startswith("step 0/7  evaluating  3/12 (25 %)")


def test_lines_come_by_themselves_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_module, "SECONDS_BETWEEN_LINES", 0.01)
    stream = Waiting()
    with showing("measuring", stream) as activity:
        activity(1, 2)
        stream.written.wait(30)
    assert "measuring  1/2 (50 %)" in stream.getvalue()
    num_lines = len(stream.getvalue())
    assert threading.active_count() == len([t for t in threading.enumerate() if t.name != "progress"])
    assert len(stream.getvalue()) == num_lines


class Waiting(io.StringIO):
    """A stream that lets the test wait for the first line."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        num_written = super().write(text)
        self.written.set()
        return num_written


def test_what_is_said_cannot_command_the_terminal() -> None:
    stream = io.StringIO()
    LineProgress(1, stream).say("task \x1b[2J\u202e\r\nnext")
    assert stream.getvalue() == "task ␛[2J⟨U+202E⟩␍⏎next\n"


def test_a_stream_that_is_no_terminal_gets_lines() -> None:
    assert isinstance(open_progress(3, io.StringIO()), LineProgress)


@pytest.fixture
def terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """A real pseudo-terminal: what is written to the stream can be read from the descriptor."""
    reading, writing = pty.openpty()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        yield reading, stream
    os.close(reading)


def read_all(descriptor: int) -> str:
    os.set_blocking(descriptor, False)
    pieces = []
    while True:
        try:
            pieces.append(os.read(descriptor, 65536))
        except BlockingIOError:
            return b"".join(pieces).decode("utf-8")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_none_gets_lines(
    terminal: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, value)
    assert isinstance(open_progress(3, terminal[1]), LineProgress)


def test_a_terminal_gets_the_block_with_phase_numbers_and_time_left(
    terminal: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("NO_COLOR", raising=False)
    reading, stream = terminal
    progress = open_progress(20, stream)
    assert isinstance(progress, LiveProgress)
    with progress:
        progress.phase(1, "propose")
        progress.finish_step(1, METRICS, MEMBERS)
        progress.phase(2, "solve")
        progress.work(30, 120, 4000)
        progress.say("[bold]fell back[/bold] \x1b[2J")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_all(reading))
    assert "step 2/20  solving" in shown and "left in all" in shown
    assert "30/120 (25 %)" in shown and "tokens/s" in shown
    assert "solved 43 %" in shown and "valid 92 %" in shown and "thought 20 %" in shown
    assert "teachers 26.5 (best 29.0)" in shown and "students 23.5 (best 23.5)" in shown
    assert "[bold]fell back[/bold] ␛[2J" in shown
