"""The interfaces of the engine: the store of the members' adapters, the sampler and the learner.

An implementation may be in another process or on another machine: arguments and results are records, genotypes and
tensors, never handles. A member is named by its slot. By default all are in one process (``learn/torch_learner.py``).
``cluster/`` implements them over shards of the population, ``remote/`` the sampler by servers.
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
    """Trains the members of the population on completions."""

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None) -> list[UpdateStats]:
        """Take one optimiser step for every member that has rollouts; return one record per member, by ascending slot.

        ``tunings`` give the settings of a step by slot; other members use the config's. A member without rollouts is
        not stepped; one whose loss or gradient is not finite is not changed and is reported with ``ok=False``.
        """


class AdapterStore(Protocol):
    """Owns the factors of all members, and their optimiser moments and step counts."""

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""

    def load(self, slot: int, genotype: Genotype) -> None:
        """Put a new member into ``slot``, without moments.

        Raises UserError when the genotype does not have this population's modules, shapes and rank.
        """

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, without moments."""

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder, determined by (``rng_seed``, slot): it equals the base and has no moments."""

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count; its factors stay."""

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments as named tensors, for a checkpoint.

        They may share the owner's memory: write or copy them before the next call.
        """

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned; tensors of factors alone restore members without moments.

        Raises UserError when they belong to another population, KeyError when factors are missing.
        """
