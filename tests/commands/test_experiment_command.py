"""`redqueen experiment` on the embedded base: two arms are played, resumed where they were cut, and never repeated."""

import os
import runpy
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from processes import APART, comes_true
from small_bases import small_base

from redqueen.commands.experiment import run_experiment
from redqueen.errors import UserError
from redqueen.experiment.tables import REPORT, SCORES
from redqueen.journal import Journal, read
from redqueen.locking import is_locked
from redqueen.run.checkpoint import list_checkpoints
from redqueen.run.lifecycle import resume
from redqueen.run.store import CHECKPOINTS, JOURNAL

QUICK = Path(__file__).parents[1] / "quick.toml"
PROGRAM = Path(__file__).parent / "signalled_experiment.py"
FILE = f"""
[experiment]
name = "pair"
base = "{QUICK}"
steps = 1
seeds = [0]
reference = "2T+2S"
set = {{"evaluate.max_items" = 3, "evaluate.control" = false, "evolve.enabled" = false}}
[[arm]]
name = "single"
match = "tokens"
set = {{population = {{single = true, num_teachers = 1, num_students = 1}}}}
[[arm]]
name = "2T+2S"
"""
FAST = '"solve.max_new_tokens" = 8, "propose.max_new_tokens" = 8, "propose.num_seed_proposals" = 0'
"""For steps in which nothing need be valid."""


def test_the_experiment_that_is_included_is_found_by_name_and_plays_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_experiment(Path("smoke"), None, None, 1, dry_run=True, tables_only=False)
    assert capsys.readouterr().out.startswith("reproduce-smoke: 4 runs in runs/reproduce-smoke")
    with pytest.raises(UserError, match="no experiment file at smok: give a path such as"):
        run_experiment(Path("smok"), None, None, 1, dry_run=True, tables_only=False)


