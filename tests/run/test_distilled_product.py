"""A run whose product is distilled: who learns what, what is kept of it, and that cutting it changes nothing."""

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from cut_run import check_same_end, checkpoint, cut_after, play
from transformers import AutoTokenizer

from redqueen.adapters.base_shape import model_source
from redqueen.adapters.peft import read_adapter
from redqueen.commands.evaluate import evaluate
from redqueen.commands.export import export_member
from redqueen.config import Config, load_config
from redqueen.domains.prompt_format import choose_format
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.schema import DISTILLED, SHARE
from redqueen.learn.distillation import examples_of
from redqueen.learn.torch_learner import FACTORS, TorchLearner
from redqueen.propose.buffer import task_key
from redqueen.records import Individual, Rollout, Tuning, UpdateStats
from redqueen.report.summary import summary
from redqueen.report.view import read_run
from redqueen.run import lifecycle
from redqueen.run.lifecycle import resume
from redqueen.run.product import probe_tasks
from redqueen.run.store import JOURNAL
from redqueen.state import state_from_plain

QUICK = Path(__file__).parents[1] / "quick.toml"
OPTIONS = (
    "run.product=distilled",
    "run.product_tasks=6",
    "distill.batch_size=2",
    "distill.learning_rate=1e-2",
    "evaluate.control=false",
)
SLOT = 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(OPTIONS, tmp_path_factory.mktemp("distilled") / "run")


def test_the_distilled_adapter_is_a_candidate_beside_the_students_and_their_mean(run: Path) -> None:
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        metrics = read.metric_series(journal)
    shares = {name.removeprefix(SHARE) for name in metrics if name.startswith(SHARE)}
    assert len(shares) == 4 and {DISTILLED, "merged"} < shares
    [(step, answers)] = metrics["distill/answers"]
    assert step == 4 and answers and answers > 0
    assert metrics["distill/last_nats"][0][1] < metrics["distill/first_nats"][0][1]


def test_the_archive_holds_an_answer_of_each_solved_task_and_the_product_leaves_its_probe_out(run: Path) -> None:
    config, state = load_config(QUICK, OPTIONS), state_from_plain(checkpoint(run, 4).state["state"])
    held_out = {task_key(task) for task in probe_tasks(config, state)}
    with Journal.open(run / JOURNAL, read_only=True) as journal:
        solved = journal.tuples("SELECT DISTINCT kind, code, inputs FROM task WHERE num_correct > 0")
        texts = {text for (text,) in journal.tuples("SELECT text FROM attempt WHERE correct = 1")}
        [(_, num_answers)] = read.metric_series(journal)["distill/answers"]
    assert held_out and len(state.answers.by_task) == len(solved)
    assert {answer.text for answer in state.answers.by_task.values()} <= texts
    assert num_answers == len(state.answers.by_task.keys() - held_out) < len(solved)


def test_an_answer_is_learned_behind_its_own_prompt_with_its_end(run: Path) -> None:
    config, state = load_config(QUICK, OPTIONS), state_from_plain(checkpoint(run, 4).state["state"])
    words, tokenizer = choose_format(config), AutoTokenizer.from_pretrained(model_source(config.model.base))
    answers = list(state.answers.by_task.values())
    for answer, example in zip(answers, examples_of(answers, words, tokenizer), strict=True):
        assert example.prompt == tuple(words.encode(tokenizer, words.solve(answer.task)))
        assert example.answer[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(example.answer[:-1], skip_special_tokens=False) == answer.text


def test_it_stands_in_the_checkpoint_and_is_exported_and_evaluated_by_its_name(run: Path, tmp_path: Path) -> None:
    before, after = (checkpoint(run, step).tensors[FACTORS][SLOT] for step in (2, 4))
    assert not torch.equal(before, after)
    folder = export_member(run, DISTILLED, tmp_path / "out")
    assert any(b.abs().max() > 0 for _, b in read_adapter(folder).genotype.factors.values())
    assert "distilled from the right answers of S" in (folder / "README.md").read_text()
    found = evaluate(str(run), "mini", limit=4, out=tmp_path / "answers.jsonl")
    assert DISTILLED in [one["name"] for one in found["members"]]


def test_before_the_end_there_is_nothing_to_export(run: Path, tmp_path: Path) -> None:
    early = shutil.copytree(run, tmp_path / "early")
    with Journal.open(early / JOURNAL) as journal:
        journal.truncate_after(2)
    with pytest.raises(UserError, match="distilled is not a present member of"):
        export_member(early, DISTILLED, tmp_path / "out")


def test_the_members_play_as_they_would_without_it(run: Path, quick_run: Path) -> None:
    for name in ("candidate", "attempt", "rating", "birth"):
        rows = []
        for folder in (run, quick_run):
            with Journal.open(folder / JOURNAL, read_only=True) as journal:
                rows.append(journal.query(f"SELECT * FROM {name}"))
        assert rows[0] == rows[1]


def test_a_cut_and_a_stop_in_the_distillation_are_made_up_for(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    update = TorchLearner.update

    def stopping(
        self: TorchLearner, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None
    ) -> object:
        nonlocal taken
        taken += any(tuning.supervised for tuning in (tunings or {}).values())
        if taken == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, rollouts, tunings)

    cut_after(run, tmp_path / "cut", 2)
    with monkeypatch.context() as patch:
        patch.setattr(TorchLearner, "update", stopping)
        assert not resume(tmp_path / "cut")
    assert taken == 2, "it went on after the stop"
    assert summary(read_run(tmp_path / "cut"))["product"] is None
    assert resume(tmp_path / "cut")
    check_same_end(run, tmp_path / "cut")


def test_a_stop_after_the_distillation_keeps_the_distilled_adapter(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised = []
    update, scored = TorchLearner.update, lifecycle.scored_students

    def noting(
        self: TorchLearner, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None
    ) -> list[UpdateStats]:
        supervised.extend(tuning for tuning in (tunings or {}).values() if tuning.supervised)
        return update(self, rollouts, tunings)

    def stopping(config: Config, students: Sequence[Individual], step: int) -> list[Individual]:
        os.kill(os.getpid(), signal.SIGINT)
        return scored(config, students, step)

    folder = cut_after(run, tmp_path / "cut", 2)
    monkeypatch.setattr(TorchLearner, "update", noting)
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "scored_students", stopping)
        assert not resume(folder)
    assert supervised and summary(read_run(folder))["product"] is None
    supervised.clear()
    assert resume(folder)
    assert not supervised
    check_same_end(run, folder)
