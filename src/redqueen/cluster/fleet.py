"""All shards of a run: calls go to all of them at once, and a lost shard is replaced by an exact copy.

A lost shard is rebuilt from its newest backup, which the host keeps on another machine, and from the changes since
(an update, children, resets), which are recorded here until a newer backup has arrived. A backup begins after each
update and is awaited before the next one, so it travels while shards sample. The rebuilt shard is then asked the same
call again. A shard computes the same on any machine, so losses do not change a run's results.
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
"""A call that loses more shards than this is at fault itself."""
MAX_LOSSES = 100
"""Shards that a session may lose before it stops."""

Call = tuple[Any, ...]
"""A method of ``Shard`` and its arguments."""


@dataclass
class _Place:
    """A shard as it is known from outside."""

    slots: tuple[int, ...]
    connection: Connection
    num_updates: int = 0
    changes: list[Call] = field(default_factory=list)
    """What changed the shard after the newest backup that has arrived, in order."""
    backup: Answer | None = None
    """A backup on its way, which holds the first ``num_kept`` changes."""
    num_kept: int = 0


def partition(slots: Slots, num_shards: int) -> list[tuple[int, ...]]:
    """Return the slots of each shard: members in turn, so that roles spread evenly, with the slots that follow them."""
    shard_of = [slots.shard_of(slot, num_shards) for slot in range(slots.num_adapters)]
    return [tuple(slot for slot, at in enumerate(shard_of) if at == shard) for shard in range(num_shards)]


class Fleet:
    """All shards of a run on one host. Raises UserError when a shard cannot be opened."""

    def __init__(self, config: Config, host: Host) -> None:
        self.host = host
        self.events: list[ShardEvent] = []
        self.num_lost = 0
        slots = partition(config.slots, config.cluster.num_shards)
        self.places: list[_Place] = []
        for index, part in enumerate(slots):
            try:
                self.places.append(_Place(part, host.open(index, part)))
            except ShardLost as lost:
                self.close()
                raise UserError(
                    f"shard {index} cannot be opened ({lost}): lower cluster.num_shards or add machines"
                ) from None
            self._record(index, "opened")
        self.shard_of = {slot: i for i, part in enumerate(slots) for slot in part}

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Ask several shards at once, by index; return their answers when all have arrived.

        Raises what a shard raised, and UserError when too many shards were lost.
        """
        answers = {index: self._send(index, call) for index, call in calls.items()}
        return {index: self._finish(index, calls[index], answers[index]) for index in calls}

    def ask_member(self, slot: int, method: str) -> Any:
        """Ask the shard of a member for a method of ``Shard`` whose argument is the slot."""
        index = self.shard_of[slot]
        return self.ask({index: (method, slot)})[index]

    def change_member(self, slot: int, method: str, *arguments: Any) -> None:
        """Ask the shard of a member to change it: a method of ``Shard`` whose first argument is the slot."""
        self.change_shard(self.shard_of[slot], method, slot, *arguments)

    def change_shard(self, index: int, method: str, *arguments: Any) -> None:
        """Ask a shard to change, and record the change until a backup holds it."""
        call = (method, *arguments)
        self.ask({index: call})
        self.places[index].changes.append(call)

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
            calls[index] = ("update", self.places[index].num_updates, part, own)
        answers = self.ask(calls)
        for index, call in calls.items():
            self.places[index].num_updates += 1
            self.places[index].changes.append(call)
            self._begin_backup(index)
        self._rebalance()
        return sorted((one for part in answers.values() for one in part), key=lambda one: one.slot)

    def take_events(self) -> list[ShardEvent]:
        """Return what happened to the shards since the last call."""
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        """End all shards."""
        for place in self.places:
            place.connection.close()
        self.host.close()

    def _send(self, index: int, call: Call) -> Answer:
        method, *arguments = call
        return self.places[index].connection.send(method, *arguments)

    def _finish(self, index: int, call: Call, answer: Answer) -> Any:
        losses = 0
        while True:
            try:
                return answer()
            except ShardLost as lost:
                losses = self._replace(index, lost, losses)
                answer = self._send(index, call)

    def _begin_backup(self, index: int) -> None:
        place = self.places[index]
        place.backup, place.num_kept = self.host.keep(index, place.connection), len(place.changes)

    def _await_backup(self, index: int) -> None:
        """Wait for the backup on its way, if there is one, and forget the changes that it holds."""
        place, losses = self.places[index], 0
        while place.backup is not None:
            try:
                place.backup()
                del place.changes[: place.num_kept]
                place.backup = None
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
            self.places[index].connection.close()
            try:
                self._reopen(index)
                return losses
            except ShardLost as again:
                lost = again

    def _reopen(self, index: int) -> None:
        place = self.places[index]
        place.connection = self.host.open(index, place.slots)
        backup = self.host.kept(index)
        if backup is not None:
            place.connection.send("restore", backup)()
        for call in place.changes:
            self._send(index, call)()
        if place.backup is not None:  # it may have been lost with the shard
            self._begin_backup(index)
        self._record(index, "opened")

    def _record(self, index: int, what: str, detail: str = "") -> None:
        self.events.append(ShardEvent(index, what, self.places[index].connection.node, detail))

    def _rebalance(self) -> None:
        """Move shards to machines with more free cores, each as soon as its backup has arrived."""
        for index in self.host.misplaced([place.connection for place in self.places]):
            self._await_backup(index)
            self._record(index, "moved")
            self.places[index].connection.close()
            try:
                self._reopen(index)
            except ShardLost as lost:
                self._replace(index, lost, 0)
