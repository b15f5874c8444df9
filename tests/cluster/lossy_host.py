"""A host that loses shards when it is told to: real shards, whose memory is gone with them; backups are bytes."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from redqueen.cluster.host import Answer, Connection, LocalHost, ShardLost
from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config


@dataclass
class Fate:
    """Which calls end a shard, counted over all shards from 1: before they are worked on, or when the answer is out."""

    lost_before: set[int] = field(default_factory=set)
    lost_after: set[int] = field(default_factory=set)
    num_calls: int = 0
    methods: list[str] = field(default_factory=list)


class LossyHost:
    """Implements ``Host``."""

    def __init__(self, config: Config, fate: Fate) -> None:
        self.config, self.fate = config, fate
        self.loaded = LocalHost(config).loaded
        self.backups: dict[int, bytes] = {}
        self.num_opened = 0
        self.moving: list[int] = []

    def open(self, index: int, slots: Sequence[int]) -> "LossyConnection":
        self.num_opened += 1
        return LossyConnection(Shard(self.config, slots, self.loaded), self.fate, f"machine {self.num_opened}")

    def keep(self, index: int, connection: Connection) -> Answer:
        """Take it now; it counts when it is asked for, if its shard was not lost before it was made."""
        try:
            backup = pickle.dumps(connection.send("backup")())
        except ShardLost as lost:
            return partial(_raise, lost)
        return partial(self.backups.__setitem__, index, backup)

    def kept(self, index: int) -> Backup | None:
        return pickle.loads(self.backups[index]) if index in self.backups else None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        moving, self.moving = self.moving, []
        return moving

    def close(self) -> None:
        self.backups.clear()


def _raise(lost: ShardLost) -> None:
    raise lost


class LossyConnection:
    """Implements ``Connection``."""

    def __init__(self, shard: Shard | None, fate: Fate, node: str) -> None:
        self.shard, self.fate, self.node = shard, fate, node

    def send(self, method: str, *arguments: object) -> Answer:
        return partial(self.answer, method, arguments)

    def close(self) -> None:
        self.shard = None

    def answer(self, method: str, arguments: tuple[object, ...]) -> Any:
        fate, shard = self.fate, self.shard
        fate.num_calls += 1
        fate.methods.append(method)
        if shard is None or fate.num_calls in fate.lost_before:
            self.shard = None
            raise ShardLost("the machine is gone")
        answer = pickle.dumps(getattr(shard, method)(*pickle.loads(pickle.dumps(arguments))))
        if fate.num_calls in fate.lost_after:
            self.shard = None
            raise ShardLost("the machine is gone, and the answer with it")
        return pickle.loads(answer)
