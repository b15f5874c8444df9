"""Shards as actors of a Ray cluster: one process each, on whichever machine has room, and found again when it is lost.

Ray's own restarts and retries stay off: a restart would run a constructor again and know nothing of what was learned.
A backup goes from the shard's machine straight to
that of another shard and never through the driver. Whether a shard lives is judged by its progress, which a second
thread of its process tells: a process that hangs is alive.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from redqueen.cluster.host import Connection, Pending, ShardLost, uneven
from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config
from redqueen.errors import UserError

LOOK_S = 0.5
"""Seconds between two looks at a shard that has not answered."""


class ShardActor:
    """A shard in a process of its own, with a second thread for questions about its progress and others' backups."""

    def __init__(self) -> None:
        self.shard: Shard | None = None
        self.others: dict[tuple[int, int], Backup] = {}

    def start(self, config: Config, slots: Sequence[int]) -> None:
        """Load the base and make the founders."""
        self.shard = Shard(config, slots)

    def call(self, method: str, *arguments: Any) -> Any:
        """Answer one call."""
        return getattr(self.shard, method)(*arguments)

    def pid(self) -> int:
        """Return the id of its process."""
        return os.getpid()

    def progress(self) -> int:
        """Return a number that grows while work goes on."""
        return self.shard.progress if self.shard else 0

    def keep(self, index: int, version: int, backup: Backup) -> None:
        """Keep another shard's backup."""
        self.others[index, version] = backup

    def kept(self, index: int, version: int) -> Backup:
        """Return another shard's backup."""
        return self.others[index, version]

    def drop(self, index: int, version: int) -> None:
        """Forget a backup that a newer one has replaced."""
        self.others.pop((index, version), None)


@dataclass(frozen=True)
class _Kept:
    """A backup that counts: in the object store of its shard's machine, and at another shard, if there is one."""

    version: int
    reference: Any
    keeper: RayConnection | None


