"""Frozen past members: copies, bounded, spread over the run, and safe through a checkpoint."""

import itertools
import json

import pytest
import torch

from redqueen.errors import UserError
from redqueen.nouns import Individual, Rating
from redqueen.population.genotype import Genotype, distance
from redqueen.population.hall_of_fame import HallOfFame, admit, from_plain, genotype_of, opponents, to_plain


def member(name: str = "S0", role: str = "student") -> Individual:
    return Individual(name, role, 4, Rating(27.0, 2.0), 3, ("S1", "S2"), "X3")


def adapter(seed: int) -> Genotype:
    rng = torch.Generator().manual_seed(seed)
    return Genotype({"q": (torch.randn(2, 5, generator=rng), torch.randn(4, 2, generator=rng))}, 4.0)


def hall_after(steps: list[int], capacity: int = 4) -> HallOfFame:
    hall = HallOfFame(capacity)
    for step in steps:
        hall = admit(hall, member(), adapter(step), step)
    return hall


def test_an_entry_is_a_frozen_copy_with_a_name_of_its_own() -> None:
    genotype = adapter(0)
    hall = admit(HallOfFame(4), member(), genotype, 40)
    genotype.factors["q"][0].zero_()
    assert distance(genotype_of(hall, "S0@40"), adapter(0)) == 0.0
    (past,) = opponents(hall, "student")
    assert past.id == "S0@40" and past.rating == Rating(27.0, 2.0)
    with pytest.raises(KeyError):
        genotype_of(hall, "S0@41")


def test_a_full_hall_still_spans_the_whole_run() -> None:
    hall = hall_after(list(range(10, 210, 10)), capacity=4)
    steps = [entry.admitted_step for entry in hall.entries]
    assert len(steps) == 4 and steps[0] == 10 and steps[-1] == 200
    gaps = [later - earlier for earlier, later in itertools.pairwise(steps)]
    assert max(gaps) <= 100


def test_the_entry_between_the_closest_neighbours_goes() -> None:
    # Without 20 the gap is 30 - 0 = 30, without 30 it would be 90 - 20 = 70, without 90 it would be 70.
    assert [e.admitted_step for e in hall_after([0, 20, 30, 90, 100], capacity=4).entries] == [0, 30, 90, 100]


def test_a_hall_of_one_keeps_the_newest() -> None:
    assert [e.admitted_step for e in hall_after([10, 20, 30], capacity=1).entries] == [30]


def test_each_role_has_its_own_room() -> None:
    hall = admit(hall_after([10, 20], capacity=2), member("T0", "teacher"), adapter(1), 20)
    assert [p.id for p in opponents(hall, "teacher")] == ["T0@20"]
    assert [p.id for p in opponents(hall, "student")] == ["S0@10", "S0@20"]


def test_the_same_member_of_the_same_step_enters_once() -> None:
    assert len(hall_after([10, 10]).entries) == 1


def test_a_hall_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room"):
        HallOfFame(0)


def test_a_checkpoint_gives_the_same_hall_back() -> None:
    hall = hall_after([10, 20])
    plain, tensors = to_plain(hall)
    again = from_plain(json.loads(json.dumps(plain)), tensors)
    assert [e.individual for e in again.entries] == [e.individual for e in hall.entries]
    assert again.capacity == hall.capacity
    for entry in hall.entries:
        restored = genotype_of(again, entry.individual.id)
        assert all(torch.equal(x, y) for x, y in zip(restored.factors["q"], entry.genotype.factors["q"], strict=True))
        assert restored.alpha == 4.0


def test_a_torn_checkpoint_is_named() -> None:
    plain, tensors = to_plain(hall_after([10]))
    del tensors["hall/S0@10/q/A"]
    with pytest.raises(UserError, match="hall/S0@10/q/A"):
        from_plain(plain, tensors)
