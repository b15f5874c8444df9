"""Verdicts follow from the numbers: seen, not seen, and undecided where seeds are few or all is noise."""

import pytest

from redqueen.experiment.claims import (
    FITNESS,
    PAIR,
    POPULATION,
    SINGLE,
    Part,
    Verdict,
    above,
    below,
    larger,
    verdicts,
)

HIGH, LOW, MIXED = [0.60, 0.61, 0.62, 0.63, 0.64], [0.40, 0.41, 0.42, 0.43, 0.44], [0.2, 0.9, 0.4, 0.7, 0.5]


def results(single: list[float], population: list[float], measure: str = FITNESS) -> dict[str, dict[str, list[float]]]:
    return {SINGLE: {measure: single}, POPULATION: {measure: population}}


def word(found: list[Verdict], id_: str) -> str:
    return next(verdict.word for verdict in found if verdict.id == id_)


@pytest.mark.parametrize(
    ("single", "population", "expected"),
    [
        (LOW, HIGH, "seen"),
        (HIGH, LOW, "not seen"),
        (MIXED, HIGH, "undecided"),
        (LOW[:3], HIGH[:2], "undecided"),
        (LOW, [], "undecided"),
        # Three against three: the interval is clear, but p cannot fall below 0.1.
        (LOW[:3], HIGH[:3], "undecided"),
        (HIGH[:3], LOW[:3], "not seen"),
        # Runs that do not differ say nothing about others.
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], "undecided"),
        # Three equal signs are no evidence: the arms' ranges are apart, the interval is not.
        ([0.60, 0.61, 0.62], [0.40, 0.50, 0.59], "undecided"),
    ],
)
def test_one_arm_above_another(single: list[float], population: list[float], expected: str) -> None:
    part = larger(results(single, population), POPULATION, SINGLE, FITNESS)
    assert part.word == expected
    assert word(verdicts(results(single, population)), "5") == expected


def test_a_part_shows_its_numbers_and_what_is_missing() -> None:
    part = larger(results(LOW, HIGH), POPULATION, SINGLE, FITNESS)
    assert part.figure.startswith("0.200 [0.1") and part.figure.endswith("p = 0.008 (least 0.008)")
    few = larger(results(LOW, HIGH[:2]), POPULATION, SINGLE, FITNESS)
    assert few.figure.endswith("4T+4S has 2 of the 3 runs needed")
    assert larger({}, POPULATION, SINGLE, FITNESS).figure.startswith("4T+4S has 0 of the 3 runs needed, single has 0")


def test_a_margin_lets_a_small_effect_count_as_none() -> None:
    slightly = [0.421, 0.431, 0.441, 0.411, 0.401]
    assert larger(results(LOW, slightly), POPULATION, SINGLE, FITNESS).word == "undecided"
    assert larger(results(LOW, slightly), POPULATION, SINGLE, FITNESS, margin=0.1).word == "not seen"


def test_three_runs_on_one_side_of_a_bound_do_not_decide() -> None:
    near = results([0.1, 0.2, 0.9], [-0.1, -0.2, -0.9])
    for part in (above(near, SINGLE, FITNESS, 0.0), above(near, POPULATION, FITNESS, 0.0)):
        assert part.word == "undecided"


def test_runs_that_do_not_differ_leave_a_bound_undecided() -> None:
    part = above(results([1.0, 1.0, 1.0], []), SINGLE, FITNESS, 0.5)
    assert (part.word, part.figure.split(";")[0]) == ("undecided", "1") and "do not differ" in part.figure


@pytest.mark.parametrize("measure", ["semantic/operations_rarefied", "semantic/new_frac/end", "curriculum/lines/end"])
def test_where_no_program_was_traced_nothing_is_said_of_programs(measure: str) -> None:
    none = {measure: [0.0] * 5, "semantic/rarefied_to": [0.0] * 5, "semantic/untraced_frac": [1.0] * 5}
    given = {POPULATION: none | {FITNESS: HIGH}, SINGLE: none | {FITNESS: LOW}, PAIR: none | {FITNESS: LOW}}
    for part in (larger(given, POPULATION, SINGLE, measure), below(given, SINGLE, measure, 0.1)):
        assert part.word == "undecided" and part.figure.startswith("no program was traced")
    assert word(verdicts(given), "a") == "undecided"
    assert word(verdicts(given), "1") == "undecided"
    assert word(verdicts(given), "5") == "seen"


def test_a_measure_that_an_untraced_run_lacks_is_not_said_to_lack_runs() -> None:
    part = above({POPULATION: {"steps": [16.0] * 5}}, POPULATION, "curriculum/lines/change", 0.0)
    assert part.figure == "no program was traced of 4T+4S"


