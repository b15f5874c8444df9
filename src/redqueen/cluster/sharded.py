"""The engine's adapters over shards: requests and rollouts go to the shards of their members.

Texts, tokens, advantages and statistics are transferred in every step; factors only when a child is bred from them, a
member enters the hall of fame or a checkpoint is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

from redqueen.adapters.bank import check_shape
from redqueen.adapters.genotype import Genotype, flattened
from redqueen.adapters.memory import TextLimits
from redqueen.cluster.fleet import Call, Fleet
from redqueen.cluster.host import Host, LocalHost
from redqueen.cluster.shard import PROPOSER, SOLVER, Part
from redqueen.config import Config
from redqueen.engine import Adapters, LoadAdapters, load_adapters, load_tokenizer
from redqueen.errors import UserError, how_to_install
from redqueen.learn.torch_learner import FACTORS, MOMENTS
from redqueen.records import BASE_SLOT, Completion, Request
from redqueen.timing import Report, unheard
from redqueen_sandbox.pool import Answer, Jobs
from redqueen_sandbox.programs import Rules


class ShardedSampler:
    """Implements ``Sampler``: each member's shard samples its requests; all shards share those to the base model."""

    def __init__(self, fleet: Fleet, part: Part) -> None:
        self.fleet, self.part = fleet, part

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of each request, in the order of the requests."""
        to_base = [i for i, request in enumerate(requests) if request.slot == BASE_SLOT]
        shard_of = {i: at * len(self.fleet.shards) // len(to_base) for at, i in enumerate(to_base)}
        numbers: dict[int, list[int]] = {}
        for i, request in enumerate(requests):
            numbers.setdefault(shard_of[i] if i in shard_of else self.fleet.shard_of[request.slot], []).append(i)
        calls: dict[int, Call] = {
            shard: ("sample", self.part, [requests[i] for i in part]) for shard, part in sorted(numbers.items())
        }
        found: list[list[Completion]] = [[] for _ in requests]
        for shard, answers in self.fleet.ask(calls).items():
            for i, answer in zip(numbers[shard], answers, strict=True):
                found[i] = answer
        return found


class ShardedVerifier:
    """Implements ``JobRunner``: the work is dealt to the shards in turn, so that none gets all the slow programs.

    Raises UserError when the machine of a shard has no sandbox.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        fleet.ask({index: ("judge", []) for index in range(len(fleet.shards))})

    def judge(self, work: Sequence[Callable[[Rules], Jobs[Answer]]]) -> list[Answer]:
        """Return the answers in the order of ``work``."""
        num_shards = len(self.fleet.shards)
        calls: dict[int, Call] = {i: ("judge", work[i::num_shards]) for i in range(min(num_shards, len(work)))}
        answers: list[Answer] = [None] * len(work)  # type: ignore[list-item]
        for index, part in self.fleet.ask(calls).items():
            answers[index::num_shards] = part
        return answers


class ShardedStore:
    """Implements ``AdapterStore``."""

    def __init__(self, fleet: Fleet, config: Config) -> None:
        self.fleet, self.num_slots = fleet, config.num_adapters

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""
        genotype: Genotype = self.fleet.ask_member(slot, "genotype")
        return genotype

    def load(self, slot: int, genotype: Genotype) -> None:
        """Put a new member into ``slot``, with no moments."""
        self.fleet.change_member(slot, "load", genotype)

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, with no moments."""
        self.load(into, self.genotype(slot))

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder with no moments."""
        self.fleet.change_member(slot, "reset", rng_seed)

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count; its factors stay."""
        self.fleet.change_member(slot, "forget")

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and optimiser moments, under the same names as in one process."""
        calls: dict[int, Call] = {index: ("state_dict",) for index in range(len(self.fleet.shards))}
        state: dict[str, Tensor] = {}
        rows: dict[int, Tensor] = {}
        for index, part in self.fleet.ask(calls).items():
            slots = self.fleet.shards[index].slots
            rows |= dict(zip(slots, part.pop(FACTORS), strict=True))
            state |= {_renumbered(name, dict(enumerate(slots))): tensor for name, tensor in part.items()}
        return {FACTORS: torch.stack([rows[slot] for slot in range(self.num_slots)])} | state

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned, from shards or from one process."""
        factors = tensors[FACTORS]
        check_shape(factors, (self.num_slots, flattened(self.genotype(0)).numel()))
        for index, shard in enumerate(self.fleet.shards):
            local = {slot: i for i, slot in enumerate(shard.slots)}
            own = {name: tensor for name, tensor in tensors.items() if _slot_of(name) in local}
            part = {_renumbered(name, local): tensor for name, tensor in own.items()}
            self.fleet.change_shard(index, "load_state", {FACTORS: factors[list(shard.slots)]} | part)


_SLOT = re.compile(rf"(?<={re.escape(MOMENTS)})\d+(?=\.)")
"""The slot in the name of one of the learner's tensors."""


def _slot_of(name: str) -> int | None:
    found = _SLOT.search(name)
    return int(found[0]) if found else None


def _renumbered(name: str, numbers: Mapping[int, int]) -> str:
    """Return the name with its slot replaced according to ``numbers``."""
    return _SLOT.sub(lambda found: str(numbers[int(found[0])]), name)


def sharded_adapters(config: Config, host: Host) -> Adapters:
    """Open the shards of a run on ``host`` and return the engine's adapters over them."""
    tokenizer = load_tokenizer(config.model.base)
    fleet = Fleet(config, host)
    limits: TextLimits = fleet.ask({0: ("limits",)})[0]

    def sampler(
        temperature: float, max_new_tokens: int | None = None, stops: Sequence[str] | None = None
    ) -> ShardedSampler:
        return ShardedSampler(fleet, (temperature, max_new_tokens, None if stops is None else tuple(stops)))

    return Adapters(
        tokenizer=tokenizer,
        limits=limits,
        store=ShardedStore(fleet, config),
        proposer=ShardedSampler(fleet, PROPOSER),
        solver=ShardedSampler(fleet, SOLVER),
        sampler=sampler,
        learner=fleet,
        close=fleet.close,
        take_events=fleet.take_events,
        shard_verifier=ShardedVerifier(fleet) if config.cluster.verify == "shard" else None,
    )


def adapters_here(report: Report = unheard) -> LoadAdapters:
    """Return a function that opens the adapters in this process, in as many shards as the config has."""

    def load(config: Config) -> Adapters:
        if config.cluster.num_shards == 1:
            return load_adapters(config, report)
        return sharded_adapters(config, LocalHost(config, report))

    return load


def adapters_at(address: str) -> LoadAdapters:
    """Return a function that opens the adapters on the Ray cluster at ``address``.

    Raises UserError when Ray is not installed; opening raises it when no cluster answers.
    """
    if find_spec("ray") is None:
        raise UserError(f"--cluster needs Ray: {how_to_install('ray')}")

    def load(config: Config) -> Adapters:
        from redqueen.cluster.ray_host import RayHost

        return sharded_adapters(config, RayHost(config, address))

    return load
