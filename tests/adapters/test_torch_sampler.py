"""The sampler: the same tokens as plain decoding, whatever the batching."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import CONFIGS, tiny_bank, tiny_model

from redqueen.adapters import torch_sampler
from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import Precision, freeze
from redqueen.adapters.decoding import Decoding, StopStrings
from redqueen.adapters.routing import ROW_TOKENS
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import load_config
from redqueen.engine import load_adapters
from redqueen.errors import UserError
from redqueen.records import Completion, Request

END = 3


def prompt(seed: int, length: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(4, 61, (length,), generator=generator).tolist())


def sampler(bank: AdapterBank, **options: float) -> TorchSampler:
    settings: dict = {"max_new_tokens": 12, "end_tokens": [END]} | options
    return TorchSampler(bank, **settings)


REQUESTS = [
    Request(slot=1, prompt=prompt(0, 5), num_samples=4, rng_seed=10),
    Request(slot=0, prompt=prompt(1, 17), num_samples=1, rng_seed=11),
    Request(slot=2, prompt=prompt(2, 9), num_samples=3, rng_seed=12),
    Request(slot=1, prompt=prompt(3, 1), num_samples=2, rng_seed=13),
    Request(slot=-1, prompt=prompt(4, 30), num_samples=2, rng_seed=14),
]


@pytest.mark.parametrize("architecture", CONFIGS)
def test_greedy_decoding_equals_generate_of_the_library(architecture: str) -> None:
    bank = tiny_bank(architecture)
    mine = sampler(bank, temperature=0.0).sample(REQUESTS[:3])
    for request, completions in zip(REQUESTS, mine, strict=False):
        ids = torch.tensor([request.prompt])
        with torch.no_grad(), bank.routed([request.slot]):
            whole = bank.base.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=12,
                do_sample=False,
                eos_token_id=END,
                pad_token_id=0,
            )
        assert completions[0].tokens == tuple(whole[0, len(request.prompt) :].tolist())


@pytest.mark.parametrize("architecture", CONFIGS)
def test_decoding_gives_no_cache_of_ours_to_the_layers_of_the_library(architecture: str) -> None:
    bank, caches = tiny_bank(architecture), []

    def record(module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        caches.extend([kwargs.get("past_key_values"), kwargs.get("cache")])

    for name, module in bank.base.model.named_modules():
        if name.endswith("self_attn"):
            module.register_forward_pre_hook(record, with_kwargs=True)
    sampler(bank).sample(REQUESTS)
    assert caches and set(caches) == {None}


@pytest.mark.parametrize("architecture", CONFIGS)
def test_reported_logprobs_and_entropy_are_those_of_a_plain_forward_pass(architecture: str) -> None:
    bank = tiny_bank(architecture)
    temperature = 0.7
    for request, completions in zip(REQUESTS, sampler(bank, temperature=temperature).sample(REQUESTS), strict=True):
        for completion in completions:
            ids = torch.tensor([request.prompt + completion.tokens])
            with torch.no_grad(), bank.routed([request.slot]):
                logp = (bank.base.model(ids).logits[0].float() / temperature).log_softmax(-1)
            logp = logp[len(request.prompt) - 1 : -1]
            expected = logp[torch.arange(len(completion.tokens)), list(completion.tokens)]
            torch.testing.assert_close(torch.tensor(completion.logprobs), expected, rtol=1e-4, atol=1e-4)
            entropy = -(logp.exp() * logp).sum(-1).mean().item()
            assert completion.entropy == pytest.approx(entropy, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("options", [{"max_rows": 1}, {"max_rows": 3}, {"max_rows": 5}, {"prefill_tokens": 1}])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_request_gives_the_same_samples_alone_and_in_any_batch(temperature: float, options: dict) -> None:
    bank = tiny_bank()
    together = sampler(bank, temperature=temperature).sample(REQUESTS)
    backwards = sampler(bank, temperature=temperature, **options).sample(REQUESTS[::-1])[::-1]
    for request, one, other in zip(REQUESTS, together, backwards, strict=True):
        alone = sampler(bank, temperature=temperature).sample([request])[0]
        assert [c.tokens for c in alone] == [c.tokens for c in one] == [c.tokens for c in other]
        assert [c.entropy for c in alone] == pytest.approx([c.entropy for c in other], abs=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_the_fused_step_computes_what_the_librarys_layers_compute(architecture: str, precision: Precision) -> None:
    bank = tiny_bank(architecture, precision=precision)
    fused, plain = sampler(bank, temperature=0.0), sampler(bank, temperature=0.0)
    assert fused.fused is not None
    plain.fused = None
    tolerance = 1e-4 if precision == "fp32" else 0.15
    for one, other in zip(fused.sample(REQUESTS), plain.sample(REQUESTS), strict=True):
        same = one[0].tokens == other[0].tokens
        assert same or precision == "bf16"
        assert one[0].logprobs[:2] == pytest.approx(other[0].logprobs[:2], abs=tolerance)


def test_the_fused_step_takes_a_bank_that_adapts_only_some_modules() -> None:
    base = freeze(tiny_model("qwen2"))
    bank = AdapterBank(base, 3, rank=4, targets=["q_proj", "v_proj", "up_proj"])
    for slot in range(3):
        for _, b in bank.factors(slot).values():
            b.normal_(0.0, 0.3, generator=torch.Generator().manual_seed(slot))
    fused, plain = sampler(bank, temperature=0.0), sampler(bank, temperature=0.0)
    plain.fused = None
    one, other = fused.sample(REQUESTS), plain.sample(REQUESTS)
    assert [[c.tokens for c in cs] for cs in one] == [[c.tokens for c in cs] for cs in other]


EXAMPLES = prompt(20, 70)
FEWSHOT = [
    Request(slot, (EXAMPLES if slot != 2 else prompt(21, 70)) + prompt(seed, length), 2, seed)
    for seed, slot, length in [(22, 1, 5), (23, 0, 9), (24, 1, 30), (25, 2, 4), (26, 1, 1), (27, 0, 12), (22, 1, 5)]
]
"""Prompts of three members that begin with the same examples; one has none like it, two are equal."""


@pytest.mark.parametrize(
    ("options", "most_read"),
    [
        ({}, 3 * 70 + (5 + 30 + 1 + 5) + (9 + 12) + 4 + 2 * ROW_TOKENS),
        # One prompt after the other, each filled up to whole rows: two with the examples, four without, and one alone
        ({"prefill_tokens": 1}, 2 * 2 * ROW_TOKENS + 4 * ROW_TOKENS + 74),
    ],
)
@pytest.mark.parametrize("architecture", CONFIGS)
def test_examples_that_prompts_share_are_read_once_a_member_and_change_no_sample(
    architecture: str, options: dict, most_read: int
) -> None:
    bank = tiny_bank(architecture)
    together = sampler(bank, **options)
    found = together.sample(FEWSHOT)
    assert together.prompt_tokens_read <= most_read
    for request, completions in zip(FEWSHOT, found, strict=True):
        [alone] = sampler(bank).sample([request])
        for one, other in zip(completions, alone, strict=True):
            assert one.tokens == other.tokens
            assert one.logprobs == pytest.approx(other.logprobs, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("options", [{"max_rows": 2}, {"max_rows": 5}, {"prefill_tokens": 1}, {"prefill_tokens": 200}])
def test_what_is_shared_does_not_depend_on_how_prompts_are_batched(options: dict) -> None:
    bank = tiny_bank()
    whole, cut = sampler(bank).sample(FEWSHOT), sampler(bank, **options).sample(FEWSHOT)
    assert [[c.tokens for c in group] for group in whole] == [[c.tokens for c in group] for group in cut]


def test_a_broken_member_spoils_no_prompt_that_begins_like_its_own() -> None:
    bank, broken = tiny_bank(), tiny_bank()
    broken.flat[0].fill_(float("nan"))
    healthy, beside = sampler(bank).sample(FEWSHOT), sampler(broken).sample(FEWSHOT)
    for request, one, other in zip(FEWSHOT, healthy, beside, strict=True):
        assert request.slot == 0 or [c.tokens for c in one] == [c.tokens for c in other]


def test_samples_of_one_request_differ_and_so_do_other_seeds() -> None:
    bank = tiny_bank()
    request = Request(0, prompt(5, 6), 6, rng_seed=1)
    first = sampler(bank).sample([request])[0]
    assert len({c.tokens for c in first}) > 1
    other = sampler(bank).sample([Request(0, request.prompt, 6, rng_seed=2)])[0]
    assert [c.tokens for c in first] != [c.tokens for c in other]


def test_a_completion_ends_with_its_end_token_or_at_the_limit() -> None:
    bank = tiny_bank()
    ends = tuple(range(0, 5))
    everything: list[Completion] = []
    for completions in TorchSampler(bank, max_new_tokens=8, end_tokens=ends).sample(REQUESTS):
        everything += completions
    assert {c.finished for c in everything} == {True, False}
    for c in everything:
        assert not set(c.tokens[:-1]) & set(ends)
        assert (c.tokens[-1] in ends) == c.finished
        assert c.finished or len(c.tokens) == 8
        assert len(c.logprobs) == len(c.tokens)


def test_long_completions_survive_the_growth_of_their_cache() -> None:
    bank = tiny_bank()
    request = Request(1, prompt(6, 4), 2, rng_seed=3)
    long = TorchSampler(bank, max_new_tokens=100, end_tokens=[], temperature=0.0).sample([request])[0][0]
    ids = torch.tensor([request.prompt + long.tokens])
    with torch.no_grad(), bank.routed([1]):
        best = bank.base.model(ids).logits[0].argmax(-1)
    assert long.tokens == tuple(best[len(request.prompt) - 1 : -1].tolist())


def test_a_broken_member_spoils_nobody_elses_samples() -> None:
    bank = tiny_bank()
    healthy = [r for r in REQUESTS if r.slot != 2]
    expected = sampler(bank, max_rows=4).sample(healthy)
    bank.flat[2] = float("nan")
    mixed = sampler(bank, max_rows=4).sample(REQUESTS)
    del mixed[2]
    assert [[c.tokens for c in cs] for cs in mixed] == [[c.tokens for c in cs] for cs in expected]


def letters(tokens: Sequence[int]) -> str:
    """A toy tokenizer: tokens write one or two letters each."""
    return "".join(chr(97 + t % 26) + ("z" if t > 40 else "") for t in tokens)


@pytest.mark.parametrize("num_steps", [1, 5])
def test_a_stop_string_ends_a_completion_at_the_token_that_completes_it(num_steps: int) -> None:
    bank = tiny_bank()
    free = TorchSampler(bank, max_new_tokens=20, end_tokens=[]).sample(REQUESTS)
    strings = ["zb", "ab", "q"]
    stopping = TorchSampler(bank, max_new_tokens=20, end_tokens=[], stopper=StopStrings(strings, letters))
    stopping.steps_between_checks = num_steps
    stopped_early = 0
    for whole, cut in zip(free, stopping.sample(REQUESTS), strict=True):
        for one, other in zip(whole, cut, strict=True):
            counts = [n for n in range(1, 21) if any(s in letters(one.tokens[:n]) for s in strings)]
            expected = counts[0] if counts else 20
            stopped_early += expected < 20
            assert other.tokens == one.tokens[:expected]
            assert other.finished == bool(counts)
            assert len(other.logprobs) == expected
    assert stopped_early >= 3


def test_a_completion_ends_with_the_stop_token_that_its_request_counts_to() -> None:
    bank = tiny_bank()
    options: dict = {"max_new_tokens": 40, "end_tokens": [0, 1]}
    free = TorchSampler(bank, **options).sample(REQUESTS)
    token = next(t for t in free[0][0].tokens if free[0][0].tokens.count(t) > 1)
    counts = (2, 1, 0, 3, 2)  # 0: no such stop
    asked = [replace(r, stop_token=token, stop_count=n) for r, n in zip(REQUESTS, counts, strict=True)]
    for max_rows in (5, 512):  # rows are refilled, or the batch shrinks
        stopped = TorchSampler(bank, **options, max_rows=max_rows).sample(asked)
        for n, wholes, cuts in zip(counts, free, stopped, strict=True):
            for whole, cut in zip(wholes, cuts, strict=True):
                at = [place for place, written in enumerate(whole.tokens) if written == token]
                stops = 0 < n <= len(at)
                assert cut.tokens == whole.tokens[: at[n - 1] + 1 if stops else 40]
                assert cut.finished == (stops or whole.finished)


def test_a_requests_temperature_is_a_factor_on_the_samplers() -> None:
    bank = tiny_bank()
    mixed = [replace(REQUESTS[0], temperature=1.6), *REQUESTS[1:]]
    by_request = sampler(bank, temperature=0.5, max_rows=4).sample(mixed)
    hotter, cooler = (sampler(bank, temperature=t).sample(REQUESTS) for t in (0.8, 0.5))
    for got, expected in zip(by_request, [hotter[0], *cooler[1:]], strict=True):
        assert [c.tokens for c in got] == [c.tokens for c in expected]
        for one, other in zip(got, expected, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_looking_less_often_changes_nothing() -> None:
    bank = tiny_bank()
    often, seldom = (TorchSampler(bank, max_new_tokens=40, end_tokens=range(5), max_rows=4) for _ in range(2))
    seldom.steps_between_checks = 7
    one, other = often.sample(REQUESTS), seldom.sample(REQUESTS)
    assert [[c.tokens for c in cs] for cs in one] == [[c.tokens for c in cs] for cs in other]


def test_nothing_asked_is_nothing_answered() -> None:
    assert sampler(tiny_bank()).sample([]) == []


def test_a_prompt_has_a_token_and_leaves_room_for_the_longest_completion() -> None:
    bank, room = tiny_bank(), 256 - 12
    [[longest]] = sampler(bank, end_tokens=[]).sample([Request(0, prompt(0, room), 1, 0)])
    assert len(longest.tokens) == 12
    with pytest.raises(UserError, match="shorten the prompt or lower max_new_tokens"):
        sampler(bank).sample([Request(0, prompt(0, room + 1), 1, 0)])
    with pytest.raises(UserError, match="a prompt must have at least one token"):
        sampler(bank).sample([Request(0, (), 1, 0)])


@pytest.mark.parametrize("options", [{"max_new_tokens": 0}, {"max_rows": 0}, {"temperature": -0.1}])
def test_limits_of_a_sampler_that_allow_no_sample_are_refused(options: dict) -> None:
    with pytest.raises(UserError, match=f"{next(iter(options))} .*must be at least|max_rows must be"):
        sampler(tiny_bank(), **options)


@pytest.mark.parametrize("max_rows", [5, 512])
def test_progress_begins_at_nothing_and_ends_at_all_completions_and_all_tokens(max_rows: int) -> None:
    told: list[tuple[int, int, int]] = []
    options: dict = {"max_new_tokens": 8, "end_tokens": range(5), "max_rows": max_rows}
    found = TorchSampler(tiny_bank(), **options, report=lambda *numbers: told.append(numbers)).sample(REQUESTS)
    num_tokens = sum(len(c.tokens) for completions in found for c in completions)
    assert told[0] == (0, 12, 0) and told[-1] == (12, 12, num_tokens)
    assert told[1][0] <= sum(len(c.tokens) == 1 for completions in found for c in completions)
    for column in zip(*told, strict=True):
        assert list(column) == sorted(column)


def test_bf16_decoding_on_the_cpu_gives_nearly_the_fp32_logprobs() -> None:
    exact = sampler(tiny_bank(), temperature=0.0).sample(REQUESTS)
    rough = sampler(tiny_bank(precision="bf16"), temperature=0.0).sample(REQUESTS)
    for one, other in zip(exact, rough, strict=True):
        assert one[0].logprobs[0] == pytest.approx(other[0].logprobs[0], abs=0.15)


def test_on_a_gpu_every_step_but_the_first_ones_of_a_sampler_is_a_recorded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after rows came and went. The recording that stands in here runs its step anew."""
    plain, recorded, decodings = [], [], []
    make = Decoding.__init__
    monkeypatch.setattr(Decoding, "__init__", lambda self, *words: (decodings.append(self), make(self, *words))[1])

    def places() -> list[int]:
        decoding = decodings[-1]
        return [
            t.data_ptr() for t in (decoding.cache.own_k[0], decoding.cache.prompt_k[0], decoding.last, decoding.count)
        ]

    class Recording:
        def __init__(self, step: Callable[[], None]) -> None:
            self.step, self.held = step, places()

        def run(self) -> None:
            assert places() == self.held, "a tensor that it reads lies elsewhere since"
            recorded.append(1)
            self.step()
            plain.pop()

    decode = TorchSampler._decode_one
    monkeypatch.setattr(torch_sampler, "StepGraph", Recording)
    monkeypatch.setattr(TorchSampler, "_decode_one", lambda *words: (plain.append(1), decode(*words)))
    bank = tiny_bank()
    expected = sampler(bank, max_rows=5).sample(REQUESTS)
    plain.clear()
    recording = sampler(bank, max_rows=5)
    recording.cuda_graphs = True
    assert recording.sample(REQUESTS) == expected
    first = recording.steps_between_checks
    assert (len(plain), len(recorded)) == (first, recording.steps_run - first)
    assert recording.sample(REQUESTS) == expected
    assert len(plain) == first


def test_the_samplers_of_a_run_share_one_copy_of_the_weights() -> None:
    small = ["population.num_teachers=1", "population.num_students=1", "run.device=cpu", "run.num_threads=1"]
    adapters = load_adapters(load_config(Path("configs/smoke.toml"), small))
    samplers = [adapters.proposer, adapters.solver, adapters.sampler(0.0)]
    assert all(isinstance(sampler, TorchSampler) for sampler in samplers)
    assert samplers[0].fused is not None and len({id(sampler.fused) for sampler in samplers}) == 1
