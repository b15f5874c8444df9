"""Runs that are killed again and again, inside writes too, end as if nothing had happened; long runs do not grow."""

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from subprocess import TimeoutExpired

import pytest
from processes import run_apart

from redqueen.commands import train
from redqueen.config import load_config
from redqueen.journal import Journal, diff, read
from redqueen.run import lifecycle as run
from redqueen.run.checkpoint import Checkpoint, list_checkpoints
from redqueen.run.lifecycle import start
from redqueen.run.store import CHECKPOINTS, JOURNAL, REPORT

HERE = Path(__file__).parent
SMOKE = HERE.parents[1] / "configs" / "smoke.toml"
QUICK = HERE.parent / "quick.toml"
PROGRAM = HERE / "killed_run.py"
NUM_KILLS = 50
LATEST = {"time": 1, "file": 48, "statement": 1250, "write": 30_000}
"""The last moments of a whole smoke run, as ``killed_run.py`` counts them (microseconds for ``write``)."""
STATEMENT_OF_STEP_3 = 175
"""One of the SQL statements that write the third step of the quick run, counted from a resume after its second."""
NUM_STEPS_OF_SOAK = 500


def play(folder: Path, config: Path, when: str, number: int, seconds: float | None = None) -> int:
    """Start or resume a run in a process that dies at a moment, or after some seconds; return its exit status."""
    words = ["resume", str(folder)] if folder.exists() else ["train", str(config), "--run-dir", str(folder)]
    try:
        done = run_apart(PROGRAM.read_text(), when, str(number), str(folder), *words, timeout=seconds)
    except TimeoutExpired:
        return -signal.SIGKILL
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def same_end(one: Path, two: Path) -> bool:
    """Tell whether two runs' newest checkpoints hold the same tensors and state, bit by bit."""
    first, second = Checkpoint.latest_valid(one / CHECKPOINTS), Checkpoint.latest_valid(two / CHECKPOINTS)
    assert first is not None and second is not None
    same = all(tensor.equal(second.tensors[name]) for name, tensor in first.tensors.items())
    return same and first.state == second.state and (two / REPORT).is_file()


@pytest.fixture
def half_run(quick_run: Path, tmp_path: Path) -> Path:
    """A copy of the quick run without what came after its checkpoint of step 2, but for the journal's rows."""
    folder = shutil.copytree(quick_run, tmp_path / "killed")
    shutil.rmtree(folder / CHECKPOINTS / "step-000004")
    (folder / REPORT).unlink()
    return folder


def test_a_run_killed_inside_a_step_goes_on_as_if_it_had_never_been(quick_run: Path, half_run: Path) -> None:
    folder = half_run
    assert play(folder, QUICK, "statement", STATEMENT_OF_STEP_3) == -signal.SIGKILL
    assert not (folder / REPORT).exists()
    assert [step for step, _ in list_checkpoints(folder / CHECKPOINTS)] == [2]
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 2
    train.resume(folder)
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None
    assert same_end(quick_run, folder)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert [row["after_step"] for row in journal.query("SELECT * FROM session")] == [None, 2, 2]


@pytest.mark.slow
def test_a_run_killed_while_it_saves_goes_on_as_if_it_had_never_been(quick_run: Path, half_run: Path) -> None:
    folder = half_run
    assert play(folder, QUICK, "write", 2000) == -signal.SIGKILL
    train.resume(folder)
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None
    assert same_end(quick_run, folder)


@pytest.mark.slow
def test_fifty_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    began = time.monotonic()
    start(load_config(SMOKE), whole)
    duration_s = time.monotonic() - began
    rng, num_kills, num_runs = random.Random(0), 0, 0
    while num_kills < NUM_KILLS:
        folder, num_runs = tmp_path / f"killed-{num_runs}", num_runs + 1
        status = -signal.SIGKILL
        while status:
            if num_kills >= NUM_KILLS:
                status = play(folder, SMOKE, "never", 0)
                continue
            when = rng.choice(tuple(LATEST))
            number = rng.randrange(LATEST[when]) + 1
            seconds = rng.uniform(1.0, duration_s) if when == "time" else None
            status = play(folder, SMOKE, "never" if when == "time" else when, number, seconds)
            num_kills += status == -signal.SIGKILL
        assert diff(whole / JOURNAL, folder / JOURNAL) is None
        assert same_end(whole, folder)
        shutil.rmtree(folder)
    assert num_kills == NUM_KILLS


@dataclass
class Meter:
    """Progress that notes memory (bytes resident) and open files after each step."""

    num_steps: int
    memory: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, step: int, phase: str) -> None:
        pass

    def part(self, words: str) -> None:
        pass

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def finish_step(self, *_: object) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        self.files.append(len(os.listdir("/proc/self/fd")))


@pytest.mark.slow
def test_five_hundred_steps_need_no_more_memory_or_files_than_a_hundred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(NUM_STEPS_OF_SOAK)
    monkeypatch.setattr(run, "RunProgress", lambda schedule: meter)
    small = ["propose.num_code_o=1", "propose.num_code_i=1", "propose.num_code_f=1", "propose.num_per_prompt=1"]
    start(load_config(QUICK, [f"run.num_steps={NUM_STEPS_OF_SOAK}", *small]), tmp_path / "soak")
    assert len(meter.files) == NUM_STEPS_OF_SOAK
    assert max(meter.files[-100:]) <= max(meter.files[50:150])
    assert median(meter.memory[-100:]) < 1.1 * median(meter.memory[50:150]) + 20e6
