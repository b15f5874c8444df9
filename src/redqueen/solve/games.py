"""How the matches of a step ended, and what the games do to the ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from redqueen.domains.registry import domain_of, in_order
from redqueen.match.rating import RatingSystem, Winner, decide
from redqueen.nouns import Individual, Match, Rating, Rejection, Task
from redqueen.solve.solving import Answered


@dataclass(frozen=True)
class Game:
    """How a match ended. ``solve_frac`` is the mean of the tasks' shares of right attempts, each task weighing as much
    however often it was attempted; None when the teacher made no valid task. ``winner`` "none": no game."""

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
    shares = [share for a in own if (share := a.solve_frac) is not None]
    solve_frac = fmean(shares) if shares else None
    counts = bool(shares) if tasks else any(v.reason != "infra" for v in rejections)
    if not counts or match.teacher == match.student:
        return Game(match, len(tasks), solve_frac, "none")
    return Game(match, len(tasks), solve_frac, decide(solve_frac, match.expected_win_frac))


def rated_by_domain(
    members: Sequence[Individual],
    past: Sequence[Individual],
    matches: Sequence[Match],
    judged: Sequence[Task | Rejection],
    answered: Sequence[Answered],
    rating: RatingSystem,
) -> tuple[Individual, ...]:
    """Return the members with their ratings after a game in each domain for each match, in order.

    In a domain the expected win is that of the ratings there. A member's own rating is its domains' pooled.
    """
    domains = {domain_of(kind).name: domain_of(kind) for kind in in_order(map(_kind, judged))}
    for domain, its in domains.items():
        names = {kind.name for kind in its.kinds}
        here = [_in_domain(member, domain, rating) for member in (*members, *past)]
        ratings = {member.id: member.rating for member in here}
        expected = [
            replace(match, expected_win_frac=rating.expected_win(ratings[match.student], ratings[match.teacher]))
            for match in matches
        ]
        games = score_games(
            expected, [v for v in judged if _kind(v) in names], [a for a in answered if a.task.kind in names]
        )
        after = rated(here[: len(members)], here[len(members) :], games, rating)
        members = [_with_domain(old, domain, new.rating, rating) for old, new in zip(members, after, strict=True)]
    return tuple(members)


def _kind(verdict: Task | Rejection) -> str:
    return verdict.kind if isinstance(verdict, Task) else verdict.candidate.kind


def _in_domain(member: Individual, domain: str, rating: RatingSystem) -> Individual:
    return replace(member, rating=dict(member.domain_ratings).get(domain, rating.newcomer()))


def _with_domain(member: Individual, domain: str, new: Rating, rating: RatingSystem) -> Individual:
    ratings = {**dict(member.domain_ratings), domain: new}
    return replace(member, rating=rating.pool(list(ratings.values())), domain_ratings=tuple(sorted(ratings.items())))


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


def add_latest_payoffs(
    latest: Mapping[str, tuple[float, ...]], ids: Iterable[str], games: Sequence[Game], num_kept: int
) -> dict[str, tuple[float, ...]]:
    """Return the last ``num_kept`` payoffs in [0, 1] of each of ``ids``, in order of time.

    A student's payoff is its solve rate in a game, a teacher's the complement.
    """
    result = {}
    for name in ids:
        payoffs = [
            g.solve_frac if name == g.match.student else 1.0 - g.solve_frac
            for g in games
            if g.solve_frac is not None and name in (g.match.teacher, g.match.student)
        ]
        result[name] = (*latest.get(name, ()), *payoffs)[-num_kept:]
    return result
