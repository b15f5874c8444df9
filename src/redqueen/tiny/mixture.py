"""Who writes the next samples of a mixed corpus: shares of tokens, kept without chance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from random import Random

from redqueen.domains.compact import MARKS
from redqueen.domains.domain import Lesson
from redqueen.domains.registry import DOMAINS
from redqueen.errors import UserError
from redqueen.tiny.worlds import WORLDS

_MARK = re.compile("|".join(map(re.escape, MARKS)))


class Tally:
    """Counts the tokens of each source, against its share of all."""

    def __init__(self, mixture: Mapping[str, float]) -> None:
        self.mixture = mixture
        self.tokens = dict.fromkeys(mixture, 0)

    def furthest_behind(self) -> str:
        """Return the source with the fewest tokens for its weight; the first one of several."""
        return min(self.mixture, key=lambda name: self.tokens[name] / self.mixture[name])

    def add(self, name: str, tokens: int) -> None:
        """Count tokens that a source wrote."""
        self.tokens[name] += tokens


def check_mixture(mixture: Mapping[str, float], where: str) -> None:
    """Raise UserError when a source is not there or its weight is not above 0; ``where`` names the recipe."""
    if not mixture:
        raise UserError(f"{where}: the mixture is empty; name at least one of {', '.join(_sources())}")
    for name, weight in mixture.items():
        if name not in _sources():
            raise UserError(
                f"{where}: the mixture names {name}, which is no world and no domain with lessons; choose from "
                f"{', '.join(_sources())}"
            )
        if not weight > 0:
            raise UserError(f"{where}: the mixture's weight of {name} is {weight}: set it above 0 or leave it out")


def lessons_of(name: str) -> Callable[[Random], list[Lesson]]:
    """Return what writes the lessons of a domain. Raises UserError when there is no such domain."""
    check_mixture({name: 1.0}, "the recipe")
    write = DOMAINS[name].lessons
    assert write is not None
    return write


def words_of(lesson: Lesson) -> Iterable[str]:
    """Return a lesson's text between its marks."""
    texts = [lesson.prompt, *(text for branch in lesson.completions for text, _ in branch)]
    return (part for text in texts for part in _MARK.split(text) if part)


def _sources() -> list[str]:
    return [*WORLDS, *(name for name, domain in DOMAINS.items() if domain.lessons is not None)]
