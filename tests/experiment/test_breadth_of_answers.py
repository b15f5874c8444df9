"""Breadth by right answers: the table is that of numbers worked out by hand, and the arms differ in families alone."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "experiments"))

from breadth_of_answers import SETTINGS, measure, report

from redqueen.config import load_config


def test_the_report_pairs_arms_by_seed() -> None:
    found = {"base": [(-1, 0.0)], "1 family": [(0, 0.1), (1, 0.3)], "60 families": [(0, 0.2), (1, 0.5)]}
    lines = [
        {"arm": arm, "seed": seed, "tokens": 7, "held out": [share, share], "seen": [1.0, 0.0]}
        for arm, runs in found.items()
        for seed, share in runs
    ]
    told = report(lines).splitlines()
    # gains over one family: 10 and 20 points; mean 15, standard error 5, t of one degree of freedom 12.706
    assert told[-2] == "| 60 families | 7 | held out | 35.0 | 35.0 (-155.6 to 225.6) | 15.0 (-48.5 to 78.5) |"
    assert told[2] == "| base |  | held out | 0.0 |  |  |"


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