def test_an_experiment_is_played_once_and_goes_on_where_it_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    file.write_text(FILE.replace('control" = false', f'control" = false, {FAST}'))

    def cut(folder: Path) -> Path:
        raise KeyboardInterrupt

    # The process is stopped when the first run begins to write its report: everything before that is there.
    with monkeypatch.context() as patched:
        patched.setattr("redqueen.experiment.runner.write_report", lambda folders, path: cut(path))
        with pytest.raises(KeyboardInterrupt):
            run_experiment(file, out, None, 1, False, False)
    assert [path.name for path in out.iterdir()] == ["2T+2S-seed0"]

    run_experiment(file, out, None, 1, False, False)
    printed = capsys.readouterr().out
    assert "run 1 of 2: 2T+2S, seed 0" in printed and "run 2 of 2: single, seed 0; about" in printed
    with Journal.open(out / "2T+2S-seed0" / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 1
        assert len(journal.query("SELECT * FROM session")) == 2
        sampled = read.tokens_sampled(journal)
    with Journal.open(out / "single-seed0" / JOURNAL, read_only=True) as journal:
        steps = read.last_step(journal)
        assert read.tokens_sampled(journal) >= sampled and steps is not None and steps > 1
    assert {SCORES, REPORT} <= {path.name for path in out.iterdir()}
    assert printed.endswith((out / REPORT).read_text() + "\n")

    before = (out / "single-seed0" / JOURNAL).stat().st_mtime_ns
    tables = tmp_path / "tables"
    run_experiment(file, out, tables, 1, False, False)
    assert "2 of 2 runs are finished already" in capsys.readouterr().out
    assert (out / "single-seed0" / JOURNAL).stat().st_mtime_ns == before
    assert (tables / SCORES).read_bytes() == (out / SCORES).read_bytes()
    assert resume(out / "single-seed0")


@pytest.mark.slow
def test_runs_are_played_side_by_side_with_a_log_each(tmp_path: Path) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    file.write_text(FILE.replace('match = "tokens"', ""))
    run_experiment(file, out, None, 2, False, False)
    for name in ("single-seed0", "2T+2S-seed0"):
        assert "step 1/1" in (out / "logs" / f"{name}.log").read_text(encoding="utf-8")
        with Journal.open(out / name / JOURNAL, read_only=True) as journal:
            assert read.last_step(journal) == 1
    assert (out / REPORT).is_file()


def test_a_run_whose_process_is_only_starting_when_the_experiment_is_stopped_does_not_play_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    file.write_text(FILE.replace('match = "tokens"', ""))

    def stopped(playing: object, timeout: float | None = None, return_when: str = "") -> None:
        raise KeyboardInterrupt  # as Ctrl-C does, before a process that was just started could hear of it

    monkeypatch.setattr("redqueen.experiment.runner.wait", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(file, out, None, 2, False, False)
    assert [path.name for path in out.iterdir()] == ["logs"]


@pytest.mark.slow
def test_a_run_that_fails_is_told_at_once_and_those_beside_it_are_played_to_their_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = small_base(tmp_path / "base")
    (base / "model.safetensors").write_bytes(b"")
    file, out = tmp_path / "e.toml", tmp_path / "out"
    arms = f'[[arm]]\nname = "bad"\nset = {{"model.base" = "{base}"}}\n[[arm]]\nname = "late"\nseeds = [1]\n'
    file.write_text(FILE.partition("[[arm]]")[0] + '[[arm]]\nname = "2T+2S"\n' + arms)
    with pytest.raises(UserError, match=r"model\.base .* cannot be loaded"):
        run_experiment(file, out, None, 2, False, False)
    told = capsys.readouterr().out
    assert 0 < told.index("failed: bad-seed0 (model.base") < told.index("finished 1 of 3: 2T+2S-seed0")
    assert "late" not in told and (out / REPORT).is_file()


@pytest.mark.parametrize(
    ("number", "arms"),
    [
        pytest.param(signal.SIGINT, ["single", "2T+2S"], marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, ["2T+2S"], marks=pytest.mark.slow),
        (signal.SIGKILL, ["2T+2S"]),
    ],
)
def test_when_the_experiment_is_killed_its_runs_stop_with_a_checkpoint(
    tmp_path: Path, number: int, arms: list[str]
) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    endless = FILE.replace('match = "tokens"', "").replace("steps = 1\n", "steps = 10000\n")
    start, *tables = endless.replace('control" = false', f'control" = false, {FAST}').split("[[arm]]")
    file.write_text(start + "".join(f"[[arm]]{table}" for table in tables[-len(arms) :]))
    words = {"WORDS": [str(file), "--out", str(out), "--jobs", "2"]}
    process = APART.Process(target=runpy.run_path, args=(str(PROGRAM), words, "__main__"))
    process.start()
    try:
        runs = [out / f"{arm}-seed0" for arm in arms]
        assert comes_true(lambda: all(steps_of(run) > 0 for run in runs), 120)
        os.kill(process.pid, number)
        process.join(120)
        assert process.exitcode == (-number if number == signal.SIGKILL else 130)
        assert comes_true(lambda: not any(is_locked(run) for run in runs), 120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for run in runs:
        assert list_checkpoints(run / CHECKPOINTS)[-1][0] == steps_of(run) > 0


def steps_of(run: Path) -> int:
    try:
        with Journal.open(run / JOURNAL, read_only=True) as journal:
            return read.last_step(journal) or 0
    except UserError:
        return 0  # it has none yet


def test_no_job_is_refused_and_a_plan_plays_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    file.write_text(FILE)
    with pytest.raises(UserError, match="--jobs 0 is not valid"):
        run_experiment(file, out, None, 0, False, False)
    run_experiment(file, out, None, 1, True, False)
    assert "pair: 2 runs in" in capsys.readouterr().out
    with pytest.raises(UserError, match="no finished run"):
        run_experiment(file, out, None, 1, False, True)
    assert not out.exists()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('"propose.policy_rules" = ["("]', r"propose.policy_rules: '\(' is not a regular expression"),
        ('"model.base" = "./nowhere"', "nowhere"),
        ('"evolve.constants" = {X3 = {num_leading = 99}}', "num_leading is 99"),
    ],
)
def test_an_arm_that_cannot_start_is_refused_before_another_is_played(
    tmp_path: Path, setting: str, said: str, dry_run: bool
) -> None:
    file, out = tmp_path / "e.toml", tmp_path / "out"
    file.write_text(f'{FILE}[[arm]]\nname = "last"\nset = {{{setting}}}\n')
    with pytest.raises(UserError, match=f"arm 'last': .*{said}"):
        run_experiment(file, out, None, 1, dry_run, False)
    assert not out.exists()
