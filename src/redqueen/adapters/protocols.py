"""The interfaces of the engine: the store of the members' adapters, the sampler and the learner.

The implementation may be another object, process or machine: arguments and results are records, genotypes and
tensors, never handles. A member is named by its slot. Today all are in one process of torch
(``learn/torch_learner.py``); the protocols are as small as the next owners need:

- shards of the population, each in an actor: every call but ``update`` names the slots it is about and may be repeated
  after a lost answer without harm; factors are pulled by ``genotype``; ``state_dict`` after a step is the backup.
- a sampler in a server of its own: ``publish`` gives each version of an adapter a folder and a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from redqueen.records import Completion, Request, Rollout, Tuning, UpdateStats

if TYPE_CHECKING:
    from torch import Tensor

    from redqueen.adapters.genotype import Genotype


class Sampler(Protocol):
    """Writes continuations of prompts as the members of the population."""

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return ``num_samples`` completions for each request, in the order of the requests.

        A request's samples depend on its own fields and its member's factors, not on the other requests.
        """


class Learner(Protocol):
    """Steps the members of the population on what they wrote."""

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None) -> list[UpdateStats]:
        """Take one optimiser step for every member that has rollouts; one record a member, by ascending slot.

        ``tunings`` say with what, by slot; a member that is not named has the config's.

        A member without rollouts is not stepped; one whose loss or gradient is not finite is left as it was and
        reported with ``ok=False``.
        """


class AdapterStore(Protocol):
    """Owns the factors of all members, and the moments and step counts that the learner keeps of them."""

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""

    def load(self, slot: int, genotype: Genotype) -> None:
        """Put a new member into ``slot``, with no moments.

        Raises UserError when the genotype does not have this population's modules, shapes and rank.
        """

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, with no moments."""

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder, drawn from (``rng_seed``, slot) alone: it acts as the base, and has no moments."""

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count; its factors stay."""

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments as named tensors: what a checkpoint holds of the members.

        They may share the owner's memory: write or copy them before anything else is asked.
        """

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned (the factors alone: no moments).

        Raises UserError when they are of another population, KeyError when there are no factors.
        """
