"""Hosts: open shards, pass calls to them and keep their backups on another machine.

There are two: this process (``LocalHost``) and a Ray cluster (``redqueen.cluster.ray_host``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config
from redqueen.engine import LoadedBase, load_frozen
from redqueen.timing import Report, unheard


class ShardLost(Exception):
    """A shard does not answer: its process, its machine or the connection is lost. The message says which."""


Answer = Callable[[], Any]
"""A pending answer; calling it waits for the answer. It raises ShardLost, or what the shard itself raised."""


class Connection(Protocol):
    """The connection to an open shard."""

    @property
    def node(self) -> str:
        """The name of the machine (or process) that the shard runs on."""

    def send(self, method: str, *arguments: object) -> Answer:
        """Call a method of ``Shard``. It never raises: errors are raised by the answer."""

    def close(self) -> None:
        """End the shard, even if it is busy."""


class Host(Protocol):
    """Opens shards somewhere."""

    def open(self, index: int, slots: Sequence[int]) -> Connection:
        """Open a shard with founders. Raises ShardLost when it cannot be opened."""

    def keep(self, index: int, connection: Connection) -> Answer:
        """Begin to copy a shard's backup to a place that outlives the shard.

        The previous backup stays valid until the answer has arrived, which raises ShardLost when the copy failed.
        """

    def kept(self, index: int) -> Backup | None:
        """Return the newest backup of a shard; None when there never was one. Raises ShardLost when it is lost too."""

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return the shards to move because machines joined or left."""

    def close(self) -> None:
        """Release what was opened."""


def shards_to_move(machines: Sequence[str], room: Mapping[str, float]) -> list[int]:
    """Return the shards to move so that machines have shards in proportion to ``room`` (cores), fullest first.

    ``machines``: the machine of each shard. Shards of a lost machine are not moved: the next call finds them lost.
    """
    on: dict[str, list[int]] = {node: [] for node in room}
    for index, node in enumerate(machines):
        on.setdefault(node, []).append(index)
    moving: list[int] = []
    while room:
        fullest = max(room, key=lambda node: (len(on[node]) / room[node], node))
        emptiest = min(room, key=lambda node: (len(on[node]) / room[node], node))
        if len(on[fullest]) / room[fullest] <= (len(on[emptiest]) + 1) / room[emptiest]:
            break
        moving.append(on[fullest].pop())
        on[emptiest].append(moving[-1])
    return moving


class LocalHost:
    """Implements ``Host`` in this process, on one base: shards work one after the other and none is ever lost."""

    def __init__(self, config: Config, report: Report = unheard) -> None:
        self.config, self.report = config, report
        self.loaded: LoadedBase = load_frozen(config)

    def open(self, index: int, slots: Sequence[int]) -> LocalConnection:
        """Open a shard."""
        return LocalConnection(Shard(self.config, slots, self.loaded, self.report))

    def keep(self, index: int, connection: Connection) -> Answer:
        """Keep nothing: a shard lives as long as this process."""
        return lambda: None

    def kept(self, index: int) -> Backup | None:
        """Return no backup."""
        return None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return no shard."""
        return []

    def close(self) -> None:
        """Release nothing."""


class LocalConnection:
    """Implements ``Connection`` by plain calls: the shard computes when the answer is called."""

    node = "this process"

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def send(self, method: str, *arguments: object) -> Answer:
        """Return the call."""
        return partial(getattr(self.shard, method), *arguments)

    def close(self) -> None:
        """Close the shard."""
        self.shard.close()
