"""A run stops at a limit of tokens or seconds: after a whole step, never right after a birth, for good."""

from pathlib import Path

import pytest
from cut_run import check_it_goes_on_as_if_never_cut, play

from redqueen.config import RunConfig, load_config
from redqueen.journal import Journal, read
from redqueen.propose.buffer import TaskBuffer
from redqueen.records import Individual, Rating
from redqueen.run.continuation import Spent, is_over, spent_so_far
from redqueen.run.lifecycle import resume, start
from redqueen.run.store import JOURNAL
from redqueen.state import State

QUICK = Path(__file__).parents[1] / "quick.toml"
SHORT = ("evaluate.control=false", "run.product=none")


def state(step: int, born_step: int = 0) -> State:
    people = (Individual("T1", "teacher", 0, Rating(25.0, 8.0), born_step),)
    return State(step, people, TaskBuffer(8))


@pytest.mark.parametrize(
    ("run", "step", "spent", "over"),
    [
        (RunConfig(num_steps=10), 9, Spent(10**9, 1e9), False),
        (RunConfig(num_steps=10), 10, Spent(0, 0.0), True),
        (RunConfig(num_steps=10, max_tokens=100), 3, Spent(99, 0.0), False),
        (RunConfig(num_steps=10, max_tokens=100), 3, Spent(100, 0.0), True),
        (RunConfig(num_steps=10, max_seconds=2.5), 3, Spent(0, 2.4), False),
        (RunConfig(num_steps=10, max_seconds=2.5), 3, Spent(0, 2.5), True),
    ],
)
def test_a_run_is_over_at_its_last_step_or_at_a_limit(run: RunConfig, step: int, spent: Spent, over: bool) -> None:
    assert is_over(run, step, spent, has_new_members=False) is over


def test_a_limit_waits_for_a_step_without_a_birth() -> None:
    run = RunConfig(num_steps=10, max_tokens=100)
    assert not is_over(run, 4, Spent(200, 0.0), state(4, born_step=4).has_new_members)
    assert is_over(run, 5, Spent(300, 0.0), state(5, born_step=4).has_new_members)


def test_a_run_with_a_limit_of_tokens_ends_evaluated_at_the_first_step_that_reaches_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    start(load_config(QUICK, ["run.max_tokens=1", *SHORT]), folder)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 1
        assert {row["step"] for row in read.evaluations(journal)} == {0, 1}
        counted = journal.query(
            "SELECT (SELECT sum(num_tokens) FROM candidate) + coalesce((SELECT sum(num_tokens) FROM attempt), 0) AS n"
        )[0]["n"]
        assert read.tokens_sampled(journal) == counted > 1
        assert read.step_seconds(journal) > 0
    resume(folder)
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 1


def test_where_every_step_has_births_the_step_behind_the_limit_has_none_and_is_the_last(tmp_path: Path) -> None:
    options = ("evolve.every_steps=1", "run.max_tokens=1", "run.checkpoint_every_steps=1", *SHORT)
    folder = play(options, tmp_path / "run")
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 2
        assert {row["step"] for row, _ in read.births(journal)} == {1}
        assert {row["step"] for row in read.evaluations(journal)} == {0, 2}
    check_it_goes_on_as_if_never_cut(folder, tmp_path / "again", step=1)


def test_tokens_of_tasks_from_a_file_count_in_a_run_as_in_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Spent] = []

    def watched(run: RunConfig, step: int, spent: Spent, has_new_members: bool) -> bool:
        counted.append(spent)
        return is_over(run, step, spent, has_new_members)

    monkeypatch.setattr("redqueen.run.lifecycle.is_over", watched)
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(f'{{"question": "What is {n} plus {n}?", "answer": "{2 * n}"}}\n' for n in range(1, 9)))
    domains = f'propose.domains={{code = 0.5, "file:{mine}" = 0.5}}'
    folder = play((domains, "run.max_tokens=1", *SHORT), tmp_path / "run")
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.metric_series(journal)["solve/anchor_tokens"][0][1]
        assert spent_so_far(journal).tokens == counted[-1].tokens


def test_a_run_that_reaches_its_limit_in_a_step_that_could_distil_nothing_ends(tmp_path: Path) -> None:
    # With one token an answer, none is right: neither students nor a product can be distilled.
    options = ("solve.max_new_tokens=1", "distill.every_steps=1", "distill.warmup_updates=0", "run.max_tokens=1")
    folder = play((*options, "run.product=distilled", "evaluate.control=false"), tmp_path / "run")
    with Journal.open(folder / JOURNAL, read_only=True) as journal:
        assert read.last_step(journal) == 1
        assert read.metric_series(journal)["distill/answers"] == [(1, 0.0)]
