"""Live progress: a changing block on a real terminal, plain lines elsewhere, and nothing a model wrote is obeyed."""

import io
import math
import os
import pty
import re
import threading
from collections.abc import Iterator

import pytest
from rich.console import Console
from rich.table import Table

from redqueen.config import RunConfig
from redqueen.records import Individual, Rating
from redqueen.run import progress as progress_module
from redqueen.run.continuation import Spent, remaining_work
from redqueen.run.progress import Activity, RunProgress, Schedule, ratings_text, shares_text

METRICS = {"solve/rate": 0.4321, "propose/valid_frac": 0.925, "solve/thought_frac": 0.2}
MEMBERS = [
    Individual("T1", "teacher", 0, Rating(24.0, 2.0)),
    Individual("T2", "teacher", 1, Rating(29.0, 2.0)),
    Individual("S1", "student", 2, Rating(23.5, 2.0)),
]


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def clock() -> Hand:
    return Hand()


def test_a_step_is_one_plain_line(clock: Hand) -> None:
    stream = io.StringIO()
    with RunProgress(Schedule(100), stream, clock) as progress:
        progress.phase(1, "solve")
        for step, at_s in ((1, 9.0), (2, 20.0)):
            clock.at_s = at_s
            progress.finish_step(step, METRICS, MEMBERS)
    assert stream.getvalue().splitlines() == [
        "step   1/100  solved 43 %  valid 92 %  thought 20 %  teachers 26.5 (best 29.0)  students 23.5 (best 23.5)"
        "  9.0 s  14 min 51 s left",
        "step   2/100  solved 43 %  valid 92 %  thought 20 %  teachers 26.5 (best 29.0)  students 23.5 (best 23.5)"
        "  11.0 s  16 min 20 s left",
    ]


def test_a_share_that_is_not_defined_is_a_dash_and_the_single_agent_has_no_ratings() -> None:
    both = [Individual("A1", "both", 0, Rating(25.0, 8.0))]
    assert shares_text({"solve/rate": float("nan"), "propose/valid_frac": 0.0}) == "solved –  valid 0 %  thought –"
    assert ratings_text(both) == ""


def test_the_time_left_follows_the_last_ten_steps(clock: Hand) -> None:
    with RunProgress(Schedule(16), io.StringIO(), clock) as progress:
        assert progress.left_s() is None
        for step in range(1, 12):
            clock.at_s += 100.0 if step == 1 else 2.0
            progress.finish_step(step, METRICS, MEMBERS)
        assert progress.left_s() == 10.0


def test_a_limit_of_tokens_or_seconds_shortens_the_time_left(clock: Hand) -> None:
    stream = io.StringIO()
    run = RunConfig(num_steps=400, max_seconds=340.0)
    with RunProgress(Schedule(400, 2), stream, clock) as progress:
        for step, at_s in ((1, 102.0), (2, 204.0)):
            clock.at_s = at_s
            progress.finish_step(step, METRICS, MEMBERS, remaining_work(run, step, Spent(0, at_s), False))
        assert progress.left_s() == 2 * 102.0  # the limit leaves 136 s, and the step that reaches it is finished
        progress.finish_step(3, METRICS, MEMBERS, remaining_work(run, 3, Spent(0, 340.0), True))
        assert progress.left_s() == 204.0 / 3  # the new members' step, at the pace of three steps
        progress.finish_step(4, METRICS, MEMBERS, remaining_work(run, 4, Spent(0, 340.0), False))
        assert progress.left_s() == 0.0
    assert "5 min 6 s left" in stream.getvalue().splitlines()[0]
    assert remaining_work(RunConfig(num_steps=400, max_tokens=1_000), 2, Spent(301, 9.0), False) == (5, math.inf)
    assert remaining_work(RunConfig(num_steps=4, max_tokens=1_000), 2, Spent(301, 9.0), False) == (2, math.inf)


def test_evaluations_to_come_are_part_of_the_time_left(clock: Hand) -> None:
    with RunProgress(Schedule(6, 4, num_students=3), io.StringIO(), clock) as progress:
        progress.phase(0, "evaluate")
        progress.evaluation_s = 10.0  # of a student, as it was expected
        clock.at_s = 500.0  # the base is checked and evaluated, and so is the control
        progress.phase(1, "match")
        clock.at_s += 10.0
        progress.finish_step(1, METRICS, MEMBERS)
        assert progress.left_s() == 5 * 10.0 + 2 * 3 * 10.0
        for step in (2, 3):
            clock.at_s += 10.0
            progress.finish_step(step, METRICS, MEMBERS)
        clock.at_s += 10.0
        progress.phase(4, "evaluate")
        clock.at_s += 20.0
        progress.finish_step(4, METRICS, MEMBERS)
        assert progress.left_s() == 2 * 10.0 + 20.0


