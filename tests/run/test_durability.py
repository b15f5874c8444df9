"""What happens to a run: stopped, disk full, folder read-only, checkpoint damaged, written by another version."""

import importlib.metadata
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cut_run import check_same_end
from rights import files_of_at_most, without_root_rights

from redqueen import __version__
from redqueen.commands.export import export_member
from redqueen.config import load_config
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.journal import Journal, diff
from redqueen.learn.torch_learner import FACTORS
from redqueen.run import lifecycle as run
from redqueen.run import store
from redqueen.run.checkpoint import REPLACED, SCHEMA_VERSION, TEMPORARY, Checkpoint, list_checkpoints
from redqueen.run.lifecycle import resume, start
from redqueen.run.progress import RunProgress, Schedule
from redqueen.run.store import CHECKPOINTS, JOURNAL, RunLock, load_run_config
from redqueen.state import State

QUICK = Path(__file__).parents[1] / "quick.toml"
CONFIG = load_config(QUICK)


class Interrupting:
    """Progress that presses Ctrl-C when a phase of a step begins."""

    def __init__(self, moments: Sequence[tuple[int, str]]):
        self.moments = list(moments)
        self.said: list[str] = []

    def __enter__(self) -> "Interrupting":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, step: int, phase: str) -> None:
        while self.moments and (step, phase) == self.moments[0]:
            self.moments.pop(0)
            os.kill(os.getpid(), signal.SIGINT)

    def part(self, words: str) -> None:
        pass

    def __call__(self, done: int, total: int, tokens: int = 0) -> None:
        pass

    def finish_step(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Interrupting]:
    """Let the runs of this test show their progress to an ``Interrupting`` with these moments."""

    def install(*moments: tuple[int, str]) -> Interrupting:
        shown = Interrupting(moments)
        monkeypatch.setattr(run, "RunProgress", lambda schedule: shown)
        return shown

    return install


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def half_run(quick_run: Path, open_path: Path) -> Path:
    """A copy of the quick run whose last checkpoint is gone: resuming it plays the last two steps."""
    folder = open_path / "half"
    shutil.copytree(quick_run, folder)
    shutil.rmtree(folder / CHECKPOINTS / "step-000004")
    return folder


def steps_saved(folder: Path) -> list[int]:
    return [step for step, _ in list_checkpoints(folder / CHECKPOINTS)]


def last_step(folder: Path) -> int:
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        return int(journal.query("SELECT max(step) AS step FROM step")[0]["step"])


# Stopping ------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_after_the_phase_with_a_checkpoint_and_the_run_goes_on_as_if_never_stopped(
    quick_run: Path, half_run: Path, progress: Callable[..., Interrupting], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(progress: object, state: State, engine: Engine, spent: object) -> None:
        for one in state.individuals:  # as measuring the speed does, this loses the moments of the optimiser
            engine.store.load(one.slot, engine.store.genotype(one.slot))

    monkeypatch.setattr(run, "report_duration", measure)
    progress((4, "propose"))
    assert not resume(half_run)  # the fourth step is dropped before anything was learned
    assert (steps_saved(half_run), last_step(half_run)) == ([2, 3], 3)
    progress((4, "learn"))
    assert not resume(half_run)  # it has begun to learn, and is finished first
    assert (steps_saved(half_run), last_step(half_run)) == ([3, 4], 4)
    progress()
    assert resume(half_run)
    check_same_end(quick_run, half_run)


def test_a_run_has_its_founders_and_its_new_length_also_when_it_starts_over(
    quick_run: Path, tmp_path: Path, progress: Callable[..., Interrupting]
) -> None:
    founder = export_member(quick_run, "S2", tmp_path / "founder")
    config = load_config(QUICK, [f"population.founders=['{founder}']"])
    folder, checkpoints = tmp_path / "run", tmp_path / "run" / CHECKPOINTS
    for play in (lambda: start(config, folder), lambda: resume(folder, overrides=["run.num_steps=5"])):
        progress((1, "propose"))
        assert not play()
        [(step, path)] = list_checkpoints(checkpoints)
        factors = Checkpoint.load(path).tensors[FACTORS]
        assert step == 0 and bool(factors.any()) and all(row.equal(factors[0]) for row in factors[:4])
        shutil.rmtree(checkpoints)
    assert load_run_config(folder).run.num_steps == 5


