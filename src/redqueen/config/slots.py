"""Where in the adapter bank each sort of adapter is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slots:
    """Members first, so that their slots are the same in every run, then what a config adds; each may be empty.

    ``hall``: frozen past members, teachers' first, then students'. ``distilled``: the slot of the distilled adapter.
    """

    members: range
    hall: range
    distilled: range

    @staticmethod
    def of(num_members: int, num_hall: int, distilled: bool) -> Slots:
        """Lay them out one after the other."""
        start = num_members + num_hall
        return Slots(range(num_members), range(num_members, start), range(start, start + int(distilled)))

    def shard_of(self, slot: int, num_shards: int) -> int:
        """Return which of ``num_shards`` parts a slot is in: those of each sort in turn."""
        for whole in (self.members, self.hall, self.distilled):
            if slot in whole:
                return whole.index(slot) % num_shards
        raise IndexError(f"there is no slot {slot}")

    @property
    def num_adapters(self) -> int:
        """Adapters in the bank."""
        return self.distilled.stop
