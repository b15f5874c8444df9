"""References and averages: what follows a member in slots of its own."""

import torch
from tiny_models import tiny_bank

from redqueen.config import LearnConfig
from redqueen.config.slots import Slots
from redqueen.learn.followers import Followers, renew_references
from redqueen.learn.torch_learner import TorchLearner
from redqueen.learn.torch_store import TorchStore
from redqueen.nouns import BASE_SLOT

SLOTS = Slots.of(2, 0, references=True, averages=True, distilled=False)
"""Members 0 and 1, references 2 and 3, averages 4 and 5."""


def store_of(**fields: object) -> TorchStore:
    bank = tiny_bank(num_members=6)
    return TorchStore(bank, TorchLearner(bank, LearnConfig(**fields), slots=SLOTS))


def test_adapters_lie_one_sort_behind_the_other() -> None:
    slots = Slots.of(3, 2, references=False, averages=True, distilled=True)
    assert [list(part) for part in (slots.members, slots.hall, slots.references, slots.averages, slots.distilled)] == [
        [0, 1, 2], [3, 4], [], [5, 6, 7], [8],
    ]  # fmt: skip
    assert slots.num_adapters == 9 and slots.judged == {0: 5, 1: 6, 2: 7}


def test_followers_begin_as_their_member_and_a_newborns_as_the_newborn() -> None:
    store = store_of()
    flat = store.bank.flat
    assert torch.equal(flat[2:4], flat[:2]) and torch.equal(flat[4:6], flat[:2])
    child = store.genotype(1)
    store.load(0, child)
    assert torch.equal(flat[2], flat[1]) and torch.equal(flat[4], flat[1])


def test_an_average_keeps_its_share_and_takes_the_rest_from_its_member() -> None:
    bank = tiny_bank(num_members=6)
    followers = Followers(bank, SLOTS)
    bank.flat[0], bank.flat[4] = 1.0, 0.0
    bank.flat[1], bank.flat[5] = 1.0, 0.0
    followers.average([0], 0.75)
    followers.average([0], 0.75)
    # 0 -> 1/4 -> 3/4 * 1/4 + 1/4 = 7/16; the member that was not stepped keeps its average
    assert torch.allclose(bank.flat[4], torch.full_like(bank.flat[4], 7 / 16))
    assert torch.equal(bank.flat[5], torch.zeros_like(bank.flat[5]))


def test_a_reference_is_renewed_every_so_many_steps_and_moments_only_when_asked() -> None:
    for resets in (False, True):
        store = store_of()
        state = {"step": torch.tensor(1.0), "exp_avg": torch.ones(store.bank.num_parameters)}
        store.learner.optimiser.state[store.learner.members[0]] = dict(state)
        store.bank.flat[0] += 1.0
        config = LearnConfig(kl_weight=0.1, kl_to="reference", reference_every_steps=3, reference_resets_moments=resets)
        renew_references(store, SLOTS, 4, config)
        assert not torch.equal(store.bank.flat[2], store.bank.flat[0])
        renew_references(store, SLOTS, 6, config)
        assert torch.equal(store.bank.flat[2], store.bank.flat[0])
        assert ("0.step" in store.learner.state_dict()) is not resets


def test_without_slots_of_their_own_members_are_held_to_the_base() -> None:
    followers = Followers(tiny_bank(num_members=2), None)
    assert followers.reference(1) == BASE_SLOT and followers.averages == {}