class RayHost:
    """Implements ``Host`` on the Ray cluster at ``address`` (``auto``: the one that this machine is part of)."""

    def __init__(self, config: Config, address: str) -> None:
        self.config = config
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
        except (OSError, RayError, RuntimeError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise UserError(
                f"--cluster {address}: there is no Ray cluster to reach ({first}); start one: `ray start --head`, and "
                "on every other machine `ray start --address=HEAD:6379`"
            ) from None
        gpus = 0.0 if config.run.device == "cpu" else sum(_of(node, "GPU") for node in _nodes())
        remote: Any = ray.remote  # its types know other options than it takes
        self._actor_class = remote(
            num_cpus=0,  # where a shard stands is decided here: one core must be able to take a lost neighbour's shards
            num_gpus=min(0.5, gpus / (2 * config.cluster.num_shards)),  # half a device each, for the same reason
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={"side": 2},
        )(ShardActor)
        self.connections: dict[int, RayConnection] = {}
        self.backups: dict[int, _Kept] = {}
        self.num_backups = 0

    def open(self, index: int, slots: Sequence[int]) -> RayConnection:
        """Open a shard on the machine with most room. Raises ShardLost when it does not come up."""
        self.connections.pop(index, None)
        node = self._roomiest()
        place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        actor = self._actor_class.options(scheduling_strategy=place).remote()
        connection = RayConnection(actor, node["NodeID"], node["NodeManagerHostname"], self)
        started = actor.start.remote(self.config, tuple(slots))
        RayPending(started, connection, self.config.cluster.start_s).get()
        self.connections[index] = connection
        return connection

    def keep(self, index: int, connection: Connection) -> Pending:
        """Begin a backup to another machine, or else to another process; its own machine's object store has it too."""
        assert isinstance(connection, RayConnection)
        self.num_backups += 1
        return RayKeeping(self, index, self.num_backups, connection)

    def others(self, index: int, connection: RayConnection) -> list[RayConnection]:
        """Return the other shards that are open now, those on other machines first."""
        found = [other for i, other in self.connections.items() if i != index]
        return sorted(found, key=lambda other: other.node_id == connection.node_id)

    def kept(self, index: int) -> Backup | None:
        """Return the newest backup of a shard; None when none was ever kept."""
        if index not in self.backups:
            return None
        silence_s, kept = self.config.cluster.silence_s, self.backups[index]
        if kept.keeper is not None and kept.keeper in self.connections.values():
            try:
                return cast(Backup, ray.get(kept.keeper.side("kept", index, kept.version), timeout=silence_s))
            except RayError:
                pass  # its keeper is lost as well
        try:
            return cast(Backup, ray.get(kept.reference, timeout=silence_s))
        except RayError as error:
            raise ShardLost(f"its backup is lost too ({type(error).__name__})") from None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return which shards to move so that machines that came since get their share; the busiest give first."""
        stand_on = []
        for connection in connections:
            assert isinstance(connection, RayConnection)
            stand_on.append(connection.node_id)
        return uneven(stand_on, {node["NodeID"]: _of(node, "CPU") for node in _nodes()})

    def close(self) -> None:
        """Leave the cluster."""
        ray.shutdown()

    def _roomiest(self) -> dict[str, Any]:
        nodes = _nodes()
        if not nodes:
            raise ShardLost("no machine of the cluster has a free core")
        taken = Counter(connection.node_id for connection in self.connections.values())
        return min(nodes, key=lambda node: ((taken[node["NodeID"]] + 1) / _of(node, "CPU"), node["NodeID"]))


class RayConnection:
    """Implements ``Connection`` to an actor."""

    def __init__(self, actor: Any, node_id: str, node: str, host: RayHost) -> None:
        self.actor, self.node_id, self.host = actor, node_id, host
        self.node = f"{node} {node_id[:6]}"

    def send(self, method: str, *arguments: object) -> Pending:
        """Ask for a method of ``Shard``."""
        return RayPending(self.actor.call.remote(method, *arguments), self, self.host.config.cluster.silence_s)

    def side(self, method: str, *arguments: object) -> Any:
        """Ask its second thread; return Ray's reference to the answer."""
        return getattr(self.actor, method).options(concurrency_group="side").remote(*arguments)

    def close(self) -> None:
        """End the actor's process."""
        ray.kill(self.actor)


class RayPending:
    """Implements ``Pending``: waits as long as the shard gets on."""

    def __init__(self, reference: Any, connection: RayConnection, silence_s: float) -> None:
        self.reference, self.connection, self.silence_s = reference, connection, silence_s

    def get(self) -> Any:
        """Wait for the answer. Raises ShardLost, or what the shard itself raised."""
        return _wait(self.reference, self.connection, self.silence_s)


class RayKeeping:
    """Implements ``Pending``: a backup on its way. All shards make and send theirs at once, while calls go on.

    Until it has arrived the one before it stays where it is: a shard that is lost meanwhile is made anew from that.
    """

    def __init__(self, host: RayHost, index: int, version: int, connection: RayConnection) -> None:
        self.host, self.index, self.version, self.connection = host, index, version, connection
        self.backup = connection.actor.call.remote("backup")
        self.sent = [(other, self._send(other)) for other in host.others(index, connection)[:1]]

    def get(self) -> None:
        """Wait until it is there. Raises ShardLost when its shard is gone before."""
        silence_s, keeper = self.host.config.cluster.silence_s, None
        _wait(self.backup, self.connection, silence_s)
        for other in self.host.others(self.index, self.connection):  # the one that it was sent to may be gone since
            try:
                sent = next((sent for to, sent in self.sent if to is other), None) or self._send(other)
                ray.get(sent, timeout=silence_s)
                keeper = other
                break
            except RayError:  # the other one is lost, which shows when it is asked next, or this one is
                _wait(self.backup, self.connection, silence_s)
        before = self.host.backups.get(self.index)
        self.host.backups[self.index] = _Kept(self.version, self.backup, keeper)
        if before is not None and before.keeper is not None:
            before.keeper.side("drop", self.index, before.version)

    def _send(self, other: RayConnection) -> Any:
        return other.side("keep", self.index, self.version, self.backup)


def _knock(address: str) -> None:
    """Raise OSError when nothing answers at HOST:PORT; Ray itself would wait there for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _wait(reference: Any, connection: RayConnection, silence_s: float) -> Any:
    """Return what a reference stands for once it is there; ShardLost when its shard died or makes no progress."""
    seen, since, asked = -1, time.monotonic(), None
    try:
        while not ray.wait([reference], timeout=LOOK_S)[0]:
            asked = asked or connection.side("progress")
            if ray.wait([asked], timeout=0)[0]:
                progress, asked = ray.get(asked), None
                if progress != seen:
                    seen, since = progress, time.monotonic()
            if time.monotonic() - since > silence_s:
                raise ShardLost(f"no progress for {silence_s:.0f} s")
        return ray.get(reference)
    except RayTaskError as error:
        raise error.cause from None
    except (GetTimeoutError, RayError) as error:
        raise ShardLost(type(error).__name__) from None


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"] and _of(node, "CPU") >= 1]


def _of(node: dict[str, Any], resource: str) -> float:
    return float(node["Resources"].get(resource, 0.0))
