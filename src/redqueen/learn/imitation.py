"""Students imitate verified answers of all ages: supervised updates between those of the policy gradient.

A policy gradient takes one step from a step's answers and forgets them. Here one right answer to each task that was
solved is kept as an example, and in every step each student takes ``learn.imitation_updates`` updates on draws from
them: cross-entropy on the answer's tokens, which is the gradient of a completion with advantage 1 at ratio 1. Ground:
self-imitation (Oh et al. 2018) by supervised updates, as in rejection-sampling fine-tuning (Yuan et al. 2023): ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from redqueen.nouns import Completion, Individual, Rollout
from redqueen.solve.solving import Answered


@dataclass(frozen=True)
class Example:
    """A right answer of the student ``by``, as tokens behind the prompt's."""

    by: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Examples:
    """The latest ``capacity`` examples (0: none are kept), in the order in which they were given."""

    capacity: int = 0
    entries: tuple[Example, ...] = ()

    def add(self, answered: Sequence[Answered]) -> Examples:
        """Return the examples with the first right answer of each student to each task of a step."""
        if not self.capacity:
            return self
        new = []
        for one in answered:
            right = [i for i in one.kept if one.outcomes[i].grade.correct]
            if right:
                new.append(Example(one.student.id, one.prompt, one.completions[right[0]].tokens))
        return Examples(self.capacity, (*self.entries, *new)[-self.capacity :])

    def draw(self, students: Sequence[Individual], num: int, rng: np.random.Generator, own: bool) -> list[Rollout]:
        """Draw ``num`` examples for each student (fewer where there are fewer), ``own``: of those that it gave."""
        drawn = []
        for student in students:
            open_to = [one for one in self.entries if one.by == student.id] if own else self.entries
            for i in rng.choice(len(open_to), size=min(num, len(open_to)), replace=False):
                one = open_to[i]
                unknown = (0.0,) * len(one.answer)  # the learner takes its own: see ``old_logprobs``
                drawn.append(Rollout(student.slot, one.prompt, (Completion(one.answer, unknown, 0.0, True),), (1.0,)))
        return drawn
