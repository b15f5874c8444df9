"""Ctrl-C in an evaluation cuts it between batches; what is owed is made up for, and the journal is as if never cut."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from redqueen.config import load_config
from redqueen.journal import Journal, diff, read
from redqueen.run import lifecycle as run
from redqueen.run.checkpoint import Checkpoint
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import CHECKPOINTS, JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"
pytestmark = pytest.mark.usefixtures("own_base_scores")
SHORT = ["run.num_steps=1", "solve.max_new_tokens=12"]


class CuttingAt:
    """Progress that presses Ctrl-C at the first report of work in one phase of one step, and notes all phases."""

    def __init__(self, step: int, phase: str):
        self.moment, self.now = (step, phase), (-1, "")
        self.heard: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
        self.said: list[str] = []

    def __enter__(self) -> "CuttingAt":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, step: int, phase: str) -> None:
        self.now = (step, phase)

    def part(self, words: str) -> None:
        self.said.append(f"{self.now[1]} {words}")

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        self.heard.setdefault(self.now, []).append((done, total, tokens))
        if self.now == self.moment:
            self.moment = (-1, "")
            os.kill(os.getpid(), signal.SIGINT)

    def finish_step(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        self.said.append(text)


def cutting(monkeypatch: pytest.MonkeyPatch, step: int, phase: str) -> CuttingAt:
    shown = CuttingAt(step, phase)
    monkeypatch.setattr(run, "RunProgress", lambda schedule: shown)
    return shown


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CuttingAt]:
    """A run of one step that nothing cuts, and what its progress was told."""
    folder = tmp_path_factory.mktemp("short") / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("REDQUEEN_CACHE", "")
        shown = cutting(monkeypatch, 9, "")
        assert start(load_config(QUICK, SHORT), folder)
    return folder, shown


def state_of(folder: Path) -> dict[str, object]:
    found = Checkpoint.latest_valid(folder / CHECKPOINTS)
    assert found is not None
    return found.state


def test_the_last_evaluation_is_cut_and_made_up_for(
    quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(quick_run, tmp_path / "cut")
    shutil.rmtree(folder / CHECKPOINTS / "step-000004")
    shown = cutting(monkeypatch, 4, "evaluate")
    assert not resume(folder)
    assert len(shown.heard[4, "evaluate"]) == 1, "it went on after the first batch"
    [told] = [text for text in shown.said if text.startswith("expected duration: ")]
    assert "(2 steps of " in told
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 4, "what was learned is kept"
        assert {row["step"] for row in read.evaluations(journal)} == {0}
    cutting(monkeypatch, 4, "evaluate")
    assert not resume(folder), "what is owed can be cut too"
    shown = cutting(monkeypatch, 9, "")
    assert resume(folder)
    assert not [text for text in shown.said if text.startswith("expected duration: ")], "no step is left"
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None
    assert state_of(folder) == state_of(quick_run)


def test_the_bases_evaluation_is_cut_and_the_run_starts_over(
    short: tuple[Path, CuttingAt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = cutting(monkeypatch, 0, "evaluate")
    assert not start(load_config(QUICK, SHORT), tmp_path / "early")
    assert len(shown.heard[0, "evaluate"]) == 1
    cutting(monkeypatch, 9, "")
    assert resume(tmp_path / "early")
    assert diff(short[0] / JOURNAL, tmp_path / "early" / JOURNAL) is None


def test_a_run_says_where_it_is_kept_and_what_it_evaluates(short: tuple[Path, CuttingAt]) -> None:
    folder, shown = short
    assert (
        f"the run directory is {folder}; Ctrl-C stops the run, and `redqueen resume {folder}` continues it"
        in shown.said
    )
    parts = ["checking the base", "evaluating the base", "evaluating the control", "the students"]
    parts.append("the candidates for the product")
    assert [text for text in shown.said if text.startswith("evaluate ")] == [f"evaluate {part}" for part in parts]


def test_every_phase_with_work_in_it_reports_items_up_to_their_number(short: tuple[Path, CuttingAt]) -> None:
    shown = short[1]
    told = {moment for moment, calls in shown.heard.items() if calls}
    phases = {(0, "propose"), (0, "evaluate"), *((1, phase) for phase in ("propose", "verify", "solve", "evaluate"))}
    assert phases <= told
    for moment in phases:
        done, total, _ = shown.heard[moment][-1]
        assert done == total > 0, moment
    for moment, calls in shown.heard.items():
        assert all(0 <= done <= total for done, total, _ in calls), moment
    assert any(tokens > 0 for _, _, tokens in shown.heard[1, "solve"])
    if (1, "learn") in told:  # nothing is learned from a step whose advantages are all zero
        assert shown.heard[1, "learn"][-1][0] == shown.heard[1, "learn"][-1][1]
