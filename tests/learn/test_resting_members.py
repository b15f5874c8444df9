"""Members that rest in a file learn bit by bit as they would in memory, and come back from a checkpoint."""

from pathlib import Path

import pytest
import torch
from tiny_models import tiny_bank

from redqueen.config import LearnConfig
from redqueen.config.slots import Slots
from redqueen.learn.torch_learner import TorchLearner
from redqueen.learn.torch_store import TorchStore
from redqueen.nouns import Completion, Rollout

SLOTS = Slots.of(3, 0, references=True, averages=True, distilled=False)
CONFIG = LearnConfig(average_decay_frac=0.5, kl_weight=0.1, kl_to="reference")


def store_of(folder: str = "") -> TorchStore:
    bank = tiny_bank(num_members=SLOTS.num_adapters, resting_folder=folder)
    return TorchStore(bank, TorchLearner(bank, CONFIG, slots=SLOTS))


def learn(store: TorchStore, *slots: int) -> None:
    answers = (Completion((3, 4), (-1.0, -1.0), 1.0, True), Completion((5, 6, 7), (-1.0,) * 3, 1.0, True))
    store.learner.update([Rollout(slot, (1, 2 + slot), answers, (1.0, -1.0)) for slot in slots])


def lived(store: TorchStore) -> TorchStore:
    """Let some be stepped again and again, some rest, one be born with its parent's moments and one without."""
    for slots in ((0, 1, 2), (0,), (2, 0)):
        learn(store, *slots)
    store.load(1, store.genotype(0), moments_from=0)
    store.copy(2, into=0)
    learn(store, 1, 0)
    return store


def same(one: TorchStore, other: TorchStore) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_life_in_a_file_is_that_in_memory(tmp_path: Path) -> None:
    here, there = lived(store_of()), lived(store_of(str(tmp_path)))
    assert here.state_dict()["learner.2.step"].item() == 2.0
    assert same(here, there)


@pytest.mark.parametrize("ways", ["into the file", "out of the file"])
def test_a_state_passes_between_file_and_memory_and_the_members_go_on_alike(tmp_path: Path, ways: str) -> None:
    here, there = store_of(), store_of(str(tmp_path))
    before, after = (here, there) if ways == "into the file" else (there, here)
    after.load_state({name: tensor.clone() for name, tensor in lived(before).state_dict().items()})
    assert same(before, after)
    for store in (before, after):
        learn(store, 2, 1)
    assert same(before, after)


def test_moments_at_rest_lie_in_the_file_and_factors_of_a_rested_member_are_its_row(tmp_path: Path) -> None:
    store = lived(store_of(str(tmp_path)))
    rows = store.bank.resting.numbers
    assert torch.equal(rows[0], store.bank.flat)
    for slot, parameter in enumerate(store.learner.members):
        assert parameter.data_ptr() == rows[0, slot].data_ptr()
        for at, name in enumerate(("exp_avg", "exp_avg_sq"), start=1):
            if name in store.learner.optimiser.state[parameter]:
                assert store.learner.optimiser.state[parameter][name].data_ptr() == rows[at, slot].data_ptr()
    assert rows[1, 2].any() and rows[2, 1].any()