def test_a_checkpoint_whose_replacement_was_cut_is_used(half_run: Path, progress: Callable[..., Interrupting]) -> None:
    whole = half_run / CHECKPOINTS / "step-000002"
    whole.rename(whole.with_name(f"{TEMPORARY}000002{REPLACED}"))
    progress((3, "propose"))
    assert not resume(half_run)
    assert (steps_saved(half_run), last_step(half_run)) == ([2], 2)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("population.founders=['{}']", "population.founders: "),
        ("propose.domains=['code', 'file:{}']", "line 1 does not have a known form"),
    ],
)
def test_files_that_cannot_be_read_are_refused_before_the_run_directory_is_made(
    field: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "hello"}\n')
    with pytest.raises(UserError, match=said):
        start(load_config(QUICK, [field.format(tmp_path / "rows.jsonl")]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# What the disk does --------------------------------------------------------------------------------------------


def test_a_damaged_checkpoint_a_full_disk_and_a_second_ctrl_c_are_told_and_the_run_ends_as_if_they_had_not_been(
    quick_run: Path, tmp_path: Path, progress: Callable[..., Interrupting]
) -> None:
    folder = shutil.copytree(quick_run, tmp_path / "run")
    tensors = folder / CHECKPOINTS / "step-000004" / "tensors.safetensors"
    content = bytearray(tensors.read_bytes())
    content[-5] ^= 1
    tensors.write_bytes(content)
    for num_bytes in (50_000, 200_000):  # too few for the journal, then for the checkpoint
        shown = progress()
        with files_of_at_most(num_bytes), pytest.raises(UserError, match=r"free space.* resume the run"):
            resume(folder)
        assert "step-000004 is damaged" in shown.said[0] and "from the checkpoint of step 2" in shown.said[0]
    shown = progress((3, "evolve"), (3, "evolve"))
    with pytest.raises(KeyboardInterrupt):
        resume(folder)
    assert shown.moments == [] and Checkpoint.latest_valid(folder / CHECKPOINTS).step == 2  # type: ignore[union-attr]
    assert steps_saved(folder) == [2], "a damaged checkpoint would count among those that are kept"
    shown = progress()
    resume(folder)
    assert [line.split(":")[0] for line in shown.said] == ["expected duration", "product"]
    assert diff(quick_run / JOURNAL, folder / JOURNAL) is None
    assert steps_saved(folder) == [2, 4]


def test_a_folder_that_may_not_be_written_to_is_named_and_nothing_changes(quick_run: Path, half_run: Path) -> None:
    half_run.chmod(0o555)
    (half_run / "lock").chmod(0o444)
    before = {path: path.stat().st_mtime_ns for path in half_run.rglob("*")}
    with (
        without_root_rights(),
        pytest.raises(UserError, match=r"the run directory .* cannot be written .*make it"),
    ):
        resume(half_run)
    assert {path: path.stat().st_mtime_ns for path in half_run.rglob("*")} == before


def test_a_run_directory_that_may_not_be_read_is_named(half_run: Path) -> None:
    half_run.chmod(0o700)
    with without_root_rights(), pytest.raises(UserError, match=r"config\.json may not be read: ask for permission"):
        resume(half_run)


# Half-made run directories, other writers, other versions ------------------------------------------------------


def test_a_run_directory_does_not_appear_without_its_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_whole", break_off)
    with pytest.raises(UserError, match=r"cannot be made .No space left on device.: choose a folder"):
        start(CONFIG, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_killed_while_its_journal_was_made_starts_over(
    quick_run: Path, tmp_path: Path, progress: Callable[..., Interrupting]
) -> None:
    folder = tmp_path / "early"
    folder.mkdir()
    shutil.copy(quick_run / "config.json", folder)
    sqlite3.connect(folder / JOURNAL).execute("PRAGMA journal_mode = WAL").connection.close()
    shown = progress((1, "propose"))
    assert not resume(folder)
    assert shown.said[0] == "there is no checkpoint yet: starting over"
    assert (steps_saved(folder), last_step(folder)) == ([0], 0)


def test_a_run_whose_checkpoints_were_taken_away_keeps_its_journal(half_run: Path) -> None:
    shutil.rmtree(half_run / CHECKPOINTS)
    with pytest.raises(UserError, match=r"has no checkpoint, but its journal has 4 steps, so it cannot be resumed"):
        resume(half_run, overrides=["run.num_steps=9"])
    assert last_step(half_run) == 4 and load_run_config(half_run).run.num_steps == 4


def test_a_journal_that_ends_before_the_newest_checkpoint_is_refused_before_anything_changes(half_run: Path) -> None:
    with Journal.open(half_run / JOURNAL) as journal:
        journal.truncate_after(1)
    with pytest.raises(UserError, match=r"ends with step 1, but the newest checkpoint is of step 2: .*-wal"):
        resume(half_run, overrides=["run.num_steps=9"])
    assert last_step(half_run) == 1 and load_run_config(half_run).run.num_steps == 4


def test_a_second_process_on_a_run_directory_is_refused_by_resume(quick_run: Path) -> None:
    with RunLock(quick_run), pytest.raises(UserError, match="is being written by this process"):
        resume(quick_run)


def test_a_checkpoint_of_another_version_is_refused_and_the_journal_is_left_alone(half_run: Path) -> None:
    manifest = half_run / CHECKPOINTS / "step-000002" / "manifest.json"
    old = f'"schema_version": {SCHEMA_VERSION}'
    manifest.write_text(manifest.read_text().replace(old, '"schema_version": 0'))
    with pytest.raises(UserError, match=r"has schema 0, and this redqueen reads schema \d+; resume with the version"):
        resume(half_run)
    assert last_step(half_run) == 4


def test_a_checkpoint_that_lacks_what_this_version_needs_is_refused(half_run: Path) -> None:
    folder = half_run / CHECKPOINTS
    found = Checkpoint.latest_valid(folder)
    assert found is not None
    del found.state["state"]["buffer"]
    Checkpoint.save(folder, found.step, found.tensors, found.state)
    with pytest.raises(UserError, match=r"written by another version of redqueen .*buffer"):
        resume(half_run)
    assert last_step(half_run) == 4


def test_a_config_that_was_changed_under_a_run_is_refused(half_run: Path) -> None:
    config = half_run / "config.json"
    config.write_text(config.read_text().replace('"lora_rank": 2', '"lora_rank": 4'))
    with pytest.raises(UserError, match=r"adapters do not match config\.json: restore"):
        resume(half_run)
    assert last_step(half_run) == 4


def test_a_journal_of_another_version_is_refused(half_run: Path) -> None:
    with sqlite3.connect(half_run / JOURNAL) as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(UserError, match=r"journal schema 0, and this redqueen reads schema"):
        resume(half_run)


def test_milestones_stay_when_the_rolling_ones_go(tmp_path: Path) -> None:
    for step in (0, 99, 100, 101, 200, 201, 202):
        Checkpoint.save(tmp_path, step, {}, {"step": step}, num_kept=2)
    assert [step for step, _ in list_checkpoints(tmp_path)] == [100, 200, 201, 202]


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert not RunProgress(Schedule(3)).in_place


def test_a_checkout_that_is_not_installed_has_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    known = importlib.metadata.distribution

    def without_redqueen(name: str) -> importlib.metadata.Distribution:
        if name == "redqueen":
            raise importlib.metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(importlib.metadata, "distribution", without_redqueen)
    assert run._run_record(CONFIG).versions["redqueen"] == __version__
