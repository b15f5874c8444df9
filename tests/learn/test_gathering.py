"""Gradients that wait until enough groups have spoken."""

import torch

from redqueen.learn.gathering import Gathering

ONE, TWO, THREE = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([4.0, 4.0])
CPU = torch.device("cpu")


def test_a_batch_with_enough_groups_is_handed_on_as_it_is() -> None:
    assert Gathering(2).add(0, ONE, num_tokens=10, num_groups=2) is ONE


def test_what_is_gathered_is_the_mean_over_all_tokens() -> None:
    gathering = Gathering(5)
    assert gathering.add(0, ONE.clone(), num_tokens=10, num_groups=2) is None
    assert gathering.add(0, TWO.clone(), num_tokens=30, num_groups=2) is None
    # (10 (1, 0) + 30 (0, 2) + 60 (4, 4)) / 100
    whole = gathering.add(0, THREE.clone(), num_tokens=60, num_groups=1)
    assert torch.allclose(whole, torch.tensor([2.5, 3.0]))
    assert gathering.add(0, ONE.clone(), num_tokens=10, num_groups=4) is None


def test_members_wait_apart_and_a_newborn_has_nothing_waiting() -> None:
    gathering = Gathering(2)
    gathering.add(0, ONE.clone(), 10, 1)
    gathering.add(1, TWO.clone(), 10, 1)
    gathering.forget(0)
    assert gathering.add(0, THREE.clone(), 10, 1) is None
    assert torch.allclose(gathering.add(1, TWO.clone(), 10, 1), TWO)


def test_what_waits_comes_back_from_a_checkpoint() -> None:
    one, other = Gathering(3), Gathering(3)
    one.add(4, ONE.clone(), 10, 2)
    other.load_state(one.state_dict() | {"4.step": torch.tensor(1.0)}, CPU)
    for gathering in (one, other):
        assert torch.allclose(gathering.add(4, TWO.clone(), 10, 1), torch.tensor([0.5, 1.0]))
