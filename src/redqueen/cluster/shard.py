"""One shard: some members of the population with a base, samplers and a learner of their own, in one process.

Callers name members by their slots in the whole population; inside, slots are numbered from 0. Every call can be
repeated after a lost answer: an update has the number of updates before it, and all other calls are idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from torch import Tensor

from redqueen.adapters.genotype import Genotype
from redqueen.adapters.memory import TextLimits
from redqueen.adapters.protocols import Sampler
from redqueen.config import Config
from redqueen.domains.registry import open_domain
from redqueen.engine import LoadedBase, build_adapters, load_frozen, set_up_torch
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.records import BASE_SLOT, Completion, Request, Rollout, Tuning, UpdateStats
from redqueen.timing import Report, unheard
from redqueen.verifying import open_sandbox
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules
from redqueen_sandbox.sandbox import Sandbox

PROPOSER, SOLVER = "proposer", "solver"

Part = str | tuple[float, int | None, tuple[str, ...] | None]
"""A sampler of a shard: the proposer, the solver, or the arguments of ``Adapters.sampler``."""


@dataclass(frozen=True)
class Backup:
    """The whole state of a shard's members after ``num_updates`` updates, and the answer to the last update."""

    num_updates: int
    tensors: dict[str, Tensor]
    stats: tuple[UpdateStats, ...] = ()


class Shard:
    """The members of ``slots``. Call it from one thread at a time.

    ``loaded``: an already loaded base; ``report`` gets the progress.
    """

    def __init__(
        self, config: Config, slots: Sequence[int], loaded: LoadedBase | None = None, report: Report = unheard
    ) -> None:
        self.config, self.slots = config, tuple(slots)
        set_up_torch(config)
        self.progress = 0
        """Increases while the shard works; another thread may read it."""
        self.verifier: Sandbox | None = None
        self.report = report
        self.adapters = build_adapters(config, loaded or load_frozen(config), self.slots, self._tick)
        self.store = cast(TorchStore, self.adapters.store)
        self.learner = cast(TorchLearner, self.adapters.learner)
        self.local = {slot: i for i, slot in enumerate(self.slots)} | {BASE_SLOT: BASE_SLOT}
        self.num_updates = 0
        self.last_stats: tuple[UpdateStats, ...] = ()

    def limits(self) -> TextLimits:
        """Return the limits of texts, which are the same for all shards."""
        return self.adapters.limits

    def sample(self, part: Part, requests: Sequence[Request]) -> list[list[Completion]]:
        """Sample with the proposer, the solver, or a new sampler."""
        return self._sampler(part).sample([replace(request, slot=self.local[request.slot]) for request in requests])

    def update(
        self, num_updates: int, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None
    ) -> list[UpdateStats]:
        """Take the update after the first ``num_updates``; if it was already taken, return the same answer again.

        Raises ValueError for any other number: the shard and the caller disagree about its state.
        """
        if num_updates == self.num_updates - 1:
            return list(self.last_stats)
        if num_updates != self.num_updates:
            raise ValueError(f"update {num_updates + 1} was requested from a shard that has taken {self.num_updates}")
        own = {self.local[slot]: tuning for slot, tuning in (tunings or {}).items()}
        stats = self.learner.update([replace(rollout, slot=self.local[rollout.slot]) for rollout in rollouts], own)
        self.last_stats = tuple(replace(one, slot=self.slots[one.slot]) for one in stats)
        self.num_updates += 1
        return list(self.last_stats)

    def judge(self, work: Sequence[Callable[[Rules], Jobs[Any]]]) -> list[Any]:
        """Verify proposals or grade answers of any member. Raises UserError when the shard has no sandbox."""
        if self.verifier is None:
            for name in self.config.propose.domains:
                open_domain(name)
            self.verifier = open_sandbox(self.config, report=self._tick)
        return self.verifier.judge(work)

    def close(self) -> None:
        """End the verifier's processes."""
        if self.verifier is not None:
            self.verifier.close()

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors."""
        return self.store.genotype(self.local[slot])

    def load(self, slot: int, genotype: Genotype) -> None:
        """Put a new member into ``slot``. Raises UserError when it does not fit this population."""
        self.store.load(self.local[slot], genotype)

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder."""
        self.store.reset(self.local[slot], rng_seed)

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count."""
        self.store.forget(self.local[slot])

    def state_dict(self) -> dict[str, Tensor]:
        """Return a copy of all factors and the learner's state, by slots of this shard."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.store.state_dict().items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned."""
        self.store.load_state(tensors)

    def backup(self) -> Backup:
        """Return the whole state."""
        return Backup(self.num_updates, self.state_dict(), self.last_stats)

    def restore(self, backup: Backup) -> None:
        """Restore what ``backup`` returned."""
        self.load_state(backup.tensors)
        self.num_updates, self.last_stats = backup.num_updates, tuple(backup.stats)

    def _sampler(self, part: Part) -> Sampler:
        if isinstance(part, tuple):
            return self.adapters.sampler(*part)
        return self.adapters.proposer if part == PROPOSER else self.adapters.solver

    def _tick(self, done: int, total: int, tokens: int = 0) -> None:
        self.progress += 1
        self.report(done, total, tokens)
