"""What is measured of a run, against numbers computed by hand, and once on a real run."""

from math import comb, sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.config import MatchConfig
from redqueen.experiment.measures import (
    COLUMNS,
    FROM_METRICS,
    detrended_variance,
    distinct_so_far,
    fitness_numbers,
    measure_run,
    nearest_distances,
    new_fracs,
    oscillation,
    payoff_variance,
    preference_curve,
    rarefied,
    semantic_curves,
    structure_curves,
    task_rates,
)
from redqueen.experiment.program_traces import Trace
from redqueen.journal import Journal
from redqueen.match.pairing import preference
from redqueen.nouns import Rating
from redqueen.run.store import JOURNAL

KEYS = [["a", "b", "a"], [], ["b", "c"], ["a"]]


def test_coverage_counts_what_is_different_so_far() -> None:
    assert distinct_so_far(KEYS) == [2, 2, 3, 3]


def test_new_is_what_stood_nowhere_before() -> None:
    assert new_fracs(KEYS) == [pytest.approx(2 / 3), None, 0.5, 0.0]


def test_novelty_is_the_distance_to_the_nearest_earlier_task() -> None:
    sets = [[frozenset("ab"), frozenset("c")], [frozenset("abc"), frozenset("d"), frozenset()], [frozenset("d")]]
    first, second, third = nearest_distances(sets)
    assert first == []
    # {a,b,c}: 2 of 3 in common with {a,b}. {d}: nothing in common with anything. {}: the same.
    assert second == pytest.approx([1 / 3, 1.0, 1.0])
    assert third == [0.0]
    assert nearest_distances([[frozenset()], [frozenset()]]) == [[], [0.0]]


def test_semantic_curves_tell_doing_from_writing() -> None:
    add, more = Trace(("add int",), ("int -> int larger",)), Trace(("add int", "if bool"), ("int -> int larger",))
    curves = semantic_curves([1, 2, 3], [(1, add), (1, add), (3, add), (3, more)])
    assert curves["semantic/coverage"] == [(1, 1), (2, 1), (3, 2)]
    assert curves["semantic/operations"] == [(1, 1), (2, 1), (3, 2)]
    assert curves["semantic/io_classes"] == [(1, 1), (2, 1), (3, 1)]
    assert curves["semantic/new_frac"] == [(1, 0.5), (2, None), (3, 0.5)]
    # {add, io} and {add, if, io} have two of three in common.
    assert curves["semantic/novelty"] == [(1, None), (2, None), (3, pytest.approx((0 + 1 / 3) / 2))]


def test_structure_curves_are_means_over_a_steps_tasks() -> None:
    columns = dict.fromkeys(COLUMNS.values(), 2.0)
    tasks = [
        {"step": 1, **columns, "behaviour": "x", "code": "def f(a): return a"},
        {"step": 1, **columns, "ast_depth": 5, "behaviour": "y", "code": "def f(b): return b"},
        {"step": 2, **columns, "ast_depth": None, "behaviour": "x", "code": "def f(b): return 1"},
    ]
    curves = structure_curves([1, 2], tasks)
    assert curves["curriculum/ast_depth"] == [(1, 3.5), (2, None)]
    assert curves["curriculum/lines"] == [(1, 2.0), (2, 2.0)]
    assert curves["curriculum/coverage"] == [(1, 2), (2, 2)]
    assert curves["curriculum/new_program_frac"] == [(1, 0.5), (2, 1.0)]


def test_rarefaction_expects_what_drawing_gives() -> None:
    # Of {a, a, b} two are drawn: a is always among them, b in two of the three draws.
    assert rarefied([2, 1], 3, 2) == pytest.approx(1 + 2 / 3)
    assert rarefied([2, 1], 3, 3) == pytest.approx(2)
    assert rarefied([2, 1], 3, 1) == pytest.approx(1)
    assert rarefied([5, 3, 1], 9, 4) == pytest.approx(sum(1 - comb(9 - n, 4) / comb(9, 4) for n in (5, 3, 1)))
    # Things that occur in 3 and in 1 of three tasks: the first is in every draw of one, the second in a third of them.
    assert rarefied([3, 1], 3, 1) == pytest.approx(1 + 1 / 3)
    with pytest.raises(ValueError, match="cannot draw 4 of 3"):
        rarefied([2, 1], 3, 4)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.data())
def test_rarefaction_lies_between_one_and_all(counts: list[int], data: st.DataObject) -> None:
    drawn = data.draw(st.integers(1, sum(counts)))
    assert 1 - 1e-9 <= rarefied(counts, sum(counts), drawn) <= min(drawn, len(counts)) + 1e-9


def test_a_straight_climb_does_not_oscillate() -> None:
    assert detrended_variance([0.1, 0.2, 0.3, 0.4]) == pytest.approx(0, abs=1e-12)
    # About the line 0.5 the values 1, 0, 0, 1 are off by half each: 4 * 0.25 / (4 - 2).
    assert detrended_variance([1, 0, 0, 1]) == pytest.approx(0.5)


def test_oscillation_is_freed_from_the_chance_of_few_tasks() -> None:
    rate = [(1, 1.0), (2, 0.0), (3, None), (4, 0.0), (5, 1.0)]
    # Each step's rate is a mean of two tasks with rates that vary by 0.02: 0.01 of the 0.5 is chance.
    tasks = {step: [0.1, 0.3] for step in (1, 2, 4, 5)}
    found = oscillation(rate, tasks)
    assert found["solve/oscillation"] == pytest.approx(sqrt(0.5))
    assert found["solve/oscillation_beyond_chance"] == pytest.approx(sqrt(0.5 - 0.01))
    assert oscillation(rate, {1: [0.0, 1.0]})["solve/oscillation_beyond_chance"] == pytest.approx(sqrt(0.5 - 0.25))
    assert oscillation(rate[:2], tasks) == {}


