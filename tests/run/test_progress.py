"""Live progress: a changing block on a real terminal, plain lines elsewhere, and nothing a model wrote is obeyed."""

import io
import os
import pty
import re
from collections.abc import Callable, Iterator

import pytest

from redqueen.nouns import Individual, Rating
from redqueen.run.progress import LineProgress, LiveProgress, Pace, SideRating, open_progress, step_line, summarise

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
        progress.say("[bold]fell back[/bold] \x1b[2J")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_all(reading))
    assert "step 2/20" in shown and "solving" in shown and "left" in shown
    assert "solved 43 %" in shown and "valid 92 %" in shown and "thought 20 %" in shown
    assert "teachers 26.5 (best 29.0)" in shown and "students 23.5 (best 23.5)" in shown
    assert "[bold]fell back[/bold] ␛[2J" in shown
