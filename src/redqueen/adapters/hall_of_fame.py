"""The hall of fame: frozen past members, kept as opponents, so that members do not lose what they had learned.

An entry is a copy in an adapter slot of its own, which is never trained or replaced; the member itself continues to
learn. When a role's hall is full the entry goes whose neighbours in time are closest, so that the hall always spans the
whole run; the oldest and the newest stay. Source: Rosin and Belew (1997), "New methods for competitive coevolution";
the thinning is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redqueen.records import Individual, Role


@dataclass(frozen=True)
class Entry:
    """A past member as it was at ``admitted_step``. Its id is the member's with the step, as ``S2@40``."""

    individual: Individual
    admitted_step: int

    @property
    def member(self) -> str:
        """The id of the member that was copied."""
        return self.individual.id.rpartition("@")[0]


@dataclass(frozen=True)
class HallOfFame:
    """Entries in order of admission; at most ``capacity`` of each role, 0: there is no hall.

    The hall's slots begin at ``first_slot`` of the adapter bank: ``capacity`` for teachers, then as many for students.
    """

    capacity: int = 0
    first_slot: int = 0
    entries: tuple[Entry, ...] = ()


def admit(hall: HallOfFame, individual: Individual, step: int) -> tuple[HallOfFame, Entry | None]:
    """Return the hall with ``individual`` as it is now, thinned to its capacity, and its entry.

    The caller copies the factors from the individual's slot into the entry's. No entry (None) when the hall has no
    capacity at all, or when this member entered in this very step already.
    """
    name = f"{individual.id}@{step}"
    if hall.capacity == 0 or any(entry.individual.id == name for entry in hall.entries):
        return hall, None
    of_role = [entry for entry in hall.entries if entry.individual.role == individual.role]
    gone = None
    if len(of_role) == hall.capacity:
        gone = of_role[_redundant([*(entry.admitted_step for entry in of_role), step])]
    slot = gone.individual.slot if gone else _free_slot(hall, individual.role)
    entry = Entry(replace(individual, id=name, slot=slot), step)
    return replace(hall, entries=(*(e for e in hall.entries if e is not gone), entry)), entry


def opponents(hall: HallOfFame, role: Role) -> list[Individual]:
    """The past members of a role, oldest first, with the ratings they had."""
    return [entry.individual for entry in hall.entries if entry.individual.role == role]


def _free_slot(hall: HallOfFame, role: Role) -> int:
    first = hall.first_slot + (hall.capacity if role == "student" else 0)
    taken = {entry.individual.slot for entry in hall.entries}
    return next(slot for slot in range(first, first + hall.capacity) if slot not in taken)


def _redundant(steps: Sequence[int]) -> int:
    """The index of the entry whose neighbours are closest in time, except the first and the last; of two, the first."""
    if len(steps) == 2:
        return 0
    return min(range(1, len(steps) - 1), key=lambda i: steps[i + 1] - steps[i - 1])
