"""Shards as actors of a Ray cluster: one process each, on the machine with most free cores, and reopened when lost.

Ray's own restarts and retries are off: a restarted actor would run its constructor again and lose what was learned. A
backup goes directly from one shard's machine to another's. To detect a process that hangs, a second thread of the actor
reports progress, and a shard without progress counts as lost.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from redqueen.cluster.host import Answer, Connection, ShardLost, shards_to_move
from redqueen.cluster.shard import Backup, Shard
from redqueen.config import Config
from redqueen.errors import UserError, first_line

POLL_S = 0.5
"""Seconds between two requests for the progress of a shard without an answer."""
SILENCE_S = 120.0
"""Seconds without progress after which a shard with a pending call counts as lost (ours)."""
START_FACTOR = 5
"""While a shard loads its base, it may be silent for this many times ``SILENCE_S``."""


class ShardActor:
    """A shard in a process of its own, with a second thread for its progress and for other shards' backups."""

    def __init__(self) -> None:
        self.shard: Shard | None = None
        self.backups: dict[tuple[int, int], Backup] = {}  # of other shards, by (shard, version)

    def start(self, config: Config, slots: Sequence[int]) -> None:
        """Load the base and make the founders."""
        self.shard = Shard(config, slots)

    def call(self, method: str, *arguments: Any) -> Any:
        """Answer one call."""
        return getattr(self.shard, method)(*arguments)

    def progress(self) -> int:
        """Return a number that grows while work goes on."""
        return self.shard.progress if self.shard else 0

    def keep(self, index: int, version: int, backup: Backup) -> None:
        """Keep another shard's backup."""
        self.backups[index, version] = backup

    def kept(self, index: int, version: int) -> Backup:
        """Return another shard's backup."""
        return self.backups[index, version]

    def drop(self, index: int, version: int) -> None:
        """Delete a backup that a newer one has replaced."""
        self.backups.pop((index, version), None)


@dataclass(frozen=True)
class _StoredBackup:
    """A complete backup: in the object store of its shard's machine, and at another shard, if there is one."""

    version: int
    reference: Any
    keeper: RayConnection | None


