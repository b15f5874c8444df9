"""Frozen past members: named, bounded, spread over the run, each in a slot of its own, safe through a checkpoint."""

import itertools

from redqueen.adapters.hall_of_fame import Entry, HallOfFame, admit, opponents
from redqueen.records import Individual, Rating


def member(name: str = "S0", role: str = "student") -> Individual:
    return Individual(name, role, 4, Rating(27.0, 2.0), 3, ("S1", "S2"), "X3")


def hall_after(steps: list[int], capacity: int = 4) -> HallOfFame:
    hall = HallOfFame(capacity, first_slot=8)
    for step in steps:
        hall, _ = admit(hall, member(), step)
    return hall


def test_an_entry_has_a_name_and_a_slot_of_its_own_and_the_rating_it_had() -> None:
    hall, entry = admit(HallOfFame(4, first_slot=8), member(), 40)
    assert entry is not None and entry.member == "S0"
    (past,) = opponents(hall, "student")
    assert (past.id, past.slot, past.rating) == ("S0@40", 12, Rating(27.0, 2.0))
    assert Entry(member("S0.10@40"), 40).member == "S0.10"


def test_a_full_hall_still_spans_the_whole_run() -> None:
    hall = hall_after(list(range(10, 210, 10)), capacity=4)
    steps = [entry.admitted_step for entry in hall.entries]
    assert len(steps) == 4 and steps[0] == 10 and steps[-1] == 200
    gaps = [later - earlier for earlier, later in itertools.pairwise(steps)]
    assert max(gaps) <= 100


def test_the_entry_between_the_closest_neighbours_goes_and_its_slot_is_taken_over() -> None:
    # Without 20 the gap is 30 - 0 = 30, without 30 it would be 90 - 20 = 70, without 90 it would be 70.
    before, after = hall_after([0, 20, 30, 90]), hall_after([0, 20, 30, 90, 100])
    assert [e.admitted_step for e in after.entries] == [0, 30, 90, 100]
    assert after.entries[-1].individual.slot == before.entries[1].individual.slot
    assert len({e.individual.slot for e in after.entries}) == 4


def test_a_hall_of_one_keeps_the_newest() -> None:
    assert [e.admitted_step for e in hall_after([10, 20, 30], capacity=1).entries] == [30]


def test_each_role_has_its_own_room_and_its_own_slots() -> None:
    hall, _ = admit(hall_after([10, 20], capacity=2), member("T0", "teacher"), 20)
    assert [(p.id, p.slot) for p in opponents(hall, "teacher")] == [("T0@20", 8)]
    assert [(p.id, p.slot) for p in opponents(hall, "student")] == [("S0@10", 10), ("S0@20", 11)]


def test_the_same_member_of_the_same_step_enters_once() -> None:
    assert len(hall_after([10, 10]).entries) == 1


def test_a_hall_without_room_takes_nobody() -> None:
    assert admit(HallOfFame(), member(), 10) == (HallOfFame(), None)
