"""The expected duration of a run is measured before step 1, and measuring changes nothing."""

import re
from pathlib import Path

import pytest
import torch
from command_line import redqueen

from redqueen.config import load_config
from redqueen.engine import open_engine
from redqueen.run.duration import duration_text
from redqueen.state import initial_state

QUICK = Path(__file__).parents[1] / "quick.toml"


def test_measuring_names_steps_and_evaluation_and_leaves_the_adapters_as_they_are() -> None:
    config = load_config(QUICK, ["distill.every_steps=2", "run.product=distilled"])
    with open_engine(config) as engine:
        before = {name: tensor.clone() for name, tensor in engine.store.state_dict().items()}
        told = duration_text(initial_state(config, engine.rating), engine)
        after = engine.store.state_dict()
    assert re.fullmatch(
        r"expected duration: \d+ .*s \(4 steps of \d+ s, distillation \d+ s, evaluation \d+ s\)", told
    ), told
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def test_a_plan_says_how_long_the_run_would_take_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = redqueen("train", QUICK, "--dry-run", "--measure")
    assert code == 0 and out.splitlines()[-1].startswith("# expected duration: ")
    assert list(tmp_path.iterdir()) == []
