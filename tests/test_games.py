"""What games leave behind: ratings and the latest payoffs."""

from redqueen.records import Match
from redqueen.solve import Game, add_latest_payoffs


def test_only_the_latest_payoffs_are_kept_and_a_teachers_is_the_complement() -> None:
    games = [Game(Match("T1", "S1", 0.5), 3, 0.75, "student"), Game(Match("T1", "S1", 0.5), 0, None, "none")]
    latest = add_latest_payoffs({"S1": (0.1, 0.2), "S9": (0.5,)}, ["T1", "S1"], games, 2)
    assert latest == {"T1": (0.25,), "S1": (0.2, 0.75)}
