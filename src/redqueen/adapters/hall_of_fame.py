"""The hall of fame: frozen past members, kept as opponents against forgetting.

An entry is a copy in its own adapter slot and is never trained; the member itself continues to learn. When the hall of
a role is full, the entry whose neighbours in time are closest is removed, but never the oldest or the newest, so that
the hall spans the whole run. Source: Rosin and Belew (1997), "New methods for competitive coevolution"; the rule of
removal is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redqueen.records import Individual, Role


@dataclass(frozen=True)
class Entry:
    """A past member as it was at ``admitted_step``. Its id is the member's with the step: ``S2@40``."""

    individual: Individual
    admitted_step: int

    @property
    def member(self) -> str:
        """The id of the member that was copied."""
        return self.individual.id.rpartition("@")[0]


@dataclass(frozen=True)
class HallOfFame:
    """Entries in order of admission, at most ``capacity`` of each role (0: no hall of fame).

    Its slots begin at ``first_slot`` of the adapter bank: ``capacity`` for teachers, then as many for students.
    """

    capacity: int = 0
    first_slot: int = 0
    entries: tuple[Entry, ...] = ()


def admit(hall: HallOfFame, individual: Individual, step: int) -> tuple[HallOfFame, Entry | None]:
    """Add ``individual`` as it is now, remove an entry if the hall is full, and return the hall and the new entry.

    The caller copies the factors from the individual's slot into the entry's. The entry is None when the capacity is 0,
    or when this member was already admitted in this step.
    """
    name = f"{individual.id}@{step}"
    if hall.capacity == 0 or any(entry.individual.id == name for entry in hall.entries):
        return hall, None
    of_role = [entry for entry in hall.entries if entry.individual.role == individual.role]
    removed = None
    if len(of_role) == hall.capacity:
        removed = of_role[_redundant([*(entry.admitted_step for entry in of_role), step])]
    slot = removed.individual.slot if removed else _free_slot(hall, individual.role)
    entry = Entry(replace(individual, id=name, slot=slot), step)
    return replace(hall, entries=(*(e for e in hall.entries if e is not removed), entry)), entry


def opponents(hall: HallOfFame, role: Role) -> list[Individual]:
    """The past members of a role, oldest first, with their ratings at admission."""
    return [entry.individual for entry in hall.entries if entry.individual.role == role]


def _free_slot(hall: HallOfFame, role: Role) -> int:
    first = hall.first_slot + (hall.capacity if role == "student" else 0)
    taken = {entry.individual.slot for entry in hall.entries}
    return next(slot for slot in range(first, first + hall.capacity) if slot not in taken)


def _redundant(steps: Sequence[int]) -> int:
    """The index, other than the first and the last, whose neighbours are closest in time; of two entries, the first."""
    if len(steps) == 2:
        return 0
    return min(range(1, len(steps) - 1), key=lambda i: steps[i + 1] - steps[i - 1])
