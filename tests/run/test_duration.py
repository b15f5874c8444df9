"""The expected duration of a run is measured before step 1, and measuring changes nothing."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from command_line import redqueen

from redqueen.config import RunConfig, load_config
from redqueen.engine import open_engine
from redqueen.run.continuation import Spent
from redqueen.run.dry_run import texts_of_a_step
from redqueen.run.duration import NUM_ROWS, expected_duration, expected_steps
from redqueen.solve import sample_attempts
from redqueen.state import initial_state

QUICK = Path(__file__).parents[1] / "quick.toml"


def test_measuring_names_steps_and_evaluation_and_leaves_the_adapters_as_they_are() -> None:
    config = load_config(QUICK, ["distill.every_steps=2", "run.product=distilled"])
    with open_engine(config) as engine:
        before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
        told, end_s = expected_duration(initial_state(config, engine.rating), engine)
        after = engine.store.state_dict()
    assert end_s > 0.0  # the product is distilled, chosen and evaluated
    assert re.fullmatch(
        r"expected duration: \d+ .*s \(4 steps of \d+ s, distillation \d+ s, evaluation \d+ s\)", told
    ), told
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def test_no_more_answers_are_measured_than_a_step_has(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []

    def counted(pairs: Sequence[object], each: int, *rest: object) -> object:
        numbers.append(len(pairs) * each)
        return sample_attempts(pairs, each, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("redqueen.run.duration.sample_attempts", counted)
    config = load_config(QUICK, [])
    with open_engine(config) as engine:
        expected_duration(initial_state(config, engine.rating), engine)
    assert numbers and max(numbers) <= max(texts_of_a_step(config)) < NUM_ROWS


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
        told = expected_duration(initial_state(config, engine.rating), engine).text
    assert re.fullmatch(r"expected duration: \d+ s.* \(1 step of \d+ s, distillation \d s, evaluation \d+ s\)", told), (
        told
    )


def test_a_plan_says_how_long_the_run_would_take_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = redqueen("train", QUICK, "--dry-run", "--measure")
    assert code == 0 and out.splitlines()[-1].startswith("# expected duration: ")
    assert list(tmp_path.iterdir()) == []
