"""One small trial on the embedded base: what is compared is alike, and stopping it changes nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redqueen.domains.registry import grade
from redqueen.engine import open_engine
from redqueen.experiment.retention.lineup import COPY, LINEAR, Entry
from redqueen.experiment.retention.settings import QUICK, engine_config
from redqueen.experiment.retention.tasks import TaskSource
from redqueen.experiment.retention.trial import CHECKPOINTS, PARENTS, SCORES, Bench, Trial, play_trial, work_of_step
from redqueen.run.checkpoint import list_checkpoints
from redqueen.tiny.problems import skeleton

ENTRIES = (Entry("M4", "delta"), Entry("X1", "factor"), Entry(COPY, "delta"), Entry(LINEAR, "delta"))
SETTINGS = replace(QUICK, num_held_out=4, num_attempts=4, max_new_tokens=96)


class Stopped(Exception):
    """Somebody stopped the trial."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with open_engine(engine_config(SETTINGS, len(PARENTS) + len(ENTRIES), 1)) as engine:
        source = TaskSource(engine, SETTINGS.kinds, SETTINGS.levels, SETTINGS.num_held_out)
        yield Bench(engine, source, ENTRIES, SETTINGS)


@pytest.fixture(scope="module")
def played(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, list[str]]:
    """A trial without interruption, and what it told."""
    told: list[str] = []
    trial = play_trial(bench, 7, tmp_path_factory.mktemp("whole"), lambda step, words: told.append(words))
    return trial, told


def test_a_copy_scores_at_birth_as_its_parent_does(played: tuple[Trial, list[str]]) -> None:
    trial, _ = played
    assert trial.curves[0][2] == trial.parents[0]
    assert trial.relative_changes[2] == 0.0 and min(trial.relative_changes[:2]) > 0.05


def test_the_parents_differ_and_the_fitter_comes_first(played: tuple[Trial, list[str]]) -> None:
    trial, _ = played
    assert trial.parent_distance > 0.5
    assert trial.fitness[0] >= trial.fitness[1]
    assert (trial.num_broken, trial.num_lost) == (0, 0)


def test_every_step_is_told_in_words(played: tuple[Trial, list[str]]) -> None:
    words = [text.split(", ")[0] for text in played[1]]
    assert words == ["parents 1/2", "parents 2/2", "children 1/2", "children 2/2"]


@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_trial_that_was_stopped_ends_as_one_that_was_not(
    bench: Bench, played: tuple[Trial, list[str]], tmp_path: Path, stop_after: int
) -> None:
    def stop(step: int, words: str) -> None:
        if step == stop_after:
            raise Stopped

    with pytest.raises(Stopped):
        play_trial(bench, 7, tmp_path, stop)
    bench.engine.store.bank.flat.zero_()  # what the process knew is gone
    told: list[int] = []
    assert play_trial(bench, 7, tmp_path, lambda step, words: told.append(step)) == played[0]
    assert told == list(range(stop_after + 1, 5))
    # What is found is read again, and nothing is kept that nobody needs.
    assert play_trial(bench, 7, tmp_path, stop) == played[0]
    assert (tmp_path / SCORES).is_file() and not (tmp_path / CHECKPOINTS).exists()


def test_a_damaged_checkpoint_costs_one_step(bench: Bench, played: tuple[Trial, list[str]], tmp_path: Path) -> None:
    def stop(step: int, words: str) -> None:
        if step == 3:
            raise Stopped

    with pytest.raises(Stopped):
        play_trial(bench, 7, tmp_path, stop)
    newest = list_checkpoints(tmp_path / CHECKPOINTS)[-1][1]
    (newest / "tensors.safetensors").write_bytes(b"torn")
    assert play_trial(bench, 7, tmp_path, lambda step, words: None) == played[0]


def test_no_training_task_has_a_held_out_program(bench: Bench) -> None:
    held_out = {skeleton(task.code) for task in bench.source.held_out}
    assert len(held_out) == SETTINGS.num_held_out
    trained = bench.source.write("0/1/children", 30)
    assert len(trained) == 60 and not held_out & {skeleton(task.code) for task in trained}


def test_equal_names_give_equal_tasks_and_other_names_others(bench: Bench) -> None:
    assert bench.source.write("0/1/0", 2) == bench.source.write("0/1/0", 2)
    codes = [{task.code for task in bench.source.write(name, 2)} for name in ("0/1/0", "0/1/1", "1/1/0")]
    assert not codes[0] & codes[1] and not codes[0] & codes[2]


def test_each_program_gives_one_task_of_each_kind_with_what_the_verifier_computed(bench: Bench) -> None:
    tasks = bench.source.write("0/1/0", 3)
    assert [task.kind for task in tasks] == ["code_o", "code_i"] * 3
    assert len({task.id for task in tasks}) == 6
    assert all(grade.correct for grade in grade([(t, _answer(t)) for t in tasks], bench.engine.verifier))


def _answer(task: object) -> str:
    return task.outputs[0] if task.kind == "code_o" else task.inputs[0]


def test_the_work_of_a_step_counts_training_and_measuring() -> None:
    settings = replace(SETTINGS, num_parent_updates=2, num_updates=3, measure_every=2)
    # Parents: 2 x 1 program x 2 kinds x 4 attempts; a measurement: 4 children x 4 programs x 2 kinds.
    assert [work_of_step(settings, 4, step) for step in range(1, 6)] == [16, 16 + 32, 32, 32 + 32, 32 + 32]
