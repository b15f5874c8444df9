"""The warnings of a run as a timeline: every ailment from the check-up that found it first to the last that did."""

from __future__ import annotations

import re
from dataclasses import dataclass

from redqueen.display import duration
from redqueen.report.story import signs_of_collapse
from redqueen.report.view import RunView

HEAD = ["steps", "check-ups", "played", "what the last of them said"]
MAX_ROWS = 60
NUMBERS = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Episode:
    """A warning that ``num_check_ups`` check-ups in a row gave, in the words of the last.

    ``played_s`` is the wall-clock time that had been played when it began.
    """

    first_step: int
    last_step: int
    num_check_ups: int
    text: str
    played_s: float

    @property
    def steps(self) -> str:
        """The steps in words."""
        return f"{self.first_step}" if self.num_check_ups == 1 else f"{self.first_step} to {self.last_step}"

    @property
    def played(self) -> str:
        """The time played in words."""
        return f"after {duration(self.played_s)}"


@dataclass(frozen=True)
class Health:
    """``now``: what is wrong, in plain words, after the check-up of ``last_step``; ``past``: all warnings, dated."""

    now: list[str]
    past: list[Episode]
    num_check_ups: int
    last_step: int

    @property
    def rows(self) -> list[list[str]]:
        """The timeline as a table: when, how often, after how long, and what was said; the latest ``MAX_ROWS``."""
        return [[one.steps, str(one.num_check_ups), one.played, one.text] for one in self.past[:MAX_ROWS]]


def health_of(view: RunView) -> Health:
    """Return the latest check-up's warnings with the signs of collapse, and the timeline of all warnings."""
    latest = view.health[-1]["warnings"] if view.health else []
    now = [*latest, *(f"{sign[0].upper()}{sign[1:]}." for sign in signs_of_collapse(view))]
    return Health(now, episodes(view), len(view.health), view.health[-1]["step"] if view.health else 0)


def episodes(view: RunView) -> list[Episode]:
    """Return all warnings of the run's check-ups, those that began last first. Warnings that differ in their numbers
    alone are one."""
    spent = _played_s(view)
    found: list[Episode] = []
    going: dict[str, Episode] = {}
    for row in view.health:
        step, before, now = row["step"], going, {}
        for text in dict.fromkeys(row["warnings"]):
            ailment = NUMBERS.sub("#", text)
            first, num = step, 1
            if ailment in before:
                found.remove(before[ailment])
                first, num = before[ailment].first_step, before[ailment].num_check_ups + 1
            now[ailment] = Episode(first, step, num, text, spent.get(first, 0.0))
            found.append(now[ailment])
        going = now
    return sorted(found, key=lambda episode: (-episode.first_step, -episode.last_step))


def _played_s(view: RunView) -> dict[int, float]:
    """Return the wall-clock seconds that all steps up to each one took."""
    of_step = dict.fromkeys(view.steps, 0.0)
    for series in view.timings.values():
        for step, seconds in series:
            of_step[step] = of_step.get(step, 0.0) + (seconds or 0.0)
    total, spent = 0.0, {}
    for step in sorted(of_step):
        total += of_step[step]
        spent[step] = total
    return spent
