"""The memory plan against what is really allocated."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_models import CONFIGS, tiny_bank

from redqueen.adapters.attention import PrefixCache
from redqueen.adapters.bank import AdapterBank, Route
from redqueen.adapters.decoding import Decoding
from redqueen.adapters.fused_decode import fused_decoder
from redqueen.adapters.memory import (
    LIBRARIES_BYTES,
    MemoryPlan,
    Work,
    available_bytes,
    logits_at_once,
    plan,
    plan_memory,
    refuse_if_too_large,
    work_of,
)
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import Config
from redqueen.errors import UserError
from redqueen.learn.batches import batches_of, by_member
from redqueen.records import Completion, Request, Rollout

WORK = Work(
    num_members=3,
    lora_rank=4,
    lora_targets="all-linear",
    bf16=False,
    on_cuda=False,
    sample_rows=6,
    prompt_tokens=10,
    prompt_cache_tokens=48,
    new_tokens=32,
    micro_batch_tokens=256,
)

QWEN_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}


def copied(bank: AdapterBank) -> int:
    """Return how many weights decoding keeps a second time."""
    own = {parameter.data_ptr() for parameter in bank.base.model.parameters()}
    fused = fused_decoder(bank)
    weights = [p.weight for layer in fused.layers for p in layer.projections] if fused else []
    return sum(weight.numel() for weight in weights if weight.data_ptr() not in own)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_weights_factors_and_moments_are_counted_exactly(architecture: str) -> None:
    bank = tiny_bank(architecture)
    memory = plan(CONFIGS[architecture].to_dict(), WORK)
    assert memory.base_bytes == sum(p.numel() * 4 for p in bank.base.model.parameters()) + copied(bank) * 4
    elsewhere = plan(CONFIGS[architecture].to_dict(), replace(WORK, sample_rows=0))
    assert elsewhere.base_bytes == memory.base_bytes - copied(bank) * 4
    assert elsewhere.cache_bytes == 0
    assert memory.factors_bytes == bank.flat.numel() * 4
    assert memory.moments_bytes == 2 * memory.factors_bytes


@pytest.mark.parametrize("architecture", CONFIGS)
def test_in_bf16_on_a_cpu_the_rounded_head_is_counted_with_the_base(architecture: str) -> None:
    bank = tiny_bank(architecture, precision="bf16")
    held = [*bank.base.model.parameters(), bank.base.rounded_head]
    memory = plan(CONFIGS[architecture].to_dict(), replace(WORK, bf16=True))
    assert memory.base_bytes == sum(tensor.numel() * tensor.element_size() for tensor in held) + copied(bank) * 2


@pytest.mark.parametrize(
    ("num_requests", "num_samples", "prompt_tokens", "places"),
    [(12, 1, 10, 3), (12, 2, 10, 3), (12, 6, 10, 2), (1, 6, 10, 1), (12, 2, 30, 1), (12, 2, 90, 1)],
)
def test_the_cache_of_a_call_is_what_is_counted_and_less_only_where_less_is_asked(
    num_requests: int, num_samples: int, prompt_tokens: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def noting(*arguments: Any) -> Decoding:
        decoding = Decoding(*arguments)
        made.append(len(decoding.jobs))
        return decoding

    monkeypatch.setattr("redqueen.adapters.torch_sampler.Decoding", noting)
    bank = tiny_bank("qwen3")
    sampler = TorchSampler(bank, 32, [], max_rows=6, prompt_cache_tokens=WORK.prompt_cache_tokens)
    requests = [Request(i % 3, (5,) * prompt_tokens, num_samples, i) for i in range(num_requests)]
    written = tokens_of(sampler.sample(requests))
    assert made == [places]
    assert tokens_of(TorchSampler(bank, 32, [], max_rows=6).sample(requests)) == written  # waiting changes nothing

    config = CONFIGS["qwen3"]
    whole = PrefixCache(config, 3, 16, 6, 32, torch.float32, torch.device("cpu"))
    allocated = sum(s.numel() * 4 for s in (*whole.prompt_k, *whole.prompt_v, *whole.own_k, *whole.own_v))
    assert plan(config.to_dict(), WORK).cache_bytes == allocated + 6 * 32 * 20 + 6 * 61 * 4 * 4
    room = places * -(-prompt_tokens // 16) * 16
    assert room <= WORK.prompt_cache_tokens or places == 1


def test_the_prompts_of_a_configured_run_are_counted_twice_those_of_whole_groups() -> None:
    sections: dict[str, Any] = {
        "propose": {"num_per_prompt": 8, "max_prompt_tokens": 300},
        "solve": {"num_attempts": 6, "max_rows": 128, "max_prompt_tokens": 200},
    }
    config = Config.model_validate(sections)
    assert work_of(config, QWEN_7B).prompt_cache_tokens == 2 * 22 * 300
    sections["solve"] |= {"num_attempts": 2, "max_prompt_tokens": 4000}
    assert work_of(Config.model_validate(sections), QWEN_7B).prompt_cache_tokens == 2 * 64 * 1024


def tokens_of(found: list[list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[completion.tokens for completion in one] for one in found]


@contextmanager
def counting_saved_bytes() -> Iterator[dict[int, int]]:
    """Collect what autograd keeps, one entry for each storage."""
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept


def besides_weights(kept: dict[int, int], bank: AdapterBank, route: Route) -> int:
    """Sum up the bytes of ``kept`` that are not the model's weights or the members' factors."""
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*bank.base.model.parameters(), *route.a, *route.b)}
    return sum(size for pointer, size in kept.items() if pointer not in weights)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mistral"])
def test_activations_are_estimated_within_a_third(architecture: str) -> None:
    bank = tiny_bank(architecture)
    tokens = torch.zeros(4, 64, dtype=torch.int64)
    positions = torch.arange(64).expand(4, 64)
    route = bank.route([0, 1, 2, 0], tokens_per_row=64, train=True)
    with counting_saved_bytes() as kept, bank.routed(route):
        bank.base.hidden(tokens, positions)
    measured = besides_weights(kept, bank, route)
    memory = plan(CONFIGS[architecture].to_dict(), WORK)
    factors = 3 * bank.num_parameters * 4 * 2
    logits = 256 * 61 * 4 * 3
    assert memory.activations_bytes - factors - logits == pytest.approx(measured, rel=0.35)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "mistral"])
def test_the_weights_of_a_long_prompts_attention_are_counted(architecture: str) -> None:
    bank, prompt_tokens = tiny_bank(architecture), 240
    attempt = Completion((5,) * 10, (-1.0,) * 10, 1.0, True)
    rollouts = [Rollout(i % 3, (i + 1,) * prompt_tokens, (attempt,) * 6, (1.0,) * 6) for i in range(6)]
    (batch,) = batches_of(by_member(rollouts), 6 * (prompt_tokens + 64), 0, torch.float32)
    route = bank.route(batch.owners, tokens_per_row=batch.tokens.shape[1], train=True)
    with counting_saved_bytes() as kept, bank.routed(route):
        bank.base.hidden(batch.tokens, batch.positions, tree=batch.tree)
    measured = besides_weights(kept, bank, route)
    num_tokens = batch.tokens.numel()
    work = replace(WORK, micro_batch_tokens=num_tokens, prompt_tokens=prompt_tokens, new_tokens=10)
    memory = plan(CONFIGS[architecture].to_dict(), work)
    factors = 3 * bank.num_parameters * 4 * 2
    logits = num_tokens * 61 * 4 * 3
    assert memory.activations_bytes - factors - logits == pytest.approx(measured, rel=0.35)


def test_a_7b_model_with_a_hundred_members_is_planned_without_being_made() -> None:
    memory = plan(QWEN_7B, Work(100, 32, "all-linear", True, True, 256, 1024, 65_536, 1024, 8192, True, 8))
    assert memory.base_bytes == pytest.approx(15.2e9, rel=0.01)
    assert memory.factors_bytes == pytest.approx(100 * 323e6, rel=0.01)


def test_what_cannot_fit_is_refused_with_what_to_lower() -> None:
    fits = MemoryPlan(100, 10, 20, 10, 50, 40, 5)
    refuse_if_too_large(fits, 195, "the GPU")
    with pytest.raises(UserError, match=r"195 B and the GPU has 194 B free: .*micro_batch_tokens"):
        refuse_if_too_large(fits, 194, "the GPU")
    with pytest.raises(UserError, match="max_rows"):
        refuse_if_too_large(MemoryPlan(100, 10, 20, 10, 50, 400, 5), 194, "the GPU")
    with pytest.raises(UserError, match="lora_rank"):
        refuse_if_too_large(fits, 120, "the GPU")


def test_what_is_held_holds_the_cache_and_the_learners_parts_at_once() -> None:
    memory = MemoryPlan(100, 10, 20, 10, 50, 40, 5)
    assert memory.peak_bytes == 5 + 100 + 10 + 20 + 60
    assert memory.held_bytes == memory.peak_bytes + 40
    assert "held" not in "".join(MemoryPlan(100, 10, 20, 10, 50, 40, 0).lines())


def test_a_configured_run_says_what_it_needs_part_by_part() -> None:
    first, *lines = plan_memory(Config(), QWEN_7B)
    assert first in ("matrix products in bf16", "matrix products in fp32")
    assert [line.split(":")[0] for line in lines] == [
        "base",
        "factors",
        "moments",
        "gradients",
        "activations",
        "cache",
        "libraries",
        "peak",
        "held where memory is not scarce",
        "free on this machine",
    ]
    assert all(line.endswith("B") for line in lines)
    assert [line.split(":")[0] for line in plan_memory(Config(), QWEN_7B, parts=False)] == [
        "peak",
        "held where memory is not scarce",
        "free on this machine",
    ]
    on_cuda = Config.model_validate({"run": {"device": "cuda"}})
    assert torch.cuda.is_available() or plan_memory(on_cuda, QWEN_7B)[-1].startswith("free: unknown")


def test_lengths_are_planned_as_the_base_has_positions_for_and_no_cache_where_a_server_samples() -> None:
    short = QWEN_7B | {"max_position_embeddings": 512}
    work = work_of(Config(), short)
    assert (work.new_tokens, work.prompt_tokens) == (256, 256)
    served = Config.model_validate({"sampler": {"kind": "vllm"}})
    assert work_of(served, short).sample_rows == 0 < work.sample_rows


def test_a_shape_that_is_no_language_model_is_refused() -> None:
    with pytest.raises(UserError, match="model_type"):
        plan({}, WORK)
    with pytest.raises(UserError, match="not of a supported causal language model"):
        plan({"model_type": "vit"}, WORK)


@pytest.mark.parametrize(
    "damage",
    [
        {"num_attention_heads": 0},
        {"num_attention_heads": None},
        {"hidden_size": "x"},
        {"hidden_size": -3},
        {"hidden_size": 0},
        {"vocab_size": -1},
        {"head_dim": "x"},
        {"hidden_act": "none such"},
        {"rope_scaling": "x"},
        {"layer_types": ["x"]},
        {"num_hidden_layers": 10**5},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": "many"},
        {"model_type": []},
    ],
    ids=repr,
)
def test_a_damaged_shape_is_refused_in_one_sentence(damage: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"not of a supported causal language model: \S"):
        plan(QWEN_7B | damage, WORK)


def test_this_machine_has_memory() -> None:
    assert available_bytes(torch.device("cpu")) > 1 << 20


def test_checkpointing_needs_less() -> None:
    shape = CONFIGS["qwen3"].to_dict() | {"num_hidden_layers": 8, "layer_types": ["full_attention"] * 8}
    without = plan(shape, WORK).activations_bytes
    assert plan(shape, Work(**vars(WORK) | {"checkpointing": True})).activations_bytes < without


def test_under_checkpointing_a_layer_costs_its_residual_stream_in_fp32_on_a_cpu_and_libraries_count_there() -> None:
    shape = CONFIGS["qwen3"].to_dict()
    for on_cuda, stream_bytes in ((False, 4), (True, 2)):
        work = replace(WORK, bf16=True, on_cuda=on_cuda, checkpointing=True)
        plans = [plan(shape | {"num_hidden_layers": n, "layer_types": ["full_attention"] * n}, work) for n in (8, 9)]
        factors = plans[1].gradients_bytes - plans[0].gradients_bytes  # in bf16, with gradients: as much as in fp32
        stream = plans[1].activations_bytes - plans[0].activations_bytes - factors
        assert stream == work.micro_batch_tokens * shape["hidden_size"] * stream_bytes
        assert plans[0].libraries_bytes == (0 if on_cuda else LIBRARIES_BYTES)


def test_a_configured_run_counts_who_learns_in_a_step() -> None:
    def counted(**sections: dict[str, object]) -> int:
        sections["population"] = {"num_teachers": 20, "num_students": 40, **sections.get("population", {})}
        return work_of(Config.model_validate(sections), QWEN_7B).num_learning

    assert counted() == 40
    assert counted(match={"rule": "all_pairs"}) == 60


def test_a_large_vocabulary_leaves_few_tokens_their_logits_at_a_time_on_a_cpu() -> None:
    assert logits_at_once(608, on_cuda=False) == logits_at_once(151_936, on_cuda=True) == 4096
    assert logits_at_once(151_936, on_cuda=False) * 151_936 * 4 <= 64 * 2**20
    assert logits_at_once(10**9, on_cuda=False) == 1
