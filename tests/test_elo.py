"""Another rating system behind the same protocol: Elo, which has no doubt, plays matches and generations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pytest
from scripted import Table, Teacher, config_of, right

from redqueen.loop import play_step
from redqueen.match import Winner
from redqueen.records import Rating
from redqueen.state import initial_state
from redqueen.timing import Clock


@dataclass(frozen=True)
class Elo:
    """Implements ``RatingSystem``: ``mu`` is the Elo number, ``sigma`` is not used."""

    gain: float = 32.0

    def newcomer(self) -> Rating:
        return Rating(1500.0, 0.0)

    def expected_win(self, student: Rating, teacher: Rating) -> float:
        return 1 / (1 + 10 ** ((teacher.mu - student.mu) / 400))

    def update(self, teacher: Rating, student: Rating, winner: Winner) -> tuple[Rating, Rating]:
        score = {"student": 1.0, "draw": 0.5, "teacher": 0.0}[winner]
        change = self.gain * (score - self.expected_win(student, teacher))
        return Rating(teacher.mu - change, 0.0), Rating(student.mu + change, 0.0)

    def fitness(self, rating: Rating) -> float:
        return rating.mu

    def pool(self, ratings: Sequence[Rating]) -> Rating:
        return Rating(fmean(rating.mu for rating in ratings), 0.0)


def test_a_run_of_a_few_steps_is_rated_paired_and_selected_by_elo(table: Table) -> None:
    rules = {"enabled": True, "every_steps": 3, "child_rating": "inherit", "operators": ["copy_parent"]}
    config = config_of(evolve=rules)
    _, engine = table.sit(config, Teacher(), right)
    engine = replace(engine, rating=Elo())
    state = initial_state(config, engine.rating)
    for _ in range(2):
        state, report = play_step(state, engine, Clock())
    assert {i.rating.mu for i in state.teachers} == {1500 - 16 - 32 * (1 - expected_after_one_win())}
    assert sum(i.rating.mu for i in state.individuals) == pytest.approx(4 * 1500)
    before = state.by_id()
    state, report = play_step(state, engine, Clock())
    assert all(game.match.expected_win_frac > 0.55 for game in report.games)
    assert len(report.births) == 2
    for birth in report.births:
        (parent,) = birth.parents
        assert state.by_id()[birth.child].rating == state.by_id()[parent].rating != before[parent].rating


def expected_after_one_win() -> float:
    return 1 / (1 + 10 ** (-32 / 400))
