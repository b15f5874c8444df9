"""All shards of a run: they are called in parallel, and a lost shard is replaced by an exact copy.

A lost shard is rebuilt from its newest backup, which the host stores on another machine, and from later changes (an
update, children, resets), which are recorded here until a newer backup has arrived. A backup begins after each update
and is awaited before the next one, so it is transferred while shards sample. Then the call that failed is repeated. A
shard computes the same on any machine, so losses do not change a run's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redqueen.cluster.host import Answer, Connection, Host, ShardLost
from redqueen.config import Config
from redqueen.config.load import Slots
from redqueen.errors import UserError
from redqueen.records import Rollout, ShardEvent, Tuning, UpdateStats

MAX_LOSSES_OF_A_CALL = 3
"""If one call loses more shards than this, the call itself is the cause, and the run stops."""
MAX_LOSSES = 100
"""The run stops when a session has lost more shards than this."""

Call = tuple[Any, ...]
"""A method of ``Shard`` and its arguments."""


@dataclass
class _ShardState:
    """What the driver knows of a shard."""

    slots: tuple[int, ...]
    connection: Connection
    num_updates: int = 0
    changes: list[Call] = field(default_factory=list)
    """Changes since the newest backup that has arrived, in order."""
    backup: Answer | None = None
    """A backup that is being transferred, with the first ``num_kept`` changes."""
    num_kept: int = 0


def partition(slots: Slots, num_shards: int) -> list[tuple[int, ...]]:
    """Return the slots of each shard: members, hall of fame and distilled adapter, each distributed in turn."""
    shard_of = [slots.shard_of(slot, num_shards) for slot in range(slots.num_adapters)]
    return [tuple(slot for slot, at in enumerate(shard_of) if at == shard) for shard in range(num_shards)]


class Fleet:
    """All shards of a run on one host. Raises UserError when a shard cannot be opened."""

    def __init__(self, config: Config, host: Host) -> None:
        self.host = host
        self.events: list[ShardEvent] = []
        self.num_lost = 0
        slots = partition(config.slots, config.cluster.num_shards)
        self.shards: list[_ShardState] = []
        for index, part in enumerate(slots):
            try:
                self.shards.append(_ShardState(part, host.open(index, part)))
            except ShardLost as lost:
                self.close()
                raise UserError(
                    f"shard {index} cannot be opened ({lost}): lower cluster.num_shards or add machines"
                ) from None
            self._record(index, "opened")
        self.shard_of = {slot: i for i, part in enumerate(slots) for slot in part}

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Call several shards in parallel, by index; return all answers.

        Raises what a shard raised, and UserError when too many shards were lost.
        """
        answers = {index: self._send(index, call) for index, call in calls.items()}
        return {index: self._finish(index, calls[index], answers[index]) for index in calls}

    def ask_member(self, slot: int, method: str) -> Any:
        """Call a method of a member's ``Shard`` whose only argument is the slot."""
        index = self.shard_of[slot]
        return self.ask({index: (method, slot)})[index]

    def change_member(self, slot: int, method: str, *arguments: Any) -> None:
        """Call a method of a member's ``Shard`` that changes the member; its first argument is the slot."""
        self.change_shard(self.shard_of[slot], method, slot, *arguments)

    def change_shard(self, index: int, method: str, *arguments: Any) -> None:
        """Call a method that changes a shard, and record the call until a backup contains the change."""
        call = (method, *arguments)
        self.ask({index: call})
        self.shards[index].changes.append(call)

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None) -> list[UpdateStats]:
        """Implements ``Learner``. Each shard that has rollouts takes one update, once its last backup has arrived."""
        parts: dict[int, list[Rollout]] = {}
        for rollout in rollouts:
            parts.setdefault(self.shard_of[rollout.slot], []).append(rollout)
        for index in parts:
            self._await_backup(index)
        calls: dict[int, Call] = {}
        for index, part in sorted(parts.items()):
            own = {slot: tuning for slot, tuning in (tunings or {}).items() if self.shard_of[slot] == index}
            calls[index] = ("update", self.shards[index].num_updates, part, own)
        answers = self.ask(calls)
        for index, call in calls.items():
            self.shards[index].num_updates += 1
            self.shards[index].changes.append(call)
            self._begin_backup(index)
        self._rebalance()
        return sorted((one for part in answers.values() for one in part), key=lambda one: one.slot)

    def take_events(self) -> list[ShardEvent]:
        """Return what happened to the shards since the last call."""
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        """End all shards."""
        for shard in self.shards:
            shard.connection.close()
        self.host.close()

    def _send(self, index: int, call: Call) -> Answer:
        method, *arguments = call
        return self.shards[index].connection.send(method, *arguments)

    def _finish(self, index: int, call: Call, answer: Answer) -> Any:
        losses = 0
        while True:
            try:
                return answer()
            except ShardLost as lost:
                losses = self._replace(index, lost, losses)
                answer = self._send(index, call)

    def _begin_backup(self, index: int) -> None:
        shard = self.shards[index]
        shard.backup, shard.num_kept = self.host.keep(index, shard.connection), len(shard.changes)

    def _await_backup(self, index: int) -> None:
        """Wait for the backup that is being transferred, if any, and drop the recorded changes that it contains."""
        shard, losses = self.shards[index], 0
        while shard.backup is not None:
            try:
                shard.backup()
                del shard.changes[: shard.num_kept]
                shard.backup = None
            except ShardLost as lost:
                losses = self._replace(index, lost, losses)

    def _replace(self, index: int, lost: ShardLost, losses: int) -> int:
        """Rebuild a lost shard; return the losses of the call so far. Raises UserError when they are too many."""
        while True:
            losses, self.num_lost = losses + 1, self.num_lost + 1
            self._record(index, "lost", str(lost))
            if losses > MAX_LOSSES_OF_A_CALL or self.num_lost > MAX_LOSSES:
                raise UserError(
                    f"shard {index} was lost {losses} times over one call, and {self.num_lost} shards were lost in all "
                    f"(last: {lost}): find the cause, then `redqueen resume` the run"
                )
            self.shards[index].connection.close()
            try:
                self._reopen(index)
                return losses
            except ShardLost as again:
                lost = again

    def _reopen(self, index: int) -> None:
        shard = self.shards[index]
        shard.connection = self.host.open(index, shard.slots)
        backup = self.host.kept(index)
        if backup is not None:
            shard.connection.send("restore", backup)()
        for call in shard.changes:
            self._send(index, call)()
        if shard.backup is not None:  # the transfer may have been lost with the shard
            self._begin_backup(index)
        self._record(index, "opened")

    def _record(self, index: int, what: str, detail: str = "") -> None:
        self.events.append(ShardEvent(index, what, self.shards[index].connection.node, detail))

    def _rebalance(self) -> None:
        """Move shards to machines with more free cores, each as soon as its backup has arrived."""
        for index in self.host.misplaced([shard.connection for shard in self.shards]):
            self._await_backup(index)
            self._record(index, "moved")
            self.shards[index].connection.close()
            try:
                self._reopen(index)
            except ShardLost as lost:
                self._replace(index, lost, 0)