def test_one_arm_against_a_bound() -> None:
    given = results(LOW, HIGH)
    assert above(given, POPULATION, FITNESS, 0.5).word == "seen"
    assert above(given, SINGLE, FITNESS, 0.5).word == "not seen"
    assert above(given, SINGLE, FITNESS, 0.42).word == "undecided"
    assert below(given, SINGLE, FITNESS, 0.5).word == "seen"
    assert below(given, POPULATION, FITNESS, 0.5).word == "not seen"
    assert below(results(LOW[:2], HIGH), SINGLE, FITNESS, 0.5).word == "undecided"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["seen", "seen"], "seen"),
        (["seen", "undecided"], "undecided"),
        (["seen", "undecided", "not seen"], "not seen"),
        ([], "undecided"),
    ],
)
def test_a_claim_falls_with_one_part_and_needs_all(words: list[str], expected: str) -> None:
    assert Verdict("1", "", tuple(Part("", word, "") for word in words)).word == expected  # type: ignore[arg-type]


def test_without_any_run_every_claim_is_undecided_and_says_why() -> None:
    found = verdicts({})
    assert [verdict.id for verdict in found] == [*"12345678", "R", *"abcdef"]
    assert {verdict.word for verdict in found} == {"undecided"}
    assert all(part.figure for verdict in found for part in verdict.parts)


def test_the_collapse_of_the_single_agent_is_seen_where_it_is() -> None:
    collapsed = {
        "solve/rate/change": [0.4, 0.5, 0.6, 0.5, 0.4],
        "solve/rate/end": [0.95, 0.97, 0.96, 0.98, 0.96],
        "solve/oscillation_beyond_chance": [0.01, 0.02, 0.01, 0.02, 0.01],
        "propose/entropy/left_frac": [0.02, 0.03, 0.05, 0.02, 0.01],
    }
    alive = {
        "solve/rate/end": [0.5, 0.6, 0.5, 0.6, 0.5],
        "solve/oscillation_beyond_chance": [0.1, 0.12, 0.09, 0.1, 0.11],
        "propose/entropy/left_frac": [0.7, 0.8, 0.6, 0.7, 0.9],
    }
    seen = verdicts({SINGLE: collapsed, POPULATION: alive})
    assert (word(seen, "2"), word(seen, "4")) == ("seen", "seen")
    other_way = verdicts(
        {SINGLE: collapsed | {"propose/entropy/left_frac": [0.9, 0.8, 0.9, 0.9, 0.95]}, POPULATION: alive}
    )
    assert word(other_way, "4") == "not seen"


def structure(single_change: list[float], population_change: list[float]) -> dict[str, dict[str, list[float]]]:
    names = [f"curriculum/{n}" for n in ("ast_depth", "cyclomatic", "lines", "variables")]
    single = {f"{name}/change": single_change for name in names} | {f"{name}/end": [10.0] * 5 for name in names}
    return {SINGLE: single, POPULATION: {f"{name}/change": population_change for name in names}}


def test_a_stall_is_growth_below_a_twentieth() -> None:
    rising = [3.0, 3.1, 3.2, 2.9, 3.0]
    assert word(verdicts(structure([0.1, 0.2, 0.3, 0.2, 0.1], rising)), "1") == "seen"
    assert word(verdicts(structure([1.0, 1.2, 0.9, 1.1, 1.0], rising)), "1") == "not seen"
    assert word(verdicts(structure([-2.0, -1.0, -2.0, -1.0, -2.0], [0.1, -0.2, 0.1, -0.1, 0.1])), "1") == "undecided"


def test_the_cost_is_a_ratio_against_the_papers() -> None:
    def cost(population: list[float]) -> str:
        return word(verdicts(results([2.0, 2.0, 2.0], population, "seconds_per_step")), "7")

    assert cost([2.6, 2.7, 2.6]) == "seen"
    assert cost([5.0, 6.0, 5.0]) == "not seen"
    assert cost([2.0, 4.0, 3.0]) == "undecided"
    assert cost([2.6, 2.7]) == "undecided"


def test_the_spread_over_seeds_is_set_against_that_over_members() -> None:
    given = {POPULATION: {FITNESS: [0.4, 0.5, 0.6], "fitness/greedy/spread": [0.01, 0.02, 0.03]}}
    assert word(verdicts(given), "f") == "seen"
    given[POPULATION]["fitness/greedy/spread"] = [0.2, 0.3, 0.25]
    assert word(verdicts(given), "f") == "not seen"


def test_one_scored_member_has_no_spread_to_set_against_that_over_seeds() -> None:
    given = {POPULATION: {FITNESS: [0.4, 0.5, 0.6], "fitness/greedy/spread": [0.0, 0.0, 0.0]}}
    part = next(verdict for verdict in verdicts(given) if verdict.id == "f").parts[0]
    assert part.word == "undecided" and "two members" in part.figure


def test_the_pair_must_be_beaten_in_fitness_and_in_kinds() -> None:
    given = {arm: {FITNESS: v, "semantic/operations_rarefied": v} for arm, v in ((PAIR, LOW), (POPULATION, HIGH))}
    assert word(verdicts(given), "a") == "seen"
    given[PAIR]["semantic/operations_rarefied"] = [9.0, 9.5, 9.1, 9.2, 9.3]
    assert word(verdicts(given), "a") == "not seen"