def test_task_rates_leave_out_what_nobody_judged() -> None:
    tasks = [
        {"step": 1, "num_attempts": 4, "num_correct": 1},
        {"step": 1, "num_attempts": 0, "num_correct": 0},
        {"step": 2, "num_attempts": 2, "num_correct": 2},
    ]
    assert task_rates(tasks) == {1: [0.25], 2: [1.0]}


def test_payoff_variance_is_what_pairs_differ_by_beyond_their_tasks() -> None:
    ab, cd = ("A", "B"), ("C", "D")
    scores = [(1, ab, 1.0), (1, ab, 0.8), (1, cd, 0.2), (1, cd, 0.0)]
    # About the mean 0.5: pairs at +-0.4. MS between 4 * 0.16 = 0.64, MS within 4 * 0.01 / 2 = 0.02, n0 = 2.
    assert payoff_variance(scores) == pytest.approx((0.64 - 0.02) / 2)
    # A trend that all pairs share is no specialisation.
    trend = [(step, pair, 0.2 * step + noise) for step in (1, 2) for pair in (ab, cd) for noise in (0.0, 0.1)]
    assert payoff_variance(trend) == pytest.approx(-(8 * 0.0025 / 6) / 4)
    assert payoff_variance([(1, ab, 1.0), (2, ab, 0.0)]) is None


def test_preference_at_a_step_is_that_of_the_ratings_before_it_and_of_nobody_who_plays_both_roles() -> None:
    before, after = Rating(25, 1), Rating(40, 1)
    roles = {"T1": "teacher", "S1": "student", "S2": "student", "A1": "both"}
    rows = [
        {"step": step, "individual": name, "mu": rating.mu, "sigma": rating.sigma}
        for step, far in ((0, before), (1, after), (2, before))
        for name, rating in (("T1", before), ("S1", before), ("S2", far), ("A1", before))
    ]
    match = MatchConfig(pfsp_exponent=2)
    curves = preference_curve([1, 2], rows, roles, match)
    assert curves["match/preference"] == [(1, 0.0), (2, preference([before], [before, after], match))]
    assert preference([before], [before, after], match) > 0.1
    assert preference_curve([1, 2], rows, dict.fromkeys(roles, "both"), MatchConfig()) == {}


def evaluated(individual: str, step: int, mode: str, mean: float, stratum: str = "all") -> dict[str, object]:
    return {"individual": individual, "step": step, "mode": mode, "stratum": stratum, "kind": "all", "mean_frac": mean}


def test_external_fitness_is_that_of_the_members_at_the_end() -> None:
    rows = [
        evaluated("base", 0, "greedy", 0.3),
        evaluated("S1", 5, "greedy", 0.9),
        evaluated("S1", 10, "greedy", 0.4),
        evaluated("S2", 10, "greedy", 0.6),
        evaluated("S2", 10, "greedy", 0.0, stratum="everyday"),
        evaluated("students", 10, "greedy", 0.5),
        evaluated("change", 10, "greedy", 0.2),
    ]
    found = fitness_numbers(rows)
    assert found == pytest.approx(
        {
            "fitness/greedy/mean": 0.5,
            "fitness/greedy/worst": 0.4,
            "fitness/greedy/best": 0.6,
            "fitness/greedy/spread": 0.1,
            "fitness/greedy/change": 0.2,
        }
    )
    assert fitness_numbers([]) == {}


def test_the_product_is_measured_against_the_base_that_is_told_to_think() -> None:
    rows = [
        evaluated("base", 0, "greedy", 0.2),
        evaluated("control", 0, "greedy", 0.3),
        evaluated("S1", 10, "greedy", 0.4),
        evaluated("product", 10, "greedy", 0.45),
        evaluated("product", 10, "sampled", 0.35),
    ]
    found = fitness_numbers(rows)
    assert found["fitness/greedy/product"] == 0.45 and found["fitness/sampled/product"] == 0.35
    assert found["fitness/greedy/above_control"] == pytest.approx(0.15)
    assert "fitness/sampled/above_control" not in found
    assert (found["fitness/greedy/mean"], found["fitness/greedy/best"]) == (0.4, 0.4)


def test_a_real_run_has_every_curve_and_the_numbers_of_its_journal(quick_run: Path) -> None:
    found = measure_run(quick_run)
    assert {*FROM_METRICS, *COLUMNS, "semantic/coverage", "semantic/novelty", "match/preference"} <= set(found.curves)
    with Journal.open(quick_run / JOURNAL, read_only=True) as journal:
        tasks = journal.query("SELECT * FROM task")
        kinds = journal.query("SELECT count(DISTINCT behaviour) AS n FROM task")[0]["n"]
    assert found.numbers["steps"] == 4 and found.numbers["tasks"] == len(tasks)
    assert sum(found.behaviours) == found.num_traced == len(tasks) > 0
    assert max(found.operations) <= found.num_traced and len(found.io_classes) > 0
    assert found.numbers["semantic/untraced_frac"] == 0
    assert found.curves["curriculum/coverage"][-1] == (4, kinds)
    assert found.curves["semantic/coverage"][-1] == (4, len(found.behaviours))
    assert found.curves["semantic/operations"][-1] == (4, len(found.operations))
    assert found.numbers["evolve/seconds_per_birth"] > 0
    assert measure_run(quick_run) == found


def test_the_order_of_the_counts_leaves_no_trace_in_what_is_rarefied() -> None:
    counts = [1, 7, 2, 90, 3, 1, 14, 2, 5, 1, 300, 11, 1, 6, 2]
    assert rarefied(counts, 446, 123) == rarefied(sorted(counts), 446, 123) == rarefied(counts[::-1], 446, 123)
