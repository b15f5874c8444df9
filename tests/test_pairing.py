"""Who meets whom: each rule, unequal numbers, and frozen opponents."""

from collections import Counter

import numpy as np
import pytest

from redqueen.config import MatchConfig
from redqueen.match import STANDARD, pair, preference, with_hall_of_fame
from redqueen.records import Individual, Rating, Role

ALWAYS = MatchConfig(hall_of_fame_frac=1.0)
"""Every match is played against a past member."""


def people(role: Role, mus: list[float], sigma: float = 1.0, prefix: str = "") -> list[Individual]:
    letter = prefix or role[0].upper()
    return [Individual(f"{letter}{i}", role, i, Rating(mu, sigma)) for i, mu in enumerate(mus)]


def by(rule: str) -> MatchConfig:
    return MatchConfig(rule=rule)


@pytest.mark.parametrize("rule", ["pfsp", "uniform"])
def test_four_teachers_meet_four_different_students(rule: str) -> None:
    matches = pair(people("teacher", [25] * 4), people("student", [20, 25, 30, 35]), np.random.default_rng(0), by(rule))
    assert [m.teacher for m in matches] == ["T0", "T1", "T2", "T3"]
    assert {m.student for m in matches} == {"S0", "S1", "S2", "S3"}


@pytest.mark.parametrize("rule", ["pfsp", "uniform"])
def test_with_too_few_students_the_pool_refills_evenly(rule: str) -> None:
    matches = pair(people("teacher", [25] * 5), people("student", [10, 40]), np.random.default_rng(1), by(rule))
    assert sorted(Counter(m.student for m in matches).values()) == [2, 3]


@pytest.mark.parametrize("rule", ["pfsp", "uniform"])
def test_with_too_many_students_some_sit_out(rule: str) -> None:
    matches = pair(people("teacher", [25, 25]), people("student", [25] * 5), np.random.default_rng(2), by(rule))
    assert len(matches) == 2 and len({m.student for m in matches}) == 2


def test_all_pairs_is_every_teacher_against_every_student() -> None:
    matches = pair(people("teacher", [25] * 2), people("student", [25] * 3), np.random.default_rng(0), by("all_pairs"))
    assert [(m.teacher, m.student) for m in matches] == [(f"T{i}", f"S{j}") for i in range(2) for j in range(3)]


def test_a_match_carries_the_students_expected_win() -> None:
    teachers, students = people("teacher", [27]), people("student", [22])
    (match,) = pair(teachers, students, np.random.default_rng(0))
    assert match.expected_win_frac == STANDARD.expected_win(students[0].rating, teachers[0].rating)


def frequency(rule: str, num_draws: int = 4000) -> np.ndarray:
    """How often one teacher at 25 draws each of three students."""
    teachers, students = people("teacher", [25]), people("student", [25, 31, 45])
    rng, config = np.random.default_rng(3), MatchConfig(rule=rule)
    drawn = Counter(pair(teachers, students, rng, config)[0].student for _ in range(num_draws))
    return np.array([drawn[s.id] / num_draws for s in students])


def test_pfsp_draws_in_proportion_to_the_open_outcome() -> None:
    wins = np.array([STANDARD.expected_win(Rating(mu, 1), Rating(25, 1)) for mu in (25, 31, 45)])
    weights = wins * (1 - wins)
    assert frequency("pfsp") == pytest.approx(weights / weights.sum(), abs=0.03)


def test_every_teacher_of_equals_gets_the_open_pairing_as_often() -> None:
    teachers, students = people("teacher", [25, 25]), people("student", [25, 1000])
    rng = np.random.default_rng(3)
    matches = [pair(teachers, students, rng) for _ in range(400)]
    assert sum(first.student == "S0" for first, _ in matches) / 400 == pytest.approx(0.5, abs=0.1)


def test_uniform_does_not_look_at_the_ratings() -> None:
    assert frequency("uniform") == pytest.approx([1 / 3] * 3, abs=0.03)


def test_preference_is_the_share_of_draws_that_look_at_the_ratings() -> None:
    certain = 1.2815515655 * 2**0.5 * STANDARD.beta  # a lead that wins nine games in ten, between known skills
    teacher, equal, better = Rating(25, 0), Rating(25, 0), Rating(25 + certain, 0)
    # Weights 0.25 and 0.09: chances 25/34 and 9/34, each 8/34 from a half.
    assert preference([teacher], [equal, better]) == pytest.approx(8 / 34)
    assert preference([teacher, better], [equal, equal]) == 0
    assert preference([teacher], [equal, Rating(1000, 0)]) == pytest.approx(0.5)


def test_hopeless_pairs_are_still_drawn_without_a_division_by_zero() -> None:
    matches = pair(people("teacher", [0]), people("student", [1e6, 2e6]), np.random.default_rng(0))
    assert len(matches) == 1


def test_the_same_seed_gives_the_same_matches() -> None:
    teachers, students = people("teacher", [20, 25, 30]), people("student", [22, 26, 31])
    first, again = (pair(teachers, students, np.random.default_rng(9)) for _ in range(2))
    assert first == again


def test_a_share_of_the_matches_meets_the_past() -> None:
    teachers, students = people("teacher", [25] * 4), people("student", [25] * 4)
    hall = people("student", [30, 35], prefix="H")
    rng, config = np.random.default_rng(4), MatchConfig(rule="uniform", hall_of_fame_frac=0.25)
    past = 0
    for _ in range(500):
        matches = pair(teachers, students, rng, config)
        matches = with_hall_of_fame(matches, teachers, students, [], hall, rng, config)
        assert [m.teacher for m in matches] == ["T0", "T1", "T2", "T3"]
        past += sum(m.student.startswith("H") for m in matches)
    assert past / 2000 == pytest.approx(0.25, abs=0.04)


def test_the_expected_win_is_that_against_the_past_member() -> None:
    teachers, students = people("teacher", [25]), people("student", [25])
    hall = people("teacher", [35], prefix="H")
    matches = pair(teachers, students, np.random.default_rng(0), by("uniform"))
    (match,) = with_hall_of_fame(matches, teachers, students, hall, [], np.random.default_rng(0), ALWAYS)
    assert match.teacher == "H0"
    assert match.expected_win_frac == STANDARD.expected_win(students[0].rating, hall[0].rating)


def test_without_a_hall_the_matches_stay() -> None:
    teachers, students = people("teacher", [25]), people("student", [25])
    matches = pair(teachers, students, np.random.default_rng(0), by("uniform"))
    assert with_hall_of_fame(matches, teachers, students, [], [], np.random.default_rng(0), ALWAYS) == matches


def test_no_match_stands_there_twice_though_the_past_member_is_drawn_again() -> None:
    teachers, students = people("teacher", [25] * 3), people("student", [25])
    hall = people("teacher", [30], prefix="H")
    matches = pair(teachers, students, np.random.default_rng(0), by("uniform"))
    changed = with_hall_of_fame(matches, teachers, students, hall, [], np.random.default_rng(0), ALWAYS)
    assert [(m.teacher, m.student) for m in changed] == [("H0", "S0"), ("T1", "S0"), ("T2", "S0")]
