"""The learning rate of each step, worked out by hand."""

import pytest

from redqueen.config import LearnConfig, parse_config
from redqueen.errors import UserError
from redqueen.loop import tunings
from redqueen.records import Genes, Individual, Rating


def fracs(steps: tuple[int, ...], num_steps: int = 120, **fields: object) -> list[float]:
    return [LearnConfig(**fields).rate_frac(step, num_steps) for step in steps]


def test_without_a_schedule_the_rate_is_the_same_at_every_step() -> None:
    assert fracs((1, 60, 120)) == [1.0, 1.0, 1.0]


def test_linear_decay_is_full_up_to_its_start_half_way_in_the_middle_and_at_the_floor_at_its_end() -> None:
    got = fracs((1, 20, 70, 120, 200), decay="linear", decay_from_step=20)
    assert got == pytest.approx([1.0, 1.0, 0.05 + 0.95 * 0.5, 0.05, 0.05])


def test_cosine_decay_is_slow_at_both_ends() -> None:
    # At a third of the way cos(pi / 3) = 1/2, so 3/4 of the height is left; at two thirds 1/4.
    got = fracs((0, 40, 60, 80, 120), decay="cosine")
    assert got == pytest.approx([1.0, 0.05 + 0.95 * 0.75, 0.05 + 0.95 * 0.5, 0.05 + 0.95 * 0.25, 0.05])


def test_the_decay_may_end_before_the_run() -> None:
    got = fracs((50, 100, 101), decay="linear", decay_to_step=100)
    assert got == pytest.approx([0.525, 0.05, 0.05])


def test_a_decay_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(UserError, match="decay_to_step must be above decay_from_step"):
        parse_config({"learn": {"decay_from_step": 20, "decay_to_step": 20}}, "test")


def test_a_member_is_stepped_with_the_rate_of_the_step_times_its_gene() -> None:
    learn = {"learning_rate": 0.1, "decay": "linear", "decay_from_step": 20}
    config = parse_config({"run": {"num_steps": 120}, "learn": learn}, "test")
    members = [Individual(str(at), "student", at, Rating(25, 8), genes=Genes(at + 1.0)) for at in range(2)]
    found = tunings(members, 70, config)
    assert [found[at].learning_rate for at in range(2)] == pytest.approx([0.1 * 0.525, 0.2 * 0.525])


def test_teachers_are_learned_from_at_the_temperature_of_proposals() -> None:
    config = parse_config({"propose": {"temperature": 0.6}, "solve": {"temperature": 0.8}}, "test")
    roles = (("teacher", 1.0), ("teacher", 2.0), ("student", 2.0))
    members = [
        Individual(str(slot), role, slot, Rating(25, 8), genes=Genes(temperature=gene))
        for slot, (role, gene) in enumerate(roles)
    ]
    found = tunings(members, 1, config)
    assert [found[slot].temperature for slot in range(3)] == pytest.approx([0.75, 1.5, 2.0])
    assert tunings(members, 1, parse_config({"solve": {"temperature": 0.8}}, "test"))[0].temperature == 1.0


def test_one_adapter_in_both_roles_has_one_temperature() -> None:
    single = {"population": {"single": True, "num_teachers": 1, "num_students": 1}, "propose": {"temperature": 0.6}}
    with pytest.raises(UserError, match=r"propose\.temperature needs two roles"):
        parse_config(single, "test")