def test_the_time_of_a_step_is_told_apart_from_that_of_the_evaluation_after_it(clock: Hand) -> None:
    stream = io.StringIO()
    with RunProgress(Schedule(2), stream, clock) as progress:
        for phase, at_s in (("match", 0.0), ("product", 8.0), ("evaluate", 20.0)):
            clock.at_s = at_s
            progress.phase(2, phase)
        clock.at_s = 43.0
        progress.finish_step(2, METRICS, MEMBERS)
        block = [str(line) for line in progress.get_renderables() if not isinstance(line, Table)]
    assert stream.getvalue().endswith("  8.0 s, evaluation 35.0 s  0 s left\n")
    assert any(line.endswith("thought 20 %  8.0 s, evaluation 35.0 s") for line in block)


def test_what_came_before_the_first_step_is_no_part_of_its_time(clock: Hand) -> None:
    with RunProgress(Schedule(20), io.StringIO(), clock) as progress:
        clock.at_s = 50.0  # a resumed run loads the base and measures the speed, and evaluates nothing
        progress.phase(3, "match")
        clock.at_s = 60.0
        progress.finish_step(3, METRICS, MEMBERS)
        assert progress.left_s() == 17 * 10.0


def test_the_end_of_the_run_is_part_of_the_time_left(clock: Hand) -> None:
    with RunProgress(Schedule(2), io.StringIO(), clock) as progress:
        progress.end_s = 30.0
        for step, left_s in ((1, 40.0), (2, 0.0)):
            progress.phase(step, "match")
            clock.at_s += 10.0
            progress.finish_step(step, METRICS, MEMBERS)
            assert progress.left_s() == left_s


@pytest.mark.parametrize(
    ("schedule", "step", "left"),
    [
        (Schedule(10), 0, 1),
        (Schedule(10), 10, 0),
        (Schedule(10, 4), 0, 3),
        (Schedule(10, 4), 4, 2),
        (Schedule(8, 4), 4, 1),
        (Schedule(10, 4, num_students=3), 4, 6),
    ],
)
def test_evaluations_are_counted_with_the_last_one(schedule: Schedule, step: int, left: int) -> None:
    played = [s for s in range(step + 1, schedule.num_steps + 1)]
    every = schedule.evaluate_every
    rounds = sum(s == schedule.num_steps or (bool(every) and s % every == 0) for s in played)
    assert left == rounds * schedule.num_students
    assert schedule.evaluations_after(step) == left


def test_work_is_shown_with_items_rate_and_time_left(clock: Hand) -> None:
    activity = Activity("evaluating", io.StringIO(), clock)
    for at_s, work, text in (
        (10.0, (300, 1200, 5000), "evaluating  300/1,200 (25 %)  500 tokens/s  30 s left"),
        (22.0, (1, 152, 0), "evaluating  1/152 (0 %)"),  # the first completion to end is the shortest
        (10.0, (40, 0, 0), "evaluating  40 done"),
        (4.0, (8, 8, 80), "evaluating  8/8 (100 %)  20 tokens/s"),
    ):
        activity.begin("evaluating")
        clock.at_s += at_s
        activity(*work)
        assert activity.text() == text
    activity.begin("loading the base")
    clock.at_s += 75.0
    assert activity.text() == "loading the base  1 min 15 s"


def test_another_call_of_the_same_phase_is_measured_from_its_own_start(clock: Hand) -> None:
    activity = Activity("evaluating", io.StringIO(), clock)
    activity(100, 100, 900)
    clock.at_s = 60.0
    activity(0, 40, 0)
    clock.at_s = 70.0
    activity(20, 40, 100)
    assert activity.text() == "evaluating, part 2  20/40 (50 %)  10 tokens/s  10 s left"
    activity.begin("saving")
    assert activity.text() == "saving"


def test_the_parts_of_a_phase_have_names(clock: Hand) -> None:
    stream = io.StringIO()
    with RunProgress(Schedule(3), stream, clock) as progress:
        progress.phase(3, "evaluate")
        progress.part("the students")
        progress(5, 10)
        progress.print_status()
    assert stream.getvalue() == "step 3/3  evaluating the students  5/10 (50 %)\n"


