"""Whatever shard is lost, whenever: the population ends as if none had been."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from lossy_host import Fate, LossyConnection, LossyHost

from redqueen.cluster.fleet import Fleet
from redqueen.cluster.host import ShardLost
from redqueen.cluster.shard import Shard
from redqueen.cluster.sharded import sharded_adapters
from redqueen.config import Config, load_config
from redqueen.engine import Adapters, set_up_torch
from redqueen.errors import UserError
from redqueen.records import Request, Rollout, UpdateStats

SMALL = [
    "population.num_teachers=1",
    "population.num_students=2",
    "population.lora_rank=2",
    "run.num_threads=1",
    "model.precision=fp32",
    "solve.max_new_tokens=4",
    "cluster.num_shards=2",
]


@pytest.fixture
def config() -> Config:
    config = load_config(Path("configs/smoke.toml"), SMALL)
    set_up_torch(config)
    return config


def learn(adapters: Adapters, step: int) -> list[UpdateStats]:
    asked = [Request(slot, (1, 30 + slot, 40), 2, 10 * step + slot) for slot in range(3)]
    groups = adapters.solver.sample(asked)
    return adapters.learner.update(
        [Rollout(r.slot, r.prompt, tuple(g), (1.0, -1.0)) for r, g in zip(asked, groups, strict=True)]
    )


def play(adapters: Adapters) -> tuple[list[UpdateStats], dict[str, torch.Tensor]]:
    """Two steps with a birth between them: every kind of call, on every shard."""
    stats = []
    for step in range(2):
        stats += learn(adapters, step)
        adapters.store.load(1, adapters.store.genotype(2))
        adapters.store.reset(2, rng_seed=7)
    return stats, {name: tensor.clone() for name, tensor in adapters.store.state_dict().items()}


def check_loss(config: Config, when: str, calls: Callable[[Fate], list[int]]) -> None:
    """Play undisturbed, then once for each of ``calls`` with the shard lost at that call; all must end equal."""
    undisturbed = Fate()
    stats, state = play(sharded_adapters(config, LossyHost(config, undisturbed)))
    assert set(undisturbed.methods) == {
        "limits",
        "genotype",
        "load",
        "reset",
        "sample",
        "update",
        "backup",
        "state_dict",
    }
    for call in calls(undisturbed):
        fate = Fate(**{when: {call}})
        again, tensors = play(sharded_adapters(config, LossyHost(config, fate)))
        assert fate.num_calls > undisturbed.num_calls, f"nothing was lost at call {call}"
        assert again == stats, f"call {call}, {undisturbed.methods[call - 1]}"
        assert tensors.keys() == state.keys()
        assert all(torch.equal(tensors[name], state[name]) for name in state), f"call {call}"


@pytest.mark.parametrize("when", ["lost_before", "lost_after"])
def test_a_shard_lost_at_a_call_of_any_kind_changes_nothing(config: Config, when: str) -> None:
    check_loss(config, when, lambda fate: sorted({method: i + 1 for i, method in enumerate(fate.methods)}.values()))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["lost_before", "lost_after"])
def test_a_shard_lost_at_any_call_at_all_changes_nothing(config: Config, when: str) -> None:
    check_loss(config, when, lambda fate: list(range(1, fate.num_calls + 1)))


def test_a_shard_lost_behind_its_update_takes_it_again_from_the_backup_before(config: Config) -> None:
    undisturbed = Fate()
    stats, state = play(sharded_adapters(config, LossyHost(config, undisturbed)))
    birth = len(undisturbed.methods) - undisturbed.methods[::-1].index("load")  # in the second step, behind its update
    fate = Fate(lost_before={birth})
    host = LossyHost(config, fate)
    again, tensors = play(sharded_adapters(config, host))
    recovery = ["restore", "load", "update", "backup", "load"]
    assert fate.methods[birth:] == recovery + undisturbed.methods[birth:]
    assert again == stats and all(torch.equal(tensors[name], state[name]) for name in state)


def test_a_backup_counts_when_the_next_update_has_waited_for_it(config: Config) -> None:
    host = LossyHost(config, Fate())
    adapters = sharded_adapters(config, host)
    learn(adapters, 0)
    adapters.store.reset(2, rng_seed=7)
    assert [host.kept(index) for index in (0, 1)] == [None, None]
    learn(adapters, 1)
    kept = [host.kept(index) for index in (0, 1)]
    assert [backup.num_updates for backup in kept if backup is not None] == [1, 1]


def test_a_shard_whose_members_learn_nothing_is_neither_asked_nor_backed_up(config: Config) -> None:
    fate = Fate()
    adapters = sharded_adapters(config, LossyHost(config, fate))
    request = Request(1, (1, 30, 40), 2, 0)
    answers = adapters.solver.sample([request])[0]
    before = len(fate.methods)
    adapters.learner.update([Rollout(1, request.prompt, tuple(answers), (1.0, -1.0))])
    assert sorted(fate.methods[before:]) == ["backup", "update"]


def test_an_update_that_is_asked_twice_is_taken_once(config: Config) -> None:
    shard = Shard(config, (0,))
    group = shard.sample("solver", [Request(0, (1, 30, 40), 2, 5)])[0]
    rollouts = [Rollout(0, (1, 30, 40), tuple(group), (1.0, -1.0))]
    first = shard.update(0, rollouts, {})
    factors = shard.store.bank.flat.clone()
    assert shard.update(0, rollouts, {}) == first
    assert torch.equal(shard.store.bank.flat, factors)
    with pytest.raises(ValueError, match="update 3 was requested from a shard that has taken 1"):
        shard.update(2, rollouts, {})


def test_a_shard_that_moves_takes_everything_with_it(config: Config) -> None:
    still = sharded_adapters(config, LossyHost(config, Fate()))
    host = LossyHost(config, Fate())
    moving = sharded_adapters(config, host)
    host.moving = [1]
    stats, state = play(still)
    again, tensors = play(moving)
    assert [(e.what, e.node) for e in moving.take_events()][2:] == [("moved", "machine 2"), ("opened", "machine 3")]
    assert again == stats and all(torch.equal(tensors[name], state[name]) for name in state)


def test_a_call_that_ends_every_shard_ends_the_run_with_a_remedy(config: Config) -> None:
    fleet = Fleet(config, LossyHost(config, Fate(lost_before={1, 2, 3, 4, 5})))
    with pytest.raises(UserError, match=r"shard 0 was lost 4 times over one call.*redqueen resume"):
        fleet.ask({0: ("genotype", 0)})


def test_too_many_losses_in_all_end_the_run_with_a_remedy(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redqueen.cluster.fleet.MAX_LOSSES", 2)
    fleet = Fleet(config, LossyHost(config, Fate(lost_before={1, 3, 5})))
    fleet.ask({0: ("genotype", 0)})
    fleet.ask({0: ("genotype", 0)})
    with pytest.raises(UserError, match=r"3 shards were lost in all .*redqueen resume"):
        fleet.ask({0: ("genotype", 0)})


def test_a_fault_of_the_data_is_raised_and_not_repeated(config: Config) -> None:
    fate = Fate()
    fleet = Fleet(config, LossyHost(config, fate))
    with pytest.raises(UserError, match="at least one token"):
        fleet.ask({0: ("sample", "solver", [Request(0, (), 1, 0)])})
    assert fate.num_calls == 1 and fleet.num_lost == 0


def test_a_shard_that_does_not_come_up_at_the_start_is_named_and_the_others_are_closed(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, closed, opened = LossyHost(config, Fate()), [], LossyHost.open

    def failing(self: LossyHost, index: int, slots: Sequence[int]) -> LossyConnection:
        if index == 1:
            raise ShardLost("no machine of the cluster has a free core")
        return opened(self, index, slots)

    monkeypatch.setattr(LossyHost, "open", failing)
    monkeypatch.setattr(LossyConnection, "close", lambda self: closed.append(self.node))
    with pytest.raises(UserError, match=r"shard 1 cannot be opened \(no machine .*: lower cluster.num_shards"):
        Fleet(config, host)
    assert closed == ["machine 1"]
