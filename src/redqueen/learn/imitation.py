"""Students imitate verified answers: supervised updates between those of the policy gradient.

A policy gradient takes one step from an answer and forgets it. Here each right answer waits in a pool to be read
``learn.imitation_epochs`` times, in batches drawn at random, as a text would be: cross-entropy on its tokens, which is
the gradient of a completion with advantage 1 at ratio 1. Batches are drawn while more than ``learn.imitation_backlog``
readings are owed, so the readings of an answer are spread over steps and mixed with those of other ones; what is owed
at the end of a run is not read. Ground: self-imitation (Oh et al. 2018) by supervised updates, as in rejection-sampling
fine-tuning (Yuan et al. 2023): ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from redqueen.nouns import Completion, Individual, Rollout
from redqueen.solve.solving import Answered


@dataclass(frozen=True)
class Example:
    """A right answer of the student ``by``, as tokens behind the prompt's, that is to be read ``owed`` times more."""

    by: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    owed: int


@dataclass(frozen=True)
class Examples:
    """The examples that are to be read, in the order in which they were given."""

    entries: tuple[Example, ...] = ()

    @property
    def num_owed(self) -> int:
        """Readings that are still to come."""
        return sum(one.owed for one in self.entries)

    def add(self, answered: Sequence[Answered], epochs: int) -> Examples:
        """Return the examples with the first right answer of each student to each task of a step."""
        new = []
        for one in answered if epochs else ():
            right = [i for i in one.kept if one.outcomes[i].grade.correct]
            if right:
                new.append(Example(one.student.id, one.prompt, one.completions[right[0]].tokens, epochs))
        return Examples((*self.entries, *new))

    def read(self, num: int, rng: np.random.Generator) -> tuple[list[Example], Examples]:
        """Draw ``num`` different examples (fewer where there are fewer), by what is owed; and what is left then."""
        owed = np.array([one.owed for one in self.entries], dtype=float)
        chosen = rng.choice(len(owed), size=min(num, len(owed)), replace=False, p=owed / owed.sum())
        drawn = [self.entries[i] for i in sorted(chosen.tolist())]
        after = [replace(one, owed=one.owed - (i in chosen)) for i, one in enumerate(self.entries)]
        return drawn, Examples(tuple(one for one in after if one.owed))


def imitated(drawn: Sequence[Example], students: Sequence[Individual], own: bool) -> list[Rollout]:
    """Return what each student learns of the examples: all, or those that are its ``own``."""
    return [
        # The learner takes log-probabilities of its own (see ``learn.old_logprobs``), so none are told.
        Rollout(
            student.slot, one.prompt, (Completion(one.answer, (0.0,) * len(one.answer), 0.0, finished=True),), (1.0,)
        )
        for student in students
        for one in drawn
        if one.by == student.id or not own
    ]
