"""A simulation of steps of a divided population: how long they take where machines straggle, die and share a network.

Events in order of time. As in ``Fleet``: the driver sends a stage's calls one after the other over its own link, waits
for all answers, and brings lost shards back one at a time. The shards of a machine share it, so they work one by one.
Backups travel while shards go on, and the next update waits for them. A machine that dies takes its shards with it;
another comes for it after ``absent_s``, and shards move to it after the update. What a stage costs is measured
elsewhere and given here.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redqueen.cluster.traffic import Traffic


@dataclass(frozen=True)
class Stage:
    """A part of a step that is over when all shards have answered. Seconds and bytes are those of one shard.

    ``driver_s``: what the driver does after it, for all shards. ``backup_bytes`` go to another machine once a shard has
    done its work; the stage begins when those of the step before have arrived, and a shard that is lost before its own
    have must do this work again.
    """

    name: str
    shard_s: float = 0.0
    asked_bytes: float = 0.0
    answered_bytes: float = 0.0
    driver_s: float = 0.0
    backup_bytes: float = 0.0
    moves_after: bool = False
    """Whether shards move to machines that came, when this stage is over."""


@dataclass(frozen=True)
class Cluster:
    """Machines and what is between them.

    ``link_bytes_s``: of every machine, the driver's too. ``spread``: the standard deviation of the logarithm of a
    shard's time in a stage (its mean stays). ``mean_life_s``: of one machine; infinite: none dies. A loss is noticed
    after ``notice_s``; a shard is opened in ``open_s`` and then fetches ``restore_bytes``.
    """

    num_nodes: int
    num_shards: int
    link_bytes_s: float = 1.25e9
    latency_s: float = 0.001
    spread: float = 0.0
    mean_life_s: float = math.inf
    notice_s: float = 1.0
    open_s: float = 30.0
    absent_s: float = 600.0
    restore_bytes: float = 0.0

    @property
    def revival_s(self) -> float:
        """Seconds until a lost shard is where it was."""
        return self.open_s + self.restore_bytes / self.link_bytes_s


@dataclass(frozen=True)
class Outcome:
    """What the steps took: seconds each, machines that died, shards that were brought back or moved."""

    step_s: tuple[float, ...]
    num_dead: int
    num_revived: int
    num_moved: int

    @property
    def mean_s(self) -> float:
        return sum(self.step_s) / len(self.step_s)


@dataclass
class _Node:
    alive: bool = True
    back_s: float = 0.0
    working: int = -1
    queue: deque[int] = field(default_factory=deque)


def step_stages(
    traffic: Traffic,
    num_shards: int,
    *,
    propose_s: float,
    solve_s: float,
    learn_s: float,
    verify_s: float,
    other_s: float = 0.0,
    verify_near: bool = False,
) -> list[Stage]:
    """Return the stages of a step. Seconds: of one shard for ``propose_s``, ``solve_s`` and ``learn_s``; of one driver
    for all shards for ``verify_s`` and ``other_s``. ``traffic`` is that of the whole population."""
    asked, answered = traffic.sample_asked / num_shards / 2, traffic.sample_answered / num_shards / 2
    near_s = verify_s / num_shards if verify_near else 0.0
    at_driver_s = 0.0 if verify_near else verify_s / 2
    stages = [Stage("propose", propose_s, asked, answered, at_driver_s)]
    judging = [Stage("verify", near_s / 2)] if verify_near else []
    return [
        *stages,
        *judging,
        Stage("solve", solve_s, asked, answered, at_driver_s),
        *judging,
        Stage(
            "learn",
            learn_s,
            traffic.learn_asked / num_shards,
            traffic.learn_answered / num_shards,
            other_s,
            traffic.backup / num_shards,
            moves_after=True,
        ),
    ]


def simulate(
    stages: Sequence[Stage],
    cluster: Cluster,
    num_steps: int = 1,
    rng_seed: int = 0,
    deaths: Sequence[tuple[float, int]] = (),
) -> Outcome:
    """Play so many steps and return what they took; ``deaths`` (second, machine) come beside those by chance."""
    simulation = _Simulation(cluster, random.Random(rng_seed))
    for at_s, node in deaths:
        simulation.at(at_s, "dies", node)
    return simulation.play(stages, num_steps)


@dataclass(frozen=True)
class Shares:
    """Mean seconds of a step where all goes well, and those that stragglers and deaths add."""

    calm_s: float
    stragglers_s: float
    deaths_s: float
    outcome: Outcome

    @property
    def step_s(self) -> float:
        return self.calm_s + self.stragglers_s + self.deaths_s


def shares(stages: Sequence[Stage], cluster: Cluster, num_steps: int, rng_seed: int = 0) -> Shares:
    """Simulate without stragglers and deaths, with stragglers, and with both."""
    lasting = replace(cluster, mean_life_s=math.inf)
    calm = simulate(stages, replace(lasting, spread=0.0), 1, rng_seed).mean_s
    straggling = simulate(stages, lasting, num_steps, rng_seed).mean_s
    whole = simulate(stages, cluster, num_steps, rng_seed)
    return Shares(calm, straggling - calm, whole.mean_s - straggling, whole)


class _Simulation:
    """The state of a cluster while time goes on."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster, self.rng, self.now_s = cluster, rng, 0.0
        self.nodes = [_Node() for _ in range(cluster.num_nodes)]
        self.home = [shard % cluster.num_nodes for shard in range(cluster.num_shards)]
        self.up = [True] * cluster.num_shards
        self.turn = [0] * cluster.num_shards  # grows when a shard is lost: what it was doing does not count any more
        self.events: list[tuple[float, int, str, int, int]] = []
        self.order = itertools.count()
        self.reviving_s = self.answering_s = 0.0
        self.line_s = [0.0] * cluster.num_nodes  # when a machine's line has sent the backups that it was given
        self.arrived_s = [0.0] * cluster.num_shards  # when a shard's newest backup is there
        self.learn_s = 0.0  # what a shard that is lost before must do again
        self.owed_s = [0.0] * cluster.num_shards
        self.num_dead = self.num_revived = self.num_moved = 0
        for node in range(cluster.num_nodes):
            self._will_die(node)

    def play(self, stages: Sequence[Stage], num_steps: int) -> Outcome:
        taken = []
        for _ in range(num_steps):
            began_s = self.now_s
            for stage in stages:
                self._stage(stage)
            taken.append(self.now_s - began_s)
        return Outcome(tuple(taken), self.num_dead, self.num_revived, self.num_moved)

    def _stage(self, stage: Stage) -> None:
        self.left = set(range(self.cluster.num_shards))
        if stage.backup_bytes:
            self.now_s, self.learn_s = max(self.now_s, *self.arrived_s), stage.shard_s
        for shard in range(self.cluster.num_shards):
            sent_s = self.now_s + (shard + 1) * stage.asked_bytes / self.cluster.link_bytes_s
            self.at(sent_s + self.cluster.latency_s, "asked", shard, self.turn[shard])
        while self.left:
            self._next(stage)
        self.now_s += stage.driver_s
        if stage.moves_after:
            self._move()

    def _next(self, stage: Stage) -> None:
        at_s, _, what, who, turn = heapq.heappop(self.events)
        self.now_s = max(self.now_s, at_s)
        if what == "dies":
            self._die(who, at_s)
        elif what == "comes":
            self.nodes[who] = _Node()
            self._will_die(who, at_s)
        elif turn == self.turn[who]:
            if what == "asked":
                self._asked(stage, who, at_s)
            elif what == "worked":
                node = self.home[who]
                self.nodes[node].working = -1
                self._work(stage, node, at_s)
                if stage.backup_bytes:
                    self.line_s[node] = max(at_s, self.line_s[node]) + stage.backup_bytes / self.cluster.link_bytes_s
                    self.arrived_s[who] = self.line_s[node]
                self.answering_s = max(at_s, self.answering_s) + stage.answered_bytes / self.cluster.link_bytes_s
                self.at(self.answering_s + self.cluster.latency_s, "answered", who, turn)
            else:
                self.left.discard(who)

    def _asked(self, stage: Stage, shard: int, at_s: float) -> None:
        if not self.up[shard]:
            self._revive(shard, at_s)
            return
        self.nodes[self.home[shard]].queue.append(shard)
        self._work(stage, self.home[shard], at_s)

    def _work(self, stage: Stage, number: int, at_s: float) -> None:
        node = self.nodes[number]
        if node.working >= 0 or not node.queue:
            return
        shard = node.working = node.queue.popleft()
        spread = self.cluster.spread
        slowness = math.exp(self.rng.gauss(0.0, spread) - spread**2 / 2) if spread else 1.0
        work_s = (stage.shard_s + self.owed_s[shard]) * slowness
        self.owed_s[shard] = 0.0
        self.at(at_s + work_s, "worked", shard, self.turn[shard])

    def _die(self, number: int, at_s: float) -> None:
        """A machine dies: shards with an answer to give are asked again elsewhere, others when they are asked next."""
        if not self.nodes[number].alive:
            return
        self.num_dead += 1
        self.nodes[number] = _Node(alive=False, back_s=at_s + self.cluster.absent_s)
        self.at(at_s + self.cluster.absent_s, "comes", number)
        for shard in [shard for shard, home in enumerate(self.home) if home == number and self.up[shard]]:
            self.up[shard] = False
            if at_s < self.arrived_s[shard]:
                self.owed_s[shard], self.arrived_s[shard] = self.learn_s, 0.0
            if shard in self.left:
                self.turn[shard] += 1
                self.at(at_s + self.cluster.notice_s, "asked", shard, self.turn[shard])

    def _revive(self, shard: int, at_s: float) -> None:
        """Open a lost shard on the machine with fewest, or wait for the first that comes back."""
        living = [number for number, node in enumerate(self.nodes) if node.alive]
        if not living:
            self.at(min(node.back_s for node in self.nodes), "asked", shard, self.turn[shard])
            return
        self.num_revived += 1
        held = self._held()
        self.home[shard], self.up[shard] = min(living, key=lambda number: (held[number], number)), True
        self.reviving_s = max(at_s, self.reviving_s) + self.cluster.revival_s
        self.at(self.reviving_s, "asked", shard, self.turn[shard])

    def _move(self) -> None:
        """Let shards move, one after the other, to machines that have two fewer than another."""
        while True:
            held = self._held()
            living = {number: held[number] for number, node in enumerate(self.nodes) if node.alive}
            if not living or max(living.values()) - min(living.values()) < 2:
                return
            giving, taking = max(living, key=living.__getitem__), min(living, key=living.__getitem__)
            shard = max(shard for shard, home in enumerate(self.home) if home == giving and self.up[shard])
            self.home[shard] = taking
            self.num_moved += 1
            self.now_s += self.cluster.revival_s

    def _held(self) -> Counter[int]:
        """Return how many shards each machine holds."""
        return Counter(home for shard, home in enumerate(self.home) if self.up[shard])

    def _will_die(self, number: int, at_s: float = 0.0) -> None:
        if math.isfinite(self.cluster.mean_life_s):
            self.at(at_s + self.rng.expovariate(1 / self.cluster.mean_life_s), "dies", number)

    def at(self, at_s: float, what: str, who: int, turn: int = 0) -> None:
        """Let something happen to a shard or a machine at a second."""
        heapq.heappush(self.events, (at_s, next(self.order), what, who, turn))
