"""The warnings of a run: the present ones, and all of them with the first and the last generation that had each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redqueen.display import counted
from redqueen.report.series import WINDOW_STEPS
from redqueen.report.story import signs_of_collapse
from redqueen.report.view import RunView

NUMBERS = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Episode:
    """A warning of ``num_check_ups`` generations in a row, with the text of the last."""

    first_step: int
    last_step: int
    num_check_ups: int
    text: str

    @property
    def steps(self) -> str:
        """The steps as text."""
        return f"{self.first_step}" if self.num_check_ups == 1 else f"{self.first_step} to {self.last_step}"


@dataclass(frozen=True)
class Mechanism:
    """A mechanism of the method and whether it ``acted`` in the run, with the ``evidence`` in words."""

    name: str
    acted: bool
    evidence: str


@dataclass(frozen=True)
class Health:
    """``now``: the warnings of ``last_step``; ``past``: all warnings with their steps. ``num_check_ups`` does not count
    the first ten steps."""

    now: list[str]
    past: list[Episode]
    num_check_ups: int
    last_step: int
    mechanisms: list[Mechanism]


def health_of(view: RunView) -> Health:
    """Return the latest generation's warnings with the signs of collapse, and the timeline of all warnings."""
    latest = view.health[-1]["warnings"] if view.health else []
    now = [*latest, *(f"{sign[0].upper()}{sign[1:]}." for sign in signs_of_collapse(view))]
    steps = [row["step"] for row in view.health]
    num = sum(step > WINDOW_STEPS for step in steps)
    return Health(now, episodes(view), num, max(steps, default=0), mechanisms(view) if steps else [])


RATING_SHARE, LEFT_RANK, SPREAD = 0.05, 0.4, 0.05
"""Matchmaking is active from this change of a first draw on, selection up to this mean rank of the replaced members
(0.5: by chance), and diversity from this value on. Ours."""


def mechanisms(view: RunView) -> list[Mechanism]:
    """Return, for each mechanism, whether it was active by its numbers in the journal; without numbers it was off."""
    found = []

    def add(name: str, values: Sequence[float | None], acts: Callable[[float], bool], words: str) -> None:
        known = [value for value in values if value is not None]
        mean = sum(known) / len(known) if known else None
        found.append(Mechanism(name, mean is not None and acts(mean), "off" if mean is None else words.format(mean)))

    add("matchmaking by rating", view.values("match/rating_share"), lambda x: x >= RATING_SHARE, "{:.1%} of draws")
    for role in ("teacher", "student"):
        ranks = view.values(f"evolve/left_rank/{role}")
        add(f"selection of {role}s", ranks, lambda x: x <= LEFT_RANK, "replaced: rank {:.2f} (0 worst, 0.5 chance)")
    for role in ("teacher", "student"):
        for sort, words in (("weight", "{:.2f} of independent weights"), ("behaviour", "disagreement {:.2f}")):
            spread = [row[f"{role}_{sort}_diversity"] for row in view.health]
            add(f"diversity of {role}s, {sort}", spread, lambda x: x >= SPREAD, words)
        add(f"PPO clipping, {role}s", view.values(f"learn/{role}/clip_frac"), lambda x: x > 0, "{:.2%} of tokens")
    distilled = view.values("distill/answers")
    add("distillation", distilled, lambda x: x > 0, "{:,.0f} answers a time, " + counted(len(distilled), "time"))
    return found


def episodes(view: RunView) -> list[Episode]:
    """Return all warnings of the run, the latest start first. Warnings that differ only in their numbers are one."""
    found: list[Episode] = []
    going: dict[str, Episode] = {}
    for row in view.health:
        step, before, going = row["step"], going, {}
        for text in dict.fromkeys(row["warnings"]):
            name = NUMBERS.sub("#", text)
            first, num = step, 1
            if name in before:
                found.remove(before[name])
                first, num = before[name].first_step, before[name].num_check_ups + 1
            going[name] = Episode(first, step, num, text)
            found.append(going[name])
    return sorted(found, key=lambda episode: (-episode.first_step, -episode.last_step))