def test_plain_lines_have_the_time_left_of_the_run_until_it_is_exceeded(clock: Hand) -> None:
    stream = io.StringIO()
    with RunProgress(Schedule(4), stream, clock) as progress:
        clock.at_s = 60.0
        progress.finish_step(1, METRICS, MEMBERS)
        progress.phase(2, "solve")
        progress(1, 100)
        for moment in (75.0, 300.0):
            clock.at_s = moment
            progress.print_status()
    step, early, late = stream.getvalue().splitlines()
    assert step.endswith("60.0 s  3 min 0 s left")
    assert early == "step 2/4  solving  1/100 (1 %)  2 min 45 s left in all"
    assert late == "step 2/4  solving  1/100 (1 %)"


def test_phases_before_step_1_are_shown(clock: Hand) -> None:
    stream = io.StringIO()
    progress = RunProgress(Schedule(7), stream, clock)
    for phase, words in (("load", "loading the base"), ("propose", "proposing"), ("checkpoint", "saving")):
        progress.phase(0, phase)
        progress.print_status()
        assert stream.getvalue().splitlines()[-1] == words
    progress.phase(0, "evaluate")
    clock.at_s = 4.0
    progress(3, 12)
    progress.print_status()
    assert stream.getvalue().splitlines()[-1] == "evaluating  3/12 (25 %)  12 s left"


def test_lines_are_printed_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.01)
    stream = Waiting()
    with Activity("measuring", stream) as activity:
        activity(1, 2)
        stream.written.wait(30)
    assert "measuring  1/2 (50 %)" in stream.getvalue()
    num_chars = len(stream.getvalue())
    assert "progress" not in {thread.name for thread in threading.enumerate()}
    assert len(stream.getvalue()) == num_chars


class Waiting(io.StringIO):
    """A stream that lets the test wait for the first line."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        num_written = super().write(text)
        self.written.set()
        return num_written


def test_a_printed_line_has_no_control_characters() -> None:
    stream = io.StringIO()
    RunProgress(Schedule(1), stream).say("task \x1b[2J\u202e\r\nnext")
    assert stream.getvalue() == "task ␛[2J⟨U+202E⟩␍⏎next\n"


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
    assert not RunProgress(Schedule(3), terminal[1]).in_place


@pytest.mark.parametrize("columns", [80, 140])
def test_a_terminal_gets_the_block_with_phase_numbers_and_time_left(
    terminal: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch, clock: Hand, columns: int
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    reading, stream = terminal
    with RunProgress(Schedule(20), stream, clock) as progress:
        assert progress.in_place
        progress.phase(1, "propose")
        clock.at_s = 60.0
        progress.finish_step(1, METRICS, MEMBERS)
        progress.phase(2, "evaluate")
        progress.part("the candidates for the product")
        clock.at_s = 70.0
        progress(1_230, 2_400, 40_000_000)
        progress.say("[bold]fell back[/bold] \x1b[2J")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_all(reading))
    block = [line.rstrip() for line in re.split(r"[\r\n]+", shown)]
    assert "step 2/20  evaluating the candidates for the product" in block
    assert any(line.endswith("1,230/2,400 (51 %)  4,000,000 tokens/s  10 s left") for line in block)
    assert "18 min 50 s left in all" in block
    assert "solved 43 %  valid 92 %  thought 20 %  60.0 s" in block
    assert "teachers 26.5 (best 29.0)  students 23.5 (best 23.5)" in block
    assert "[bold]fell back[/bold] ␛[2J" in block
    assert max(map(len, block)) <= 80


def test_before_step_1_the_parts_have_names_and_no_number_of_a_step(clock: Hand) -> None:
    stream = io.StringIO()
    with RunProgress(Schedule(100), stream, clock) as progress:
        for phase, part in (("load", ""), ("propose", "growing the seed buffer"), ("evaluate", "checking the base")):
            progress.phase(0, phase)
            if part:
                progress.part(part)
            progress(3, 12)
            progress.print_status()
    assert stream.getvalue().splitlines() == [
        "loading the base  3/12 (25 %)",
        "growing the seed buffer  3/12 (25 %)",
        "checking the base  3/12 (25 %)",
    ]


def test_the_live_block_fits_80_columns(clock: Hand) -> None:
    with RunProgress(Schedule(10_000, num_students=8), io.StringIO(), clock) as progress:
        clock.at_s = 4_000.0
        progress.finish_step(1, METRICS, MEMBERS)
        progress.phase(1_000, "distill")
        progress.part("update 10,000 of 12,000")
        progress(10_000, 120_000, 12_345_678)
        clock.at_s = 5_000.0
        progress(20_000, 120_000, 12_345_678)
        console = Console(width=200, file=io.StringIO(), record=True)
        console.print(*progress.get_renderables(), sep="\n")
        lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert len(lines) == 5 and max(map(len, lines)) <= 80, lines
