"""A run that is over goes on: the journal says where and how far, also when it is killed on the way."""

import contextlib
import io
import shutil
from pathlib import Path

import pytest
from command_line import redqueen

from redqueen.commands.train import resume as resume_command
from redqueen.config import Config, RunConfig, load_config
from redqueen.errors import UserError
from redqueen.journal import Journal, RunRecord, diff, read
from redqueen.journal.schema import CHOSEN
from redqueen.run.continuation import (
    Spent,
    has_ended,
    how_to_go_on,
    keep_lengths,
    lengthened,
    rate_change,
    record_lengths,
)
from redqueen.run.lifecycle import resume
from redqueen.run.store import CHECKPOINTS, JOURNAL, load_run_config


@pytest.fixture
def over(quick_run: Path, tmp_path: Path) -> Path:
    """A copy of a run that has played its four steps."""
    return shutil.copytree(quick_run, tmp_path / "over")


@pytest.fixture(scope="module")
def longer(quick_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of four steps that has gone on to a fifth, and what it said."""
    folder, said = shutil.copytree(quick_run, tmp_path_factory.mktemp("longer") / "run"), io.StringIO()
    with contextlib.redirect_stderr(said):
        resume_command(folder, overrides=["run.num_steps=5"])
    return folder, said.getvalue()


def test_it_plays_on_to_the_new_end_and_the_journal_tells_of_it(longer: tuple[Path, str]) -> None:
    folder, said = longer
    assert load_run_config(folder).run.num_steps == 5
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 5
        assert read.metric_series(journal)["run/num_steps"] == [(4, 5.0)]
        assert read.run_record(journal).config["run"]["num_steps"] == 5  # type: ignore[index]
        assert [row["after_step"] for row in journal.query("SELECT * FROM session ORDER BY seq")] == [None, 4]
    assert f"redqueen resume {folder} --set run.num_steps=10" in said


def test_a_continuation_that_dies_before_its_record_is_recorded_by_the_next_resume(
    over: Path, longer: tuple[Path, str]
) -> None:
    path = over / "config.json"  # as it lies when the process died right after writing it
    path.write_text(path.read_text().replace('"num_steps": 4', '"num_steps": 5'))
    resume(over)
    assert diff(longer[0] / JOURNAL, over / JOURNAL) is None


def test_a_run_that_is_made_as_short_as_it_is_ends_with_its_evaluation_and_its_product(
    over: Path, quick_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = over / "config.json"  # as if it had been stopped after step 4 of 8
    path.write_text(path.read_text().replace('"num_steps": 4', '"num_steps": 8').replace('"constant"', '"linear"'))
    with Journal.open(over / JOURNAL) as journal:
        journal.connection.execute("DELETE FROM evaluation WHERE step = 4")
        journal.connection.execute("DELETE FROM metric WHERE name LIKE 'product/%'")
    assert resume(over, overrides=["run.num_steps=4"])
    assert diff(quick_run / JOURNAL, over / JOURNAL) is None
    assert "with 4 steps its factor at step 5 is 0.05, with 8 steps 0.41" in capsys.readouterr().err


def test_a_run_does_not_end_with_children_that_have_not_learned(over: Path) -> None:
    shutil.rmtree(over / CHECKPOINTS / "step-000004")
    with pytest.raises(UserError, match=r"members that are new in step 2 have not been in a match: give at least 3"):
        resume(over, overrides=["run.num_steps=2"])


def test_another_length_is_said_to_change_the_rate_where_that_falls_to_the_last_step() -> None:
    def run(*more: str) -> Config:
        return load_config(None, ["learn.decay=linear", "run.num_steps=10", *more])

    longer = run("run.num_steps=20")
    # At step 11 of 20: 0.05 + 0.95 (1 - 11 / 20) = 0.4775; of 10, behind its end: the floor.
    said = "with 20 steps its factor at step 11 is 0.48, with 10 steps 0.05"
    assert rate_change(run(), longer, 10) == f"the learning rate decays to the run's last step: {said}"
    assert said in how_to_go_on(Path("runs/a"), run(), 10, Spent(0, 0.0))
    assert rate_change(longer, longer, 10) == ""
    for still in ("learn.decay=constant", "learn.decay_to_step=8"):
        assert rate_change(run(still), run(still, "run.num_steps=20"), 10) == ""
        assert "\n" not in how_to_go_on(Path("runs/a"), run(still), 10, Spent(0, 0.0))


@pytest.mark.parametrize(
    ("limits", "step", "spent", "words"),
    [
        (["run.max_tokens=100"], 7, Spent(250, 3.0), "--set run.max_tokens=500"),
        (["run.max_seconds=2.5"], 7, Spent(120, 30.2), "--set run.max_seconds=61"),
        (["run.max_tokens=100"], 10, Spent(99, 3.0), "--set run.num_steps=20"),
        (["run.max_tokens=100"], 10, Spent(100, 3.0), "--set run.max_tokens=200 --set run.num_steps=20"),
    ],
)
def test_what_is_doubled_to_go_on_is_what_ended_the_run(limits: list[str], step: int, spent: Spent, words: str) -> None:
    config = load_config(None, ["run.num_steps=10", *limits])
    expected = f"runs/a is finished after {step} steps; to continue it: redqueen resume runs/a {words}"
    assert how_to_go_on(Path("runs/a"), config, step, spent) == expected


def test_a_run_at_its_limit_has_ended_unless_members_are_new_in_its_last_step(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, RunRecord("r", "1T+1S", 0)) as journal:
        assert not has_ended(journal, RunConfig())
        with journal.step(1) as tx:
            tx.add_metrics({"distill/answers": 0.0})
        assert has_ended(journal, RunConfig(num_steps=1)) and not has_ended(journal, RunConfig(num_steps=2))
        spent = RunConfig(num_steps=9, max_seconds=1e-9)
        journal.add_timings(1, {"solve": 2.0})
        assert has_ended(journal, spent)
        with journal.step(2) as tx:
            tx.add_metrics({"distill/answers": 30.0})
        assert not has_ended(journal, spent), "the students are distilled in step 2 and play step 3"
        journal.set_evaluations(2, [], {f"{CHOSEN}distilled": 1.0})
        assert has_ended(journal, spent), "it was the product that was distilled"


def test_recording_twice_is_recording_once(over: Path) -> None:
    config = lengthened(load_run_config(over), ["run.num_steps=9"])
    with Journal.open(over / JOURNAL) as journal:
        record_lengths(journal, config, 4)
        record_lengths(journal, config, 4)
        assert read.metric_series(journal)["run/num_steps"] == [(4, 9.0)]


def test_what_was_noted_of_a_length_stays_when_the_journal_is_cut_back(over: Path) -> None:
    config = lengthened(load_run_config(over), ["run.num_steps=9"])
    with Journal.open(over / JOURNAL) as journal:
        record_lengths(journal, config, 4)
        keep_lengths(journal, 2)
        journal.truncate_after(2)
        record_lengths(journal, config, 2)
        assert read.metric_series(journal)["run/num_steps"] == [(2, 9.0)]


def test_a_run_that_is_over_says_how_it_goes_on(over: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product").mkdir()
    assert f"next: redqueen export {over} --out product-{over.name}" in redqueen("resume", over)[2]
    (tmp_path / "product").rmdir()
    code, out, err = redqueen("resume", over)
    assert code == 0 and out.startswith("report: ") and "held-out tasks solved, sampled: base " in out
    assert f"next: redqueen export {over} --out product" in err
    assert f"is finished after 4 steps; to continue it: redqueen resume {over} --set run.num_steps=8" in err
    path = over / "config.json"
    path.write_text(path.read_text().replace('"product": "probe"', '"product": "none"'))
    assert "redqueen export" not in redqueen("resume", over)[2], "the run has no product"


def test_the_servers_of_a_run_may_have_moved(over: Path) -> None:
    config = lengthened(load_run_config(over), ['sampler.urls=["http://other:8000"]'])
    assert config.sampler.urls == ("http://other:8000",)
    assert config.model_copy(update={"sampler": load_run_config(over).sampler}) == load_run_config(over)


def test_nothing_but_the_length_and_the_servers_may_change(over: Path) -> None:
    before = (over / "config.json").read_text()
    with pytest.raises(UserError, match=r"run\.max_tokens, run\.max_seconds, sampler\.urls, .*may change"):
        resume(over, overrides=["learn.learning_rate=1"])
    with pytest.raises(UserError, match=r"has 4 finished steps: give at least 4"):
        resume(over, overrides=["run.num_steps=3"])
    assert (over / "config.json").read_text() == before
