"""The paper's claims, judged from the committed table."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "paper_claims" / "claims.py"))


@pytest.mark.parametrize("claim", SCRIPT["CLAIMS"])
def test_three_seeds_leave_each_claim_undecided(claim: str) -> None:
    assert SCRIPT["verdict"](claim) == "undecided"


@pytest.mark.parametrize(
    ("about", "word"),
    [
        (("single", "curriculum/cyclomatic/change", "stalls"), "supported"),  # -0.198 (-0.299 to -0.097), below 0.054
        (("4T+4S", "propose/entropy/left_frac", 0.1), "supported"),
        (("single", "solve/rate/end", 0.9), "undecided"),
        (("4T+4S", "semantic/io_classes_rarefied", "single"), "undecided"),  # p is 0.1
        (("single", "semantic/operations_rarefied", 40.0), "contradicted"),  # 27, 28 and 29
    ],
)
def test_a_statement_follows_from_its_interval(about: tuple[str, str, str | float], word: str) -> None:
    assert SCRIPT["judge"](*about).word == word
