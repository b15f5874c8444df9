"""Breadth by right answers: the table is that of numbers worked out by hand, and the arms differ in families alone."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from breadth_of_answers import SETTINGS, measure, report

from redqueen.config import load_config


def test_the_report_pairs_items_of_the_same_seed() -> None:
    found = {"base": [(-1, [1, 0])], "1 family": [(0, [1, 0]), (1, [0, 0])], "60 families": [(1, [1, 1])]}
    lines = [
        {"arm": arm, "seed": seed, "tokens": 7, "held out": items, "seen": [0]}
        for arm, runs in found.items()
        for seed, items in runs
    ]
    told = report(lines).splitlines()
    assert told[2] == "| base |  | held out | 50.0 |  |  |"
    assert told[4].startswith("| 1 family | 7 | held out | 25.0 | -25.0 (-50.0 to 0.0) |  |")
    # over the base it gains the second item alone; over one family of the same seed both
    assert told[-2] == "| 60 families | 7 | held out | 100.0 | 50.0 (0.0 to 100.0) | 100.0 (100.0 to 100.0) |"


@pytest.mark.slow
def test_arms_have_as_many_answers_of_as_many_families_as_they_say() -> None:
    pytest.importorskip("reasoning_gym", reason="needs redqueen[gym]")
    config = load_config(
        Path("configs/gym-mix.toml"), [*SETTINGS, "model.base=embedded", "model.prompt_format=compact"]
    )
    lines = list(measure(config, num=20, num_each=3, seeds=[0], known=[{"arm": "20 families", "seed": 0}]))
    assert [(one["arm"], one.get("families"), one.get("answers")) for one in lines] == [
        ("base", None, None), ("1 family", 1, 20), ("4 families", 4, 20), ("60 families", 20, 20),
    ]  # fmt: skip
    assert all(len(one["nats"]) == 2 for one in lines[1:]) and len({len(one["held out"]) for one in lines}) == 1
