"""A population divided into shards: the parts are one population, whatever process they stand in."""

import pickle
from pathlib import Path

import pytest
import torch

from redqueen.adapters.genotype import flattened
from redqueen.cluster.fleet import partition
from redqueen.cluster.host import LocalHost
from redqueen.cluster.sharded import sharded_adapters
from redqueen.config import Config, DistillConfig, load_config
from redqueen.config.load import Slots
from redqueen.engine import load_adapters, set_up_torch
from redqueen.learn.distillation import Example, fine_tune
from redqueen.records import BASE_SLOT, Request, Rollout
from redqueen.streams import Streams

SMALL = [
    "population.num_teachers=2",
    "population.num_students=2",
    "population.lora_rank=4",
    "run.num_threads=1",
    "model.precision=fp32",
    "solve.max_new_tokens=12",
    "cluster.num_shards=2",
]


@pytest.fixture
def config() -> Config:
    config = load_config(Path("configs/smoke.toml"), SMALL)
    set_up_torch(config)
    return config


def requests(slots: list[int]) -> list[Request]:
    return [Request(slot, (1, 30 + i, 40), 3, 1000 + i) for i, slot in enumerate(slots)]


def test_members_the_hall_and_the_distilled_adapter_are_dealt_out_in_turn() -> None:
    assert partition(Slots.of(8, 0, distilled=False), 3) == [(0, 3, 6), (1, 4, 7), (2, 5)]
    assert partition(Slots.of(4, 3, distilled=True), 2) == [(0, 2, 4, 6, 7), (1, 3, 5)]


def test_founders_are_those_of_one_process(config: Config) -> None:
    whole, parts = load_adapters(config), sharded_adapters(config, LocalHost(config))
    for slot in range(4):
        assert torch.equal(flattened(whole.store.genotype(slot)), flattened(parts.store.genotype(slot)))


def test_a_members_factors_travel_once_and_not_once_a_layer(config: Config) -> None:
    genotype = sharded_adapters(config, LocalHost(config)).store.genotype(1)
    num_bytes = 4 * flattened(genotype).numel()
    assert num_bytes < len(pickle.dumps(genotype)) < 1.5 * num_bytes + 50_000


def test_samples_and_updates_are_those_of_one_process_within_rounding(config: Config) -> None:
    whole, parts = load_adapters(config), sharded_adapters(config, LocalHost(config))
    asked = requests([0, 1, 2, 3, BASE_SLOT, BASE_SLOT])
    one, other = whole.solver.sample(asked), parts.solver.sample(asked)
    assert [[c.tokens for c in group] for group in one] == [[c.tokens for c in group] for group in other]
    rollouts = [
        Rollout(request.slot, request.prompt, tuple(group), (1.0, -0.5, -0.5))
        for request, group in zip(asked[:4], one[:4], strict=True)
    ]
    for got, wanted in zip(parts.learner.update(rollouts), whole.learner.update(rollouts), strict=True):
        assert got.slot == wanted.slot and got.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-4)
    for slot in range(4):
        gap = flattened(whole.store.genotype(slot)) - flattened(parts.store.genotype(slot))
        assert gap.abs().max() < 1e-4


def test_a_checkpoint_passes_between_one_process_and_shards(config: Config) -> None:
    whole, parts = load_adapters(config), sharded_adapters(config, LocalHost(config))
    asked = requests([0, 1, 2, 3])
    groups = whole.solver.sample(asked)
    whole.learner.update(
        [Rollout(r.slot, r.prompt, tuple(g), (1.0, 0.0, -1.0)) for r, g in zip(asked, groups, strict=True)]
    )
    saved = {name: tensor.clone() for name, tensor in whole.store.state_dict().items()}
    parts.store.load_state(saved)
    again = parts.store.state_dict()
    assert again.keys() == saved.keys()
    assert all(torch.equal(again[name], saved[name]) for name in saved)


def test_a_copy_from_another_shard_is_the_same_adapter_without_moments(config: Config) -> None:
    parts = sharded_adapters(config, LocalHost(config))
    asked = requests([0])
    group = parts.solver.sample(asked)[0]
    parts.learner.update([Rollout(0, asked[0].prompt, tuple(group), (1.0, 0.0, -1.0))])
    parts.store.copy(0, into=1)
    state = parts.store.state_dict()
    assert torch.equal(state["factors"][0], state["factors"][1])
    assert "learner.0.exp_avg" in state and "learner.1.exp_avg" not in state


def test_distillation_over_shards_is_that_of_one_process_within_rounding(config: Config) -> None:
    config = config.model_copy(update={"run": config.run.model_copy(update={"product": "distilled"})})
    examples = [Example((1, 30 + i, 40), (41, 42 + i, 43)) for i in range(6)]
    rules, slot = DistillConfig(batch_size=2, warmup_updates=0), config.slots.distilled[0]
    made = []
    for adapters in (load_adapters(config), sharded_adapters(config, LocalHost(config))):
        result = fine_tune(examples, adapters.store, adapters.learner, slot, rules, Streams(0, 0))
        made.append((result.nats, flattened(adapters.store.genotype(slot))))
    assert made[0][0] == pytest.approx(made[1][0], rel=1e-4) and made[0][0][1] < made[0][0][0]
    assert (made[0][1] - made[1][1]).abs().max() < 1e-3
