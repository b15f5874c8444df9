"""The expected duration of a run is measured before step 1, and measuring changes nothing."""

import re
from pathlib import Path

import pytest
import torch
from command_line import redqueen

from redqueen.config import RunConfig, load_config
from redqueen.engine import open_engine
from redqueen.run import duration, progress
from redqueen.run.continuation import NOTHING_SPENT, Spent
from redqueen.run.duration import Pace, expected_at, expected_duration, expected_steps
from redqueen.state import initial_state

QUICK = Path(__file__).parents[1] / "quick.toml"


@pytest.fixture(autouse=True)
def every_pace_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "_measured_pace", duration._measured_pace.__wrapped__)  # type: ignore[attr-defined]


def test_measuring_names_steps_and_evaluation_and_leaves_the_adapters_as_they_are() -> None:
    config = load_config(QUICK, ["distill.every_steps=2", "run.product=distilled"])
    with open_engine(config) as engine:
        before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
        told, evaluation_s, end_s = expected_duration(initial_state(config), engine)
        after = engine.store.state_dict()
    assert end_s > evaluation_s > 0.0  # the product is evaluated and, before, chosen
    words = r"expected duration: \d.* at the speed just measured \(4 steps of \d.*, evaluation \d.*\)"
    assert re.fullmatch(words, told), told
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def test_the_expected_duration_counts_what_is_valid_and_solved_and_each_evaluation_once() -> None:
    """4 steps of 10 proposals, and 3 items, each answered twice in an evaluation."""
    pace = Pace(step_s=2.0, step_tokens=0.0, num_valid=0.3, num_solved=0.1, answer_s=1.0, distill_s=10.0)

    def expected(*overrides: str, num_new: int = 0) -> tuple[str, float]:
        config = load_config(QUICK, ["propose.num_proposals={code_o = 5, code_i = 0, code_f = 0}", *overrides])
        state = initial_state(config)
        told, evaluation_s, end_s = expected_at(pace, config, state, NOTHING_SPENT, num_new)
        assert evaluation_s == 3 * 2
        return told.partition("(4 steps of 20 s, ")[2], end_s

    # 6 of 12 archived tasks, with two attempts each, choose the product, which has the student's scores.
    alone = "population.num_students=1"
    assert expected(alone) == ("evaluation 18 s)", 12.0)
    assert expected(alone, num_new=2) == ("evaluation 30 s)", 12.0)
    assert expected(alone, "run.product=none") == ("evaluation 6 s)", 0.0)
    # 7 proposals of each of two kinds, with their attempts, before step 1
    check = "propose.num_check_proposals=7", "propose.num_proposals={code_o = 3, code_i = 2, code_f = 0}"
    assert expected(alone, *check) == ("evaluation 18 s, cold-start check 28 s)", 12.0)
    # Two students twice; they and their mean may be the product.
    assert expected("evaluate.every_steps=2") == ("evaluation 1 min 6 s)", 3 * 12.0 + 6.0)
    # The students are one adapter; 3 of 12 tasks choose between it and the distilled one, and 4 answers are in step 4.
    distilled = "run.product=distilled", "distill.every_steps=2", "learn.train_students=false"
    assert expected(*distilled) == ("distillation 2 min 0 s, evaluation 24 s)", 80.0 + 12.0 + 6.0)


@pytest.mark.parametrize(
    ("limits", "every", "steps"),
    [
        ({}, 2, 400),
        ({"max_seconds": 340.0}, 0, 4),  # 102 s a step
        ({"max_seconds": 340.0}, 3, 4),  # the distillation after step 3 reaches the limit: one more step
        ({"max_seconds": 340.0}, 1, 4),  # 112, 234, 366 s
        ({"max_tokens": 2_500}, 0, 3),  # 1,000 tokens a step
        ({"max_tokens": 2_500, "max_seconds": 150.0}, 0, 2),
        ({"max_tokens": 1_000_000}, 2, 400),
    ],
)
def test_a_limit_of_seconds_or_tokens_shortens_the_expected_run(
    limits: dict[str, float], every: int, steps: int
) -> None:
    run = RunConfig(num_steps=400, **limits)  # type: ignore[arg-type]
    assert expected_steps(run, 102.0, 1_000.0, every, 10.0) == steps


def test_what_a_run_has_spent_counts_to_its_limits() -> None:
    run, spent = RunConfig(num_steps=400, max_tokens=9_500, max_seconds=1_400.0), Spent(7_000, 1_000.0)
    assert expected_steps(run, 102.0, 1_000.0, 0, 10.0, 7, spent) == 10  # tokens
    assert expected_steps(run, 202.0, 1_000.0, 8, 10.0, 7, spent) == 9  # 202 s and 80 s of step 8, then the limit
    assert expected_steps(run, 1.0, 1.0, 0, 0.0, 399, spent) == 400


def test_the_expected_duration_counts_the_distillations_and_evaluations_within_a_limit() -> None:
    limits = ["run.num_steps=400", "run.max_seconds=0.001", "evaluate.every_steps=1"]
    config = load_config(QUICK, ["distill.every_steps=2", "run.product=distilled", *limits])
    with open_engine(config) as engine:
        told = expected_duration(initial_state(config), engine).text
    assert re.fullmatch(r"expected duration: \d.* \(1 step of \d.*, evaluation \d.*\)", told), told


def test_a_fresh_run_grows_its_seed_buffer_and_says_how_long_it_will_take_before_step_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)  # a line for each piece of work, however short
    words = ("run.num_steps=1", "run.product=none", "evaluate.students=false")
    code, _, err = redqueen(
        "train", QUICK, "--run-dir", tmp_path / "run", *(part for w in words for part in ("--set", w))
    )
    assert code == 0
    lines = err.splitlines()
    begins = [
        next(at for at, line in enumerate(lines) if line.startswith(words))
        for words in ("growing the seed buffer", "expected duration: ", "step 1/1")
    ]
    assert begins == sorted(begins)


def test_a_plan_says_how_long_the_run_would_take_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = redqueen("train", QUICK, "--dry-run", "--measure", "--run-dir", tmp_path)  # a price needs no folder
    assert code == 0 and out.splitlines()[-1].startswith("# expected duration: ")
    assert list(tmp_path.iterdir()) == []
