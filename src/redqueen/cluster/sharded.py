"""The seams of the engine over a fleet of shards: requests and rollouts go to the shards of their members.

Text, tokens, advantages and statistics travel in every step. Factors travel when a child is bred from them, a member
enters the hall of fame, a checkpoint is written or somebody asks for a member.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from redqueen.cluster.fleet import Call, Fleet
from redqueen.cluster.host import Host
from redqueen.cluster.shard import PROPOSER, SOLVER, About, Member
from redqueen.config import Config
from redqueen.engine import Adapters, load_tokenizer
from redqueen.errors import UserError
from redqueen.files import making_folder
from redqueen.learn.torch_store import FACTORS, MOMENTS
from redqueen.nouns import BASE_SLOT, Completion, Request, Rollout, UpdateStats
from redqueen.population.genotype import Genotype
from redqueen.population.peft import plain_config, write_adapter


class ShardedSampler:
    """Implements ``Sampler``: each request is answered by its member's shard; those to the bare base are shared out."""

    def __init__(self, fleet: Fleet, part: str | float) -> None:
        self.fleet, self.part = fleet, part

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of each request, in the order of the requests."""
        shard_of = self._shards(requests)
        numbers: dict[int, list[int]] = {}
        for i, shard in enumerate(shard_of):
            numbers.setdefault(shard, []).append(i)
        calls: dict[int, Call] = {
            shard: ("sample", self.part, [requests[i] for i in part]) for shard, part in sorted(numbers.items())
        }
        found: list[list[Completion]] = [[] for _ in requests]
        for shard, answers in self.fleet.ask(calls).items():
            for i, answer in zip(numbers[shard], answers, strict=True):
                found[i] = answer
        return found

    def _shards(self, requests: Sequence[Request]) -> list[int]:
        num_shards, to_base = len(self.fleet.places), 0
        total = sum(request.slot == BASE_SLOT for request in requests)
        shards = []
        for request in requests:
            if request.slot == BASE_SLOT:
                shards.append(to_base * num_shards // total)
                to_base += 1
            else:
                shards.append(self.fleet.shard_of[request.slot])
        return shards


class ShardedLearner:
    """Implements ``Learner``."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def update(self, rollouts: Sequence[Rollout]) -> list[UpdateStats]:
        """Take one step for every member with rollouts; one record a member, by ascending slot."""
        return self.fleet.update(rollouts)


class ShardedStore:
    """Implements ``AdapterStore``."""

    def __init__(self, fleet: Fleet, config: Config, about: About) -> None:
        self.about = about
        self.fleet, self.num_slots = fleet, config.num_adapters

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""
        return self._member(slot).genotype

    def load(self, slot: int, genotype: Genotype, moments_from: int | None = None) -> None:
        """Put a new member into ``slot``, with no moments or a copy of those of the member ``moments_from``."""
        moments = {} if moments_from is None else self._member(moments_from).moments
        self.fleet.change(slot, "put", Member(genotype, moments))

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, with no moments."""
        self.fleet.change(into, "put", Member(self.genotype(slot), {}))

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder with no moments."""
        self.fleet.change(slot, "reset", rng_seed)

    def publish(self, slot: int, folder: Path) -> Path:
        """Write a member as a PEFT adapter into a folder named by its slot and a hash of its factors."""
        genotype = self.genotype(slot)
        digest = hashlib.sha256(flattened(genotype).numpy().tobytes()).hexdigest()[:16]
        published = folder / f"slot-{slot}-{digest}"
        if not published.is_dir():
            with making_folder(published) as aside:
                described = plain_config(genotype, self.about.base_name, list(self.about.targets))
                write_adapter(aside, described, genotype)
        return published

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments, under the names that one process gives them."""
        calls: dict[int, Call] = {index: ("backup",) for index in range(len(self.fleet.places))}
        backups = self.fleet.ask(calls)
        members = {slot: member for backup in backups.values() for slot, member in backup.members.items()}
        state = {FACTORS: torch.stack([flattened(members[slot].genotype) for slot in range(self.num_slots)])}
        for slot in range(self.num_slots):
            state |= {f"{MOMENTS}{slot}.{name}": value for name, value in members[slot].moments.items()}
        return state

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned, here or in one process."""
        factors, like = tensors[FACTORS], self.genotype(0)
        if factors.shape != (self.num_slots, flattened(like).numel()):
            raise UserError(
                "the checkpoint holds other adapters than config.json asks for: restore the config.json that the run "
                "began with, and --set no field of the population"
            )
        for slot in range(self.num_slots):
            prefix = f"{MOMENTS}{slot}."
            moments = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            self.fleet.change(slot, "put", Member(unflattened(factors[slot], like), moments))

    def _member(self, slot: int) -> Member:
        shard = self.fleet.shard_of[slot]
        member: Member = self.fleet.ask({shard: ("member", slot)})[shard]
        return member


def flattened(genotype: Genotype) -> Tensor:
    """Return a member's factors in one row, module after module, A before B, as a bank holds them."""
    return torch.cat([factor.reshape(-1) for pair in genotype.factors.values() for factor in pair])


def unflattened(row: Tensor, like: Genotype) -> Genotype:
    """Return the genotype of the modules and shapes of ``like`` whose factors are ``row``."""
    factors, start = {}, 0
    for name, (a, b) in like.factors.items():
        middle, end = start + a.numel(), start + a.numel() + b.numel()
        factors[name] = row[start:middle].view(a.shape).clone(), row[middle:end].view(b.shape).clone()
        start = end
    return Genotype(factors, like.alpha)


def sharded_adapters(config: Config, host: Host) -> Adapters:
    """Open the shards of a run on ``host`` and return the engine's adapters over them."""
    tokenizer = load_tokenizer(config.model.base)
    fleet = Fleet(config, host)
    about: About = fleet.ask({0: ("about",)})[0]
    return Adapters(
        tokenizer=tokenizer,
        limits=about.limits,
        store=ShardedStore(fleet, config, about),
        proposer=ShardedSampler(fleet, PROPOSER),
        solver=ShardedSampler(fleet, SOLVER),
        sampler=lambda temperature: ShardedSampler(fleet, temperature),
        learner=ShardedLearner(fleet),
        close=fleet.close,
        news=fleet.news,
    )
