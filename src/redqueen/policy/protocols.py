"""The two seams of the engine: whatever samples text and whatever learns from it stands behind these protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from redqueen.nouns import Completion, Request, Rollout, UpdateStats


class Sampler(Protocol):
    """Writes continuations of prompts as the members of the population."""

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return ``num_samples`` completions for each request, in the order of the requests.

        A request's samples depend on its own fields and its member's factors, not on what else is asked beside it.
        """
        ...


class Learner(Protocol):
    """Steps the members of the population on what they wrote."""

    def update(self, rollouts: Sequence[Rollout]) -> list[UpdateStats]:
        """Take one optimiser step for every member that has rollouts; one record a member, by ascending slot.

        A member without rollouts is not stepped; one whose loss or gradient is not finite is left as it was and
        reported with ``ok=False``.
        """
        ...

    def reset(self, slot: int) -> None:
        """Forget a member's moments and step count (a newborn's optimiser state)."""
        ...

    def inherit(self, slot: int, parent_slot: int) -> None:
        """Give ``slot`` a copy of another member's moments and step count."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return everything an exact resume needs beside the factors, as named tensors."""
        ...

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned. Raises UserError when it belongs to another population."""
        ...
