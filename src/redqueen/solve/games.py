"""How the matches of a step ended, and what the games do to the ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from redqueen.match.rating import RatingSystem, Winner, decide
from redqueen.nouns import Individual, Match, Rejection, Task
from redqueen.solve.solving import Answered


@dataclass(frozen=True)
class Game:
    """How a match ended. ``solve_frac`` is None when the teacher made no valid task; ``winner`` "none": no game."""

    match: Match
    num_tasks: int
    solve_frac: float | None
    winner: Winner | Literal["none"]


def score_games(
    matches: Sequence[Match], judged: Sequence[Task | Rejection], answered: Sequence[Answered]
) -> list[Game]:
    """Say who won each match: the student where it solved a larger share than its rating lets expect."""
    return [_score(match, judged, answered) for match in matches]


def _score(match: Match, judged: Sequence[Task | Rejection], answered: Sequence[Answered]) -> Game:
    """What the infrastructure lost does not count: a match of which nothing else is left is no game.

    Nor is it a game when a single agent solves its own tasks.
    """
    tasks = [v for v in judged if isinstance(v, Task) and v.teacher == match.teacher]
    rejections = [v for v in judged if isinstance(v, Rejection) and v.candidate.teacher == match.teacher]
    own = [a for a in answered if (a.task.teacher, a.student.id) == (match.teacher, match.student)]
    grades = [a.outcomes[i].grade.correct for a in own for i in a.kept]
    solve_frac = sum(grades) / len(grades) if grades else None
    counts = bool(grades) if tasks else any(v.reason != "infra" for v in rejections)
    if not counts or match.teacher == match.student:
        return Game(match, len(tasks), solve_frac, "none")
    return Game(match, len(tasks), solve_frac, decide(solve_frac, match.expected_win_frac))


def rated(
    members: Sequence[Individual], past: Sequence[Individual], games: Sequence[Game], rating: RatingSystem
) -> tuple[Individual, ...]:
    """Return the members with their ratings after the games, in order; those of past members do not move."""
    frozen = {member.id: member.rating for member in past}
    ratings = {member.id: member.rating for member in members} | frozen
    for game in games:
        teacher, student = game.match.teacher, game.match.student
        if game.winner != "none":
            ratings[teacher], ratings[student] = rating.update(ratings[teacher], ratings[student], game.winner)
            ratings |= frozen
    return tuple(replace(member, rating=ratings[member.id]) for member in members)
