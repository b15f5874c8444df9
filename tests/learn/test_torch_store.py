"""The owner of adapters in this process: members put in, copied, published, saved and restored."""

from hashlib import sha256
from pathlib import Path

import pytest
import torch
from scripted import config_of
from tiny_models import tiny_bank

from redqueen.adapters.peft import read_adapter
from redqueen.errors import UserError
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.records import Completion, Rollout
from redqueen.remote.versions import Versions

COMPLETIONS = (Completion((3, 4), (-1.0, -1.0), 1.0, True), Completion((5, 6), (-1.0, -1.0), 1.0, True))


def learned_store() -> TorchStore:
    """A store of three members, of which the first has been stepped."""
    bank = tiny_bank()
    store = TorchStore(bank, TorchLearner(bank, config_of().learn))
    store.learner.update([Rollout(0, (1, 2), COMPLETIONS, (1.0, -1.0))])
    return store


def moments_of(store: TorchStore, slot: int) -> dict[str, torch.Tensor]:
    prefix = f"learner.{slot}."
    return {k.removeprefix(prefix): v for k, v in store.state_dict().items() if k.startswith(prefix)}


def test_a_new_member_has_no_moments() -> None:
    store = learned_store()
    assert moments_of(store, 0)
    store.load(0, store.genotype(2))
    assert moments_of(store, 0) == {}


def test_a_copy_is_the_same_adapter_and_a_founder_is_drawn_from_its_seed_alone() -> None:
    store = learned_store()
    store.learner.update([Rollout(2, (1, 2), COMPLETIONS, (1.0, -1.0))])
    store.copy(0, into=2)
    assert torch.equal(store.bank.flat[0], store.bank.flat[2])
    assert moments_of(store, 2) == {} != moments_of(store, 0)
    store.reset(0, 7)
    fresh = learned_store()
    fresh.reset(0, 7)
    assert torch.equal(store.bank.flat[0], fresh.bank.flat[0]) and moments_of(store, 0) == {}


def test_a_published_version_has_a_name_of_its_own_and_is_written_once(tmp_path: Path) -> None:
    store = learned_store()
    versions = Versions(store.bank, str(tmp_path))
    first = versions.of(0)
    written = first.stat().st_ctime_ns
    factors = store.bank.flat[0].numpy().tobytes()
    assert first.name == f"slot-0-{sha256(factors).hexdigest()[:16]}"
    assert versions.of(0) == first and first.stat().st_ctime_ns == written
    read, own = read_adapter(first).genotype, store.genotype(0)
    assert all(torch.equal(a, own.factors[name][0]) for name, (a, _) in read.factors.items())
    assert all(torch.equal(b, own.factors[name][1]) for name, (_, b) in read.factors.items())
    store.learner.update([Rollout(0, (1, 2), COMPLETIONS, (-1.0, 1.0))])
    second = versions.of(0)
    assert second != first and sorted(versions.root.iterdir()) == sorted([first, second])


def test_a_state_comes_back_whole_and_that_of_another_population_is_refused() -> None:
    store = learned_store()
    kept = {name: tensor.clone() for name, tensor in store.state_dict().items()}
    store.reset(0, 9)
    store.load_state(kept)
    assert all(torch.equal(tensor, store.state_dict()[name]) for name, tensor in kept.items())
    store.load_state({"factors": kept["factors"]})
    assert moments_of(store, 0) == {}
    with pytest.raises(UserError, match="adapters do not match"):
        store.load_state({"factors": kept["factors"][:2]})
