"""Where shards stand: a host opens them, passes calls on to them, and keeps their backups outside of them.

Two hosts exist: this process (``LocalHost``) and a Ray cluster (``redqueen.cluster.ray_host``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config
from redqueen.engine import LoadedBase, load_frozen
from redqueen.timing import Report, unheard


class ShardLost(Exception):
    """A shard does not answer any more: its process, its machine or the way there is gone. The message says what."""


class Pending(Protocol):
    """An answer that is awaited."""

    def get(self) -> Any:
        """Wait for the answer. Raises ShardLost, or what the shard itself raised."""
        ...


class Connection(Protocol):
    """A shard that was opened, and the way to it."""

    @property
    def node(self) -> str:
        """The name of the machine (or process) that it stands on."""
        ...

    def send(self, method: str, *arguments: object) -> Pending:
        """Ask for a method of ``Shard``. Raises nothing: what goes wrong is told by the answer."""
        ...

    def close(self) -> None:
        """End the shard, whatever it does."""
        ...


class Host(Protocol):
    """Opens shards somewhere."""

    def open(self, index: int, slots: Sequence[int]) -> Connection:
        """Open a shard with founders. Raises ShardLost when it does not come up."""
        ...

    def keep(self, index: int, connection: Connection) -> Pending:
        """Begin to take a backup of a shard to a place that outlives it.

        It counts when the answer is there, which raises ShardLost when it could not be had; until then, and then, the
        one before it is still there.
        """
        ...

    def kept(self, index: int) -> Backup | None:
        """Return the newest backup of a shard; None when none was ever kept. Raises ShardLost when it is lost too."""
        ...

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return which shards would stand better elsewhere now: machines come and go."""
        ...

    def close(self) -> None:
        """Release what was opened."""
        ...


def uneven(stand_on: Sequence[str], room: Mapping[str, float]) -> list[int]:
    """Return which shards to move so that machines have shards by their ``room`` (cores); the busiest give first.

    ``stand_on``: the machine of each shard. Those on a machine that is gone stay: they are found lost when asked.
    """
    on: dict[str, list[int]] = {node: [] for node in room}
    for index, node in enumerate(stand_on):
        on.setdefault(node, []).append(index)
    moving: list[int] = []
    while room:
        busiest = max(room, key=lambda node: (len(on[node]) / room[node], node))
        idlest = min(room, key=lambda node: (len(on[node]) / room[node], node))
        if len(on[busiest]) / room[busiest] <= (len(on[idlest]) + 1) / room[idlest]:
            break
        moving.append(on[busiest].pop())
        on[idlest].append(moving[-1])
    return moving


class LocalHost:
    """All shards in this process, on one base: they act one after the other and none is ever lost."""

    def __init__(self, config: Config, report: Report = unheard) -> None:
        self.config, self.report = config, report
        self.loaded: LoadedBase = load_frozen(config)

    def open(self, index: int, slots: Sequence[int]) -> LocalConnection:
        """Open a shard."""
        return LocalConnection(Shard(self.config, slots, self.loaded, self.report))

    def keep(self, index: int, connection: Connection) -> Pending:
        """Keep nothing: a shard lives as long as this process."""
        return Later(lambda: None)

    def kept(self, index: int) -> Backup | None:
        """Return no backup."""
        return None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return no shard."""
        return []

    def close(self) -> None:
        """Release nothing."""


class LocalConnection:
    """Implements ``Connection`` by plain calls."""

    node = "this process"

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def send(self, method: str, *arguments: object) -> Pending:
        """Ask; the shard works when the answer is fetched."""
        return Later(lambda: getattr(self.shard, method)(*arguments))

    def close(self) -> None:
        """End what the shard has started."""
        self.shard.close()


class Later:
    """Implements ``Pending`` by a plain call, made when the answer is fetched."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work

    def get(self) -> Any:
        """Call."""
        return self.work()