class RayHost:
    """Implements ``Host`` on the Ray cluster at ``address`` (``auto``: the cluster that this machine is part of)."""

    def __init__(self, config: Config, address: str) -> None:
        self.config, self.silence_s = config, SILENCE_S
        try:
            _check_port(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
        except (OSError, RayError, RuntimeError, ValueError) as error:
            raise UserError(
                f"--cluster {address}: no Ray cluster answers ({first_line(error)}); start one: `ray start --head`, "
                "and on every other machine `ray start --address=HEAD:6379`"
            ) from None
        gpus = 0.0 if config.run.device == "cpu" else sum(_amount(node, "GPU") for node in _nodes())
        remote: Any = ray.remote  # its type stubs do not have all options
        self._actor_class = remote(
            num_cpus=0,  # this host places shards itself: one core must be able to run those of a lost machine
            num_gpus=min(0.5, gpus / (2 * config.cluster.num_shards)),  # half a device each, for the same reason
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={"side": 2},
        )(ShardActor)
        self.connections: dict[int, RayConnection] = {}
        self.backups: dict[int, _StoredBackup] = {}
        self.num_backups = 0

    def open(self, index: int, slots: Sequence[int]) -> RayConnection:
        """Open a shard on the machine with most free cores. Raises ShardLost when it cannot be opened."""
        self.connections.pop(index, None)
        taken = Counter(connection.node_id for connection in self.connections.values())
        nodes = sorted(_nodes(), key=lambda node: ((taken[node["NodeID"]] + 1) / _amount(node, "CPU"), node["NodeID"]))
        if not nodes:
            raise ShardLost("no machine of the cluster has a free core")
        node_id = nodes[0]["NodeID"]
        actor = self._actor_class.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, False)).remote()
        connection = RayConnection(actor, node_id, nodes[0]["NodeManagerHostname"], self.silence_s)
        _wait(actor.start.remote(self.config, tuple(slots)), connection, START_FACTOR * self.silence_s)
        self.connections[index] = connection
        return connection

    def keep(self, index: int, connection: Connection) -> Answer:
        """Begin a backup to another machine, or else another process; the own machine's object store has it too."""
        assert isinstance(connection, RayConnection)
        self.num_backups += 1
        version, reference = self.num_backups, connection.actor.call.remote("backup")
        sent = {other: other.side("keep", index, version, reference) for other in self._others(index, connection)[:1]}

        def arrive() -> None:
            _wait(reference, connection, self.silence_s)
            keeper = None
            for other in self._others(index, connection):  # the first may be lost by now
                try:
                    ray.get(sent.get(other) or other.side("keep", index, version, reference), timeout=self.silence_s)
                    keeper = other
                    break
                except RayError:  # either the other shard is lost, which its next call detects, or this one
                    _wait(reference, connection, self.silence_s)
            before = self.backups.get(index)
            self.backups[index] = _StoredBackup(version, reference, keeper)
            if before is not None and before.keeper is not None:
                before.keeper.side("drop", index, before.version)

        return arrive

    def kept(self, index: int) -> Backup | None:
        """Return the newest backup of a shard; None when there never was one. Raises ShardLost when it is lost too."""
        if index not in self.backups:
            return None
        kept = self.backups[index]
        if kept.keeper is not None and kept.keeper in self.connections.values():
            try:
                return cast(Backup, ray.get(kept.keeper.side("kept", index, kept.version), timeout=self.silence_s))
            except RayError:
                pass  # the keeper is lost too
        try:
            return cast(Backup, ray.get(kept.reference, timeout=self.silence_s))
        except RayError as error:
            raise ShardLost(f"its backup is lost too ({type(error).__name__})") from None

    def misplaced(self, connections: Sequence[Connection]) -> list[int]:
        """Return the shards to move so that new machines get their share."""
        machines = [cast(RayConnection, connection).node_id for connection in connections]
        return shards_to_move(machines, {node["NodeID"]: _amount(node, "CPU") for node in _nodes()})

    def close(self) -> None:
        """Leave the cluster."""
        ray.shutdown()

    def _others(self, index: int, connection: RayConnection) -> list[RayConnection]:
        """Return the other open shards, those on other machines first."""
        found = [other for i, other in self.connections.items() if i != index]
        return sorted(found, key=lambda other: other.node_id == connection.node_id)


class RayConnection:
    """Implements ``Connection`` to an actor."""

    def __init__(self, actor: Any, node_id: str, node: str, silence_s: float) -> None:
        self.actor, self.node_id, self.silence_s = actor, node_id, silence_s
        self.node = f"{node} {node_id[:6]}"

    def send(self, method: str, *arguments: object) -> Answer:
        """Call a method of ``Shard``."""
        return partial(_wait, self.actor.call.remote(method, *arguments), self, self.silence_s)

    def side(self, method: str, *arguments: object) -> Any:
        """Call a method on the actor's second thread; return Ray's reference to the answer."""
        return getattr(self.actor, method).options(concurrency_group="side").remote(*arguments)

    def close(self) -> None:
        """End the actor's process."""
        ray.kill(self.actor)


def _check_port(address: str) -> None:
    """Raise OSError when nothing answers at HOST:PORT; Ray itself would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _wait(reference: Any, connection: RayConnection, silence_s: float) -> Any:
    """Wait for the value of a reference. Raises ShardLost when its shard died or makes no progress."""
    seen, since, asked = -1, time.monotonic(), None
    try:
        while not ray.wait([reference], timeout=POLL_S)[0]:
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
    return [node for node in ray.nodes() if node["Alive"] and _amount(node, "CPU") >= 1]


def _amount(node: dict[str, Any], resource: str) -> float:
    return float(node["Resources"].get(resource, 0.0))
