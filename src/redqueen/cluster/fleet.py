"""The shards of a run together: calls go to all of them at once, and a shard that is lost is made anew.

What a shard was is known outside of it: a backup, which the host keeps on another machine, and all that changed the
shard since (an update, children, resets), which is remembered here until a newer backup has arrived. A backup is begun
after each update and waited for before the next, so that it travels while shards sample. A lost shard is opened again,
restored, brought up to date, and asked the same again. Shards compute the same wherever they stand, so a run that lost
shards is the run that lost none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redqueen.cluster.host import Connection, Host, Pending, ShardLost
from redqueen.config import Config
from redqueen.config.slots import Slots
from redqueen.errors import UserError
from redqueen.nouns import Rollout, ShardEvent, Tuning, UpdateStats

Call = tuple[Any, ...]
"""A method's name and its arguments."""


@dataclass
class _Place:
    """A shard as it is known from outside."""

    slots: tuple[int, ...]
    connection: Connection
    num_updates: int = 0
    changes: list[Call] = field(default_factory=list)
    """What changed it after the newest backup that has arrived, in order."""
    keeping: Pending | None = None
    """A backup on its way, which holds the first ``num_kept`` changes."""
    num_kept: int = 0


def partition(slots: Slots, num_shards: int) -> list[tuple[int, ...]]:
    """Return the slots of each shard: members in turn, so that roles spread evenly, and their followers with them."""
    shard_of = [slots.shard_of(slot, num_shards) for slot in range(slots.num_adapters)]
    return [tuple(slot for slot, at in enumerate(shard_of) if at == shard) for shard in range(num_shards)]


class Fleet:
    """All shards of a run on one host."""

    def __init__(self, config: Config, host: Host) -> None:
        self.config, self.host = config.cluster, host
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
                    f"shard {index} did not come up ({lost}): raise cluster.start_s, lower cluster.num_shards, or add "
                    "machines"
                ) from None
            self._opened(index)
        self.shard_of = {slot: i for i, part in enumerate(slots) for slot in part}

    def ask(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Ask several shards at once, by index; return their answers when all are there.

        Raises what a shard raised, and UserError when more shards were lost than the config allows.
        """
        pending = {index: self._send(index, call) for index, call in calls.items()}
        return {index: self._finish(index, calls[index], pending[index]) for index in calls}

    def change(self, slot: int, method: str, *arguments: Any) -> None:
        """Ask the shard of a member to change it: a method of ``Shard`` whose first argument is the slot."""
        self.change_shard(self.shard_of[slot], method, slot, *arguments)

    def change_shard(self, index: int, method: str, *arguments: Any) -> None:
        """Ask a shard to change, and remember it until a backup holds it."""
        call = (method, *arguments)
        self.ask({index: call})
        self.places[index].changes.append(call)

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning]) -> list[UpdateStats]:
        """Let every shard with rollouts take one update and begin its backup, once the one before has arrived."""
        parts: dict[int, list[Rollout]] = {}
        for rollout in rollouts:
            parts.setdefault(self.shard_of[rollout.slot], []).append(rollout)
        for index in parts:
            self._await_backup(index)
        own: dict[int, dict[int, Tuning]] = {index: {} for index in parts}
        for slot, tuning in tunings.items():
            if self.shard_of[slot] in own:
                own[self.shard_of[slot]][slot] = tuning
        calls: dict[int, Call] = {i: ("update", self.places[i].num_updates, parts[i], own[i]) for i in sorted(parts)}
        answers = self.ask(calls)
        for index, call in calls.items():
            self.places[index].num_updates += 1
            self.places[index].changes.append(call)
            self._begin_backup(index)
        self._rebalance()
        return sorted((one for part in answers.values() for one in part), key=lambda one: one.slot)

    def news(self) -> list[ShardEvent]:
        """Return what happened to the shards since the last call."""
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        """End all shards."""
        for place in self.places:
            place.connection.close()
        self.host.close()

    # Loss and recovery -----------------------------------------------------------------------------------------

    def _begin_backup(self, index: int) -> None:
        place = self.places[index]
        place.keeping, place.num_kept = self.host.keep(index, place.connection), len(place.changes)

    def _await_backup(self, index: int) -> None:
        """Wait for the backup that is on its way, if one is, and forget what it holds."""
        place = self.places[index]
        for losses in range(self.config.num_losses_of_a_call + 1):
            if place.keeping is None:
                return
            try:
                place.keeping.get()
                del place.changes[: place.num_kept]
                place.keeping = None
            except ShardLost as lost:
                self._replace(index, lost, losses)

    def _send(self, index: int, call: Call) -> Pending:
        method, *arguments = call
        return self.places[index].connection.send(method, *arguments)

    def _finish(self, index: int, call: Call, pending: Pending) -> Any:
        for losses in range(self.config.num_losses_of_a_call + 1):
            try:
                return pending.get()
            except ShardLost as lost:
                self._replace(index, lost, losses)
                pending = self._send(index, call)
        raise AssertionError("a loss too many was not refused")

    def _replace(self, index: int, lost: ShardLost, losses_of_the_call: int) -> None:
        """Open a lost shard again and bring it to where it was. Raises UserError when losses are too many."""
        place = self.places[index]
        while True:
            self.num_lost += 1
            self.events.append(ShardEvent(index, "lost", place.connection.node, str(lost)))
            if losses_of_the_call >= self.config.num_losses_of_a_call:
                raise UserError(
                    f"shard {index} was lost {losses_of_the_call + 1} times over one call (last: {lost}); see what "
                    "ends it, then `redqueen resume` the run, or raise cluster.num_losses_of_a_call"
                )
            if self.num_lost > self.config.num_losses:
                raise UserError(
                    f"{self.num_lost} shards were lost (last: {lost}); `redqueen resume` the run on a cluster that "
                    "stays, or raise cluster.num_losses"
                )
            place.connection.close()
            try:
                self._reopen(index)
                return
            except ShardLost as again:
                lost, losses_of_the_call = again, losses_of_the_call + 1

    def _reopen(self, index: int) -> None:
        place = self.places[index]
        place.connection = self.host.open(index, place.slots)
        backup = self.host.kept(index)
        if backup is not None:
            place.connection.send("restore", backup).get()
        for call in place.changes:
            self._send(index, call).get()
        if place.keeping is not None:  # it may have been lost with the shard
            self._begin_backup(index)
        self._opened(index)

    def _opened(self, index: int) -> None:
        self.events.append(ShardEvent(index, "opened", self.places[index].connection.node))

    def _rebalance(self) -> None:
        """Move shards that would stand better elsewhere, each as soon as all it is has been kept."""
        for index in self.host.misplaced([place.connection for place in self.places]):
            self._await_backup(index)
            place = self.places[index]
            self.events.append(ShardEvent(index, "moved", place.connection.node))
            place.connection.close()
            try:
                self._reopen(index)
            except ShardLost as lost:
                self._replace(index, lost, 0)
