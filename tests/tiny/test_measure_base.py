"""Measuring the base: the arithmetic by hand, and one small measurement on the shipped model."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from redqueen.domains.code.suite import KINDS
from redqueen.domains.registry import grade
from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import freeze
from redqueen.policy.torch_sampler import TorchSampler
from redqueen.tiny.card import read_training
from redqueen.tiny.corpus import Author
from redqueen.tiny.measure import (
    NUM_ATTEMPTS,
    Bench,
    accuracy,
    answer,
    by_level,
    constructs_of,
    measure_base,
    pass_at,
    task_of,
)
from redqueen.verify import Verifier


def test_accuracy_is_the_mean_over_problems_and_a_problem_without_attempts_is_left_out() -> None:
    attempts = [[(True, False), (False, False)], [(True, True)], [], [(False, False)] * 4]
    result = accuracy(attempts, ["a", "b", "c", "d"])
    assert result is not None and result["mean"] == 0.5
    assert result["low"] <= 0.5 <= result["high"]


def test_where_no_problem_has_an_attempt_there_is_no_accuracy() -> None:
    assert accuracy([[], []], ["0", "1"]) is None


def test_measuring_no_problem_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UserError, match="--problems 0 measures nothing: give 1 or more"):
        measure_base(Path("/nowhere"), 0, lambda line: None)


def test_pass_at_k_is_unbiased_and_averaged_over_problems_worked_by_hand() -> None:
    two_of_eight = [(i < 2, False) for i in range(8)]
    none, all_ = [(False, True)] * 8, [(True, True)] * 8
    # Of eight attempts two are right: 1 - C(6, 4) / C(8, 4) = 1 - 15 / 70 = 11 / 14, and eight hold a right one.
    assert pass_at([two_of_eight]) == {"1": 0.25, "4": 0.7857, "8": 1.0}
    assert pass_at([two_of_eight, none]) == {"1": 0.125, "4": 0.3929, "8": 0.5}
    assert by_level([two_of_eight, none, all_], [1, 3, 3]) == {
        "1": {"1": 0.25, "4": 0.7857, "8": 1.0},
        "3": {"1": 0.5, "4": 0.5, "8": 0.5},
    }


def test_constructs_are_named_by_what_stands_in_the_program() -> None:
    assert constructs_of("def f(x):\n    return x") == set()
    helped = "def g(x):\n    return x\ndef f(xs):\n    for x in xs:\n        x += 1\n    return xs[1:]"
    assert constructs_of(helped) == {
        "for", "augmented assignment", "slice", "helper function",
    }  # fmt: skip
    assert constructs_of("def f(s):\n    return s.upper() if s else [c for c in s]") == {
        "method call", "conditional expression", "list comprehension",
    }  # fmt: skip


def test_a_generated_problem_is_a_task_that_its_own_result_input_and_program_solve() -> None:
    problem = Author(Random(0)).problem(2)
    assert "{'z': 6, 'x': 2}" in [run.result for run in problem.runs]  # a dict whose keys are not in order
    pairs = []
    for kind in KINDS:
        for i in range(len(problem.inputs) if kind != "code_f" else 1):
            turned = replace(problem, inputs=problem.inputs[i:], runs=problem.runs[i:])
            answer = {"code_o": turned.runs[0].result, "code_i": turned.inputs[0], "code_f": problem.code + "\n"}[kind]
            pairs.append((task_of(turned, kind, f"{kind}{i}"), answer))
    with Verifier(workers=1) as verifier:
        assert [grade.correct for grade in grade(pairs, verifier)] == [True] * 21


def test_attempts_are_counted_by_mode_and_a_forced_thought_is_a_thought() -> None:
    model, tokenizer = load_base("embedded")
    bank = AdapterBank(freeze(model, "cpu", "bf16"), 1, rank=1)
    samplers = {
        mode: TorchSampler(bank, 12, [tokenizer.eos_token_id], temperature, pad_id=tokenizer.pad_token_id)
        for mode, temperature in (("sampled", 1.0), ("greedy", 0.0))
    }
    task = task_of(Author(Random(0)).problem(1), "code_o", "one")
    with Verifier(workers=1) as verifier:
        bench = Bench(samplers, tokenizer, verifier)
        assert [len(row) for row in answer(bench, [task], "sampled", forced=False)] == [NUM_ATTEMPTS]
        ((_, thought),) = answer(bench, [task], "greedy", forced=True)[0]
        assert thought


def test_a_folder_that_is_no_finished_training_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder of a training"):
        read_training(tmp_path)
    for name in ("recipe.json", "progress.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match="has not ended"):
        read_training(tmp_path)
    (tmp_path / "base").mkdir()
    assert read_training(tmp_path) == ({}, {})
