"""Who descends from whom, on a family small enough to draw."""

import pytest

from redqueen.nouns import Birth
from redqueen.report.lineage import ancestors, founder_shares, generations, operator_records, tree_lines

# Founders S0..S3. Step 10: S0 leaves, S0.10 = M1(S3). Step 20: S1 leaves, S1.20 = X3(S0.10, S2).
# Step 30: S0.10 leaves, S0.30 = M1(S1.20). Living: S0.30, S1.20, S2, S3.
FAMILY = [
    Birth(10, "S0.10", "S0", ("S3",), "M1", relative_change=0.2),
    Birth(20, "S1.20", "S1", ("S0.10", "S2"), "X3", relative_change=0.5),
    Birth(30, "S0.30", "S0.10", ("S1.20",), "M1", relative_change=0.4),
]
LIVING = ["S0.30", "S1.20", "S2", "S3"]


def test_ancestors_go_back_to_every_founder() -> None:
    assert ancestors(FAMILY, "S0.30") == {"S1.20", "S0.10", "S2", "S3"}
    assert ancestors(FAMILY, "S2") == set()


def test_the_generation_counts_births_along_the_longest_line() -> None:
    assert generations(FAMILY) == {"S0.10": 1, "S1.20": 2, "S0.30": 3}


def test_a_restarted_place_begins_anew() -> None:
    restart = Birth(40, "S2.40", "S2", (), "founder")
    assert generations([*FAMILY, restart])["S2.40"] == 0
    assert founder_shares([*FAMILY, restart], ["S2.40"]) == {"S2.40": 1.0}


def test_founders_shares_add_up_and_two_parents_count_half_each() -> None:
    shares = founder_shares(FAMILY, LIVING)
    # S0.30 and S1.20 are half S3 and half S2; S2 and S3 are themselves.
    assert shares == pytest.approx({"S3": 0.5, "S2": 0.5})


def test_an_operator_is_judged_by_the_children_that_last() -> None:
    records = operator_records(FAMILY, LIVING)
    assert (records["M1"].num_births, records["M1"].num_lasting) == (2, 2)
    assert records["M1"].mean_relative_change == pytest.approx(0.3)
    assert operator_records(FAMILY, ["S2", "S3"])["M1"].num_lasting == 0


def test_the_tree_shows_each_child_under_its_first_parent_and_marks_the_living() -> None:
    assert tree_lines(FAMILY, ["S0", "S1", "S2", "S3"], LIVING) == [
        "S0",
        "S1",
        "S2 *",
        "S3 *",
        "  S0.10  step 10, M1, changed 20%",
        "    S1.20 *  step 20, X3 with S2, changed 50%",
        "      S0.30 *  step 30, M1, changed 40%",
    ]
