"""The warnings of a run: the present ones, and each with the first and the last generation that gave it."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
class Health:
    """``now``: what is wrong, in plain words, after the check-up of ``last_step``; ``past``: all warnings, dated."""

    now: list[str]
    past: list[Episode]
    num_check_ups: int
    last_step: int


def health_of(view: RunView) -> Health:
    """Return the latest check-up's warnings with the signs of collapse, and the timeline of all warnings."""
    latest = view.health[-1]["warnings"] if view.health else []
    now = [*latest, *(f"{sign[0].upper()}{sign[1:]}." for sign in signs_of_collapse(view))]
    return Health(now, episodes(view), len(view.health), view.health[-1]["step"] if view.health else 0)


def episodes(view: RunView) -> list[Episode]:
    """Return all warnings of the run's check-ups, those that began last first. Warnings that differ in their numbers
    alone are one."""
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
