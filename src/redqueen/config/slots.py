"""Where in the adapter bank each sort of adapter lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Slots:
    """Members first, so that their slots are the same in every run, then what a config adds; each may be empty.

    ``hall``: frozen past members, teachers' first, then students'. ``references`` and ``averages``: as many as members,
    in their order. ``distilled``: that of the adapter that is distilled at the end.
    """

    members: range
    hall: range
    references: range
    averages: range
    distilled: range

    @staticmethod
    def of(num_members: int, num_hall: int, references: bool, averages: bool, distilled: bool) -> Slots:
        """Lay them out one behind the other."""
        sizes = (num_members, num_hall, num_members * references, num_members * averages, int(distilled))
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        return Slots(*(range(end - size, end) for size, end in zip(sizes, ends, strict=True)))

    def part(self, slots: Sequence[int]) -> Slots:
        """Lay out those of ``slots`` (ascending) alone, numbered anew from 0; followers go with their members."""
        ends, end = [], 0
        for whole in (self.members, self.hall, self.references, self.averages, self.distilled):
            size = sum(slot in whole for slot in slots)
            ends.append(range(end, end + size))
            end += size
        return Slots(*ends)

    def shard_of(self, slot: int, num_shards: int) -> int:
        """Return which of ``num_shards`` parts a slot is in: members in turn, followers where their members are."""
        for whole in (self.members, self.hall, self.references, self.averages, self.distilled):
            if slot in whole:
                return whole.index(slot) % num_shards
        raise IndexError(f"there is no slot {slot}")

    @property
    def num_adapters(self) -> int:
        """Adapters in the bank."""
        return self.distilled.stop

    @property
    def judged(self) -> dict[int, int]:
        """Whose factors are scored in place of a member's: its average's, where there are averages."""
        return dict(zip(self.members, self.averages, strict=False))
