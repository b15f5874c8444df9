"""The learner: exact gradients from packed groups, and members that never touch each other."""

import gc
import math
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from tiny_models import CONFIGS, tiny_bank

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.routing import ROW_TOKENS
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.config import LearnConfig
from redqueen.errors import UserError
from redqueen.learn.batches import batches_of, by_member, mini_batches, pieces_of, split_evenly
from redqueen.learn.torch_learner import TorchLearner, _merged
from redqueen.records import Completion, Request, Rollout, Tuning, UpdateStats


def tokens(seed: int, length: int) -> tuple[int, ...]:
    return tuple(torch.randint(0, 61, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


def completion(seed: int, length: int) -> Completion:
    return Completion(tokens(seed, length), (-4.0,) * length, 1.0, True)


def rollout(slot: int, seed: int, lengths: Sequence[int], advantages: Sequence[float]) -> Rollout:
    completions = tuple(completion(100 * seed + i, n) for i, n in enumerate(lengths))
    return Rollout(slot, tokens(seed, 3 + seed), completions, tuple(advantages))


ROLLOUTS = [
    rollout(2, 1, (4, 9, 1), (1.0, -0.5, 0.3)),
    rollout(0, 2, (6, 2), (-1.0, 1.0)),
    rollout(2, 3, (5, 5, 7), (0.5, 0.0, -2.0)),
    rollout(0, 4, (3,), (1.5,)),
]


def gradients(bank: AdapterBank, rollouts: Sequence[Rollout], **options: object) -> torch.Tensor:
    fields = {name: options.pop(name) for name in list(options) if name in LearnConfig.model_fields}
    learner = TorchLearner(bank, LearnConfig().model_copy(update=fields), **options)  # smaller than a user may ask for
    return learner.gradients(by_member(rollouts))[0]


def reference_gradient(bank: AdapterBank, slot: int, rollouts: Sequence[Rollout]) -> torch.Tensor:
    """-sum A log p(token) / tokens by plain autograd: one completion at a time, deltas merged into the weights."""
    factors = {n: (a.clone().requires_grad_(), b.clone().requires_grad_()) for n, (a, b) in bank.factors(slot).items()}
    own = [r for r in rollouts if r.slot == slot]
    num_tokens = sum(len(c.tokens) for r in own for c in r.completions)
    weights = {
        f"{n}.weight": bank.base.model.get_submodule(n).weight + bank.scale * b @ a for n, (a, b) in factors.items()
    }
    loss = torch.zeros(())
    for r in own:
        for c, advantage in zip(r.completions, r.advantages, strict=True):
            ids = torch.tensor([r.prompt + c.tokens])
            out = torch.func.functional_call(bank.base.model, weights, (ids,))
            logp = out.logits[0, len(r.prompt) - 1 : -1].log_softmax(-1)
            loss = loss - advantage * logp[torch.arange(len(c.tokens)), list(c.tokens)].sum() / num_tokens
    loss.backward()
    return torch.cat([f.grad.flatten() for pair in factors.values() for f in pair])


@pytest.mark.parametrize("architecture", CONFIGS)
def test_packed_gradients_equal_those_of_each_completion_run_alone(architecture: str) -> None:
    bank = tiny_bank(architecture)
    got = gradients(bank, ROLLOUTS)
    for row, slot in zip(got, (0, 2), strict=True):
        expected = reference_gradient(bank, slot, ROLLOUTS)
        assert (row - expected).norm() / expected.norm() < 1e-5


EXAMPLES = tokens(7, 40)
FEWSHOT = [
    replace(r, prompt=(EXAMPLES if i != 3 else tokens(8, 40)) + r.prompt)
    for i, r in enumerate([*ROLLOUTS, *ROLLOUTS[:1], rollout(2, 5, (2, 3), (0.4, -0.7))])
]
"""Prompts that begin with the same examples, one apart, and two that are equal."""


@pytest.mark.parametrize("options", [{}, {"micro_batch_tokens": 90}, {"micro_batch_tokens": 1}])
def test_examples_that_prompts_share_are_run_once_and_change_no_gradient(options: dict) -> None:
    bank = tiny_bank()
    alike = [replace(r, prompt=EXAMPLES + r.prompt) for r in ROLLOUTS]  # two members with the same examples
    for rollouts in (FEWSHOT, alike):
        got = gradients(bank, rollouts, **options)
        for row, slot in zip(got, (0, 2), strict=True):
            expected = reference_gradient(bank, slot, rollouts)
            assert (row - expected).norm() / expected.norm() < 1e-5


def test_each_members_rollouts_are_dealt_to_mini_batches_in_turn() -> None:
    assert mini_batches(ROLLOUTS, {0: 2, 2: 2}) == [ROLLOUTS[:2], ROLLOUTS[2:]]
    assert mini_batches(ROLLOUTS, {0: 1, 2: 2}) == [[*ROLLOUTS[:2], ROLLOUTS[3]], [ROLLOUTS[2]]]


def test_a_piece_holds_no_more_tokens_than_asked_for_and_an_advantage_that_is_no_number_is_run() -> None:
    (member,) = by_member([Rollout(0, (1, 2, 3, 4, 5), (completion(1, 4),) * 5, (1.0,) * 4 + (math.nan,))])
    assert member.num_run == 20
    assert [(len(piece.branches), piece.num_tokens) for piece in pieces_of(member, 14)] == [(2, 13), (2, 13), (1, 9)]


def test_the_figures_of_mini_batches_are_merged_by_tokens() -> None:
    parts = [UpdateStats(0, 1.0, 2.0, 0.5, 10, True, 0.1), UpdateStats(0, 4.0, 4.0, 0.0, 30, True, 0.3, False)]
    merged = _merged(parts)
    assert (merged.loss, merged.grad_norm, merged.clip_frac, merged.num_tokens) == (3.25, 3.0, 0.125, 40)
    assert (merged.ok, merged.kl, merged.stepped) == (True, pytest.approx(0.25), True)


def test_a_member_is_broken_by_its_last_mini_batch_and_figures_are_of_the_finite_ones() -> None:
    good = UpdateStats(0, 1.0, 2.0, 0.5, 10, True, 0.1)
    bad = UpdateStats(0, math.nan, math.nan, 0.0, 30, False, math.nan, False)
    for parts, ok in (([bad, good], True), ([good, bad], False)):
        merged = _merged(parts)
        assert (merged.ok, merged.stepped, merged.num_tokens) == (ok, True, 40)
        assert (merged.loss, merged.grad_norm, merged.clip_frac, merged.kl) == (1.0, 2.0, 0.5, 0.1)
    assert not _merged([bad, bad]).ok


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_the_first_moments_are_those_of_the_gradient_cut_to_norm_one(size: float) -> None:
    bank, learner = tiny_bank(), TorchLearner(tiny_bank(), LearnConfig())
    own = [replace(r, advantages=tuple(size * a for a in r.advantages)) for r in ROLLOUTS if r.slot == 0]
    gradient = gradients(bank, own)[0]
    assert (float(gradient.norm()) > 1.0) is (size > 1.0)
    gradient = gradient / max(1.0, float(gradient.norm()))
    learner.update(own)
    moments = learner.state_dict()
    torch.testing.assert_close(moments["0.exp_avg"], 0.1 * gradient, rtol=1e-3, atol=1e-8)  # betas 0.9 and 0.99
    torch.testing.assert_close(moments["0.exp_avg_sq"], 0.01 * gradient**2, rtol=1e-3, atol=1e-12)


def test_the_divergence_is_a_mean_over_tokens_that_were_run_and_the_clip_over_all() -> None:
    unlikely = replace(completion(1, 4), logprobs=(-30.0,) * 4)  # the ratio is above 1.2 in every token
    found = []
    for completions, advantages in (((unlikely,), (1.0,)), ((unlikely, completion(2, 4)), (1.0, 0.0))):
        learner = TorchLearner(tiny_bank(), LearnConfig(updates_per_step=2, kl_weight=0.1))
        found += learner.update([Rollout(0, (1, 2), completions, advantages)])
    assert [stats.clip_frac for stats in found] == [1.0, 0.5]
    assert found[0].kl == pytest.approx(found[1].kl) != 0.0


def test_a_founder_does_not_diverge_from_the_base_at_any_temperature_and_zero_counts_as_one() -> None:
    learner = TorchLearner(tiny_bank(trained=False), LearnConfig(kl_weight=0.1), temperature=2.0)
    assert [stats.kl for stats in learner.update(ROLLOUTS)] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert torch.equal(gradients(tiny_bank(), ROLLOUTS, temperature=0.0), gradients(tiny_bank(), ROLLOUTS))


def test_lanes_add_up_the_figures_of_their_parts() -> None:
    whole, parted = (
        TorchLearner(tiny_bank(), LearnConfig(), num_lanes=num).gradients(by_member(ROLLOUTS))[1] for num in (1, 3)
    )
    torch.testing.assert_close(parted, whole)


def test_a_micro_batch_has_what_prompts_share_once_a_member() -> None:
    members = by_member(FEWSHOT)
    [batch] = batches_of(members, 4096, 0, torch.float32)
    own = sum(
        len(r.prompt) - 40 + sum(len(c.tokens) for a, c in zip(r.advantages, r.completions, strict=True) if a)
        for r in FEWSHOT
    )
    assert batch.tokens.numel() < own + 3 * 40 + 2 * ROW_TOKENS  # members' rows are filled up
    assert all(len(b.target) for b in batches_of(members, 90, 0, torch.float32))
    assert len([*batches_of(members, 90, 0, torch.float32)]) < len(FEWSHOT)


@pytest.mark.parametrize(
    "options",
    [
        {"micro_batch_tokens": 1},
        {"logit_chunk_tokens": 3},
        {"gradient_checkpointing": True},
        {"logit_chunk_tokens": 7, "micro_batch_tokens": 40},
        {"num_lanes": 2},
        {"num_lanes": 3, "micro_batch_tokens": 90, "gradient_checkpointing": True},
        {"num_lanes": 9},
    ],
)
def test_gradients_do_not_depend_on_how_the_work_is_cut(options: dict) -> None:
    bank = tiny_bank()
    whole = gradients(bank, ROLLOUTS)
    cut = gradients(bank, ROLLOUTS, **options)
    assert (cut - whole).norm() / whole.norm() < 1e-5


def test_after_each_micro_batch_kept_memory_goes_back_if_the_machine_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("redqueen.learn.torch_learner.give_back_if_scarce", asked.append)
    monkeypatch.setattr("redqueen.learn.torch_learner.available_bytes", lambda device: 7)
    bank = tiny_bank()
    num_batches = sum(1 for _ in batches_of(by_member(ROLLOUTS), 12, 0, torch.float32))
    gradients(bank, ROLLOUTS, micro_batch_tokens=12)
    assert num_batches > 1
    assert asked == [7] * num_batches


def test_lanes_learn_the_same_every_time() -> None:
    bank = tiny_bank(precision="bf16")
    first = gradients(bank, ROLLOUTS * 5, num_lanes=2)
    assert all(torch.equal(gradients(bank, ROLLOUTS * 5, num_lanes=2), first) for _ in range(10))


@pytest.mark.parametrize("num_parts", [1, 2, 3, 16])
def test_rollouts_are_dealt_out_in_their_order_and_keep_their_members_weight(num_parts: int) -> None:
    members = by_member(ROLLOUTS * 4)
    parts = split_evenly(members, num_parts)
    assert len(parts) == num_parts
    for member in members:
        mine = [part for some in parts for part in some if part.slot == member.slot]
        assert [r for part in mine for r in part.rollouts] == list(member.rollouts)
        assert {part.num_tokens for part in mine} == {member.num_tokens}
        assert sum(part.num_run for part in mine) == member.num_run
        assert sum(part.num_run for part in mine) == member.num_run
    run = [sum(m.num_run + sum(len(r.prompt) for r in m.rollouts) for m in some) for some in parts]
    dearest = max(len(r.prompt) + sum(len(c.tokens) for c in r.completions) for r in ROLLOUTS)
    assert max(run) - min(run) <= 2 * dearest


def test_a_members_update_does_not_depend_on_the_members_beside_it() -> None:
    together, alone = tiny_bank(), tiny_bank()
    TorchLearner(together).update(ROLLOUTS)
    TorchLearner(alone).update([r for r in ROLLOUTS if r.slot == 2])
    # The first step of AdamW is lr * sign where gradients are large against rounding, so compare what moved clearly.
    torch.testing.assert_close(together.flat[2], alone.flat[2], rtol=0.0, atol=2e-5)


def test_members_without_data_are_not_touched_and_keep_their_step_count() -> None:
    bank = tiny_bank()
    learner = TorchLearner(bank)
    learner.update(ROLLOUTS)
    before, moment = bank.flat[2].clone(), learner.state_dict()["2.exp_avg"].clone()
    assert not torch.equal(bank.flat[1], bank.flat[0])
    learner.update([r for r in ROLLOUTS if r.slot == 0])
    after = learner.state_dict()
    assert torch.equal(bank.flat[2], before)
    assert "1.step" not in after
    assert after["0.step"].item() == 2.0 and after["2.step"].item() == 1.0
    assert torch.equal(after["2.exp_avg"], moment)


def test_a_member_whose_loss_is_no_number_is_left_alone_and_reported() -> None:
    bank, healthy = tiny_bank(), tiny_bank()
    bank.flat[0, 5] = float("nan")
    broken = bank.flat[0].clone()
    learner = TorchLearner(bank)
    stats = learner.update(ROLLOUTS)
    assert [(s.slot, s.ok) for s in stats] == [(0, False), (2, True)]
    assert torch.equal(bank.flat[0].nan_to_num(7.0), broken.nan_to_num(7.0))
    assert not any(key.startswith("0.") for key in learner.state_dict())
    TorchLearner(healthy).update(ROLLOUTS)
    torch.testing.assert_close(bank.flat[2], healthy.flat[2], rtol=0.0, atol=2e-5)


def test_an_advantage_that_is_no_number_breaks_only_its_own_member() -> None:
    bank = tiny_bank()
    before = bank.flat.clone()
    bad = rollout(0, 6, (4, 4), (float("nan"), 1.0))
    stats = TorchLearner(bank).update([bad, ROLLOUTS[0]])
    assert [s.ok for s in stats] == [False, True]
    assert torch.equal(bank.flat[0], before[0]) and not torch.equal(bank.flat[2], before[2])


def test_a_member_with_nothing_to_learn_is_not_moved_by_its_momentum() -> None:
    bank = tiny_bank()
    learner = TorchLearner(bank)
    learner.update(ROLLOUTS)
    before = bank.flat.clone()
    (stats,) = learner.update([rollout(0, 5, (3, 4), (0.0, 0.0))])
    assert torch.equal(bank.flat, before)
    assert stats.ok and stats.loss == 0.0 and stats.grad_norm == 0.0 and stats.num_tokens == 7


def test_gradients_are_clipped_by_each_members_own_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redqueen.learn.torch_learner.BETAS", (0.0, 0.0))
    bank = tiny_bank()
    monkeypatch.setattr("redqueen.learn.torch_learner.MAX_GRAD_NORM", 1e-3)
    learner = TorchLearner(bank)
    stats = learner.update(ROLLOUTS)
    state = learner.state_dict()
    for s in stats:
        assert s.grad_norm > 1e-3
        assert state[f"{s.slot}.exp_avg"].norm().item() == pytest.approx(1e-3, rel=1e-4)


def test_a_step_makes_good_completions_more_likely_and_bad_ones_less() -> None:
    bank = tiny_bank()
    learner = TorchLearner(bank, LearnConfig(learning_rate=1e-2))
    data = [rollout(1, 7, (6, 6), (1.0, -1.0))]
    first = learner.update(data)[0].loss
    assert first == pytest.approx(0.0, abs=1e-6)  # at ratio 1 the loss is minus the mean advantage
    before = logprobs(bank, data[0])
    for _ in range(3):
        learner.update(data)
    after = logprobs(bank, data[0])
    assert after[0] > before[0] + 0.5 and after[1] < before[1] - 0.5


def logprobs(bank: AdapterBank, r: Rollout) -> list[float]:
    found = []
    for c in r.completions:
        ids = torch.tensor([r.prompt + c.tokens])
        with torch.no_grad(), bank.routed([r.slot]):
            logp = bank.base.model(ids).logits[0, len(r.prompt) - 1 : -1].log_softmax(-1)
        found.append(float(logp[torch.arange(len(c.tokens)), list(c.tokens)].sum()))
    return found


def test_with_the_samplers_logprobs_the_ratio_is_clipped() -> None:
    bank = tiny_bank()
    stale = Rollout(0, tokens(1, 4), (completion(8, 10),), (1.0,))
    far_below = Completion(stale.completions[0].tokens, (-30.0,) * 10, 1.0, True)
    (stats,) = TorchLearner(bank, LearnConfig(updates_per_step=2)).update(
        [Rollout(0, stale.prompt, (far_below,), (1.0,))]
    )
    assert stats.clip_frac == 1.0 and stats.grad_norm == 0.0 and stats.loss == pytest.approx(-1.2)


def test_in_the_second_mini_batch_of_a_step_the_clip_acts() -> None:
    """The rate is so high that the first update moves the ratios of the second one's tokens out of the range."""
    bank, prompt = tiny_bank(), tokens(1, 4)
    sampled = TorchSampler(bank, 8, end_tokens=[], temperature=1.0).sample([Request(0, prompt, 6, rng_seed=3)])[0]
    rollouts = [Rollout(0, prompt, (one,), (1.0,)) for one in sampled]
    clipped, moved = {}, {}
    for num in (1, 3):
        bank = tiny_bank()
        learner = TorchLearner(bank, LearnConfig(updates_per_step=num))
        (stats,) = learner.update(rollouts, {0: Tuning(0.05, num_updates=num)})
        clipped[num], moved[num] = stats.clip_frac, float(learner.state_dict()["0.step"])
        assert stats.num_tokens == 48
    assert moved == {1: 1, 3: 3}
    assert clipped[1] == 0 < clipped[3]


def test_the_penalties_gradient_is_that_of_plain_autograd() -> None:
    bank = tiny_bank()
    with torch.no_grad():
        for _, b in bank.factors(2).values():
            b.normal_(0.0, 0.2, generator=torch.Generator().manual_seed(3))
    expected, kl = penalised_gradient(bank, 2, kl_weight=0.3)
    for options in ({}, {"logit_chunk_tokens": 3, "micro_batch_tokens": 40}):
        learner = TorchLearner(bank, LearnConfig(kl_weight=0.3).model_copy(update=micro(options)), **chunk(options))
        learner.tunings = {2: Tuning(1e-3)}
        got, sums = learner.gradients(by_member([r for r in ROLLOUTS if r.slot == 2]))
        assert (got[0] - expected).norm() / expected.norm() < 1e-4
        assert float(sums[2, 0]) == pytest.approx(kl, rel=1e-4)


def micro(options: dict) -> dict:
    return {name: value for name, value in options.items() if name == "micro_batch_tokens"}


def chunk(options: dict) -> dict:
    return {name: value for name, value in options.items() if name == "logit_chunk_tokens"}


def penalised_gradient(bank: AdapterBank, slot: int, kl_weight: float) -> tuple[torch.Tensor, float]:
    """By plain autograd: policy gradient + kl_weight D(member || base), mean over all tokens."""
    factors = {n: (a.clone().requires_grad_(), b.clone().requires_grad_()) for n, (a, b) in bank.factors(slot).items()}
    own = [r for r in ROLLOUTS if r.slot == slot]
    num_tokens = sum(len(c.tokens) for r in own for c in r.completions)
    weights = {
        f"{n}.weight": bank.base.model.get_submodule(n).weight + bank.scale * b @ a for n, (a, b) in factors.items()
    }
    loss, strayed = torch.zeros(()), 0.0
    for r in own:
        for c, advantage in zip(r.completions, r.advantages, strict=True):
            if advantage == 0.0:
                continue
            ids, at = torch.tensor([r.prompt + c.tokens]), slice(len(r.prompt) - 1, -1)
            p = torch.func.functional_call(bank.base.model, weights, (ids,)).logits[0, at].log_softmax(-1)
            with torch.no_grad():
                q = bank.base.model(ids).logits[0, at].log_softmax(-1)
            kl = (p.exp() * (p - q)).sum()
            drawn = p[torch.arange(len(c.tokens)), list(c.tokens)].sum()
            loss = loss + (-advantage * drawn + kl_weight * kl) / num_tokens
            strayed += float(kl)
    loss.backward()
    return torch.cat([f.grad.flatten() for pair in factors.values() for f in pair]), strayed


def test_a_member_is_stepped_with_its_own_learning_rate() -> None:
    bank = tiny_bank()
    before = bank.flat.clone()
    TorchLearner(bank).update(ROLLOUTS, {0: Tuning(1e-2), 2: Tuning(0.0)})
    assert float((bank.flat[0] - before[0]).abs().max()) == pytest.approx(1e-2, rel=1e-3)  # AdamW's first step
    assert torch.equal(bank.flat[2], before[2])


def test_a_members_temperature_is_a_factor_on_the_learners() -> None:
    bank = tiny_bank()
    mixed = TorchLearner(bank, temperature=0.5)
    mixed.tunings = {0: Tuning(1e-3, temperature=1.6), 2: Tuning(1e-3)}
    got = mixed.gradients(by_member(ROLLOUTS))[0]
    for row, slot, temperature in zip(got, (0, 2), (0.8, 0.5), strict=True):
        own = by_member([r for r in ROLLOUTS if r.slot == slot])
        (expected,) = TorchLearner(bank, temperature=temperature).gradients(own)[0]
        assert (row - expected).norm() / expected.norm() < 1e-5


def test_the_state_restores_exactly() -> None:
    one, other = tiny_bank(), tiny_bank()
    learner = TorchLearner(one)
    learner.update(ROLLOUTS)
    restored = TorchLearner(other)
    other.flat.copy_(one.flat)
    restored.load_state(learner.state_dict())
    learner.update(ROLLOUTS)
    restored.update(ROLLOUTS)
    assert torch.equal(one.flat, other.flat)
    assert all(torch.equal(v, restored.state_dict()[k]) for k, v in learner.state_dict().items())


def test_a_newborn_has_no_optimiser_state() -> None:
    learner = TorchLearner(tiny_bank())
    learner.update(ROLLOUTS)
    learner.forget(2)
    state = learner.state_dict()
    assert state["0.step"].item() == 1.0 and not any(key.startswith("2.") for key in state)


def test_the_state_of_another_population_is_refused() -> None:
    learner = TorchLearner(tiny_bank())
    learner.update(ROLLOUTS)
    with pytest.raises(UserError, match="another size or lora_rank"):
        TorchLearner(tiny_bank(num_members=2)).load_state(learner.state_dict())


def test_bf16_gradients_point_the_same_way() -> None:
    exact, rough = gradients(tiny_bank(), ROLLOUTS), gradients(tiny_bank(precision="bf16"), ROLLOUTS)
    cosine = torch.nn.functional.cosine_similarity(exact, rough, dim=1)
    assert math.isclose(1.0, float(cosine.min()), abs_tol=0.02)


def test_the_heads_gradient_takes_rounded_weights_and_its_logits_exact_ones() -> None:
    base = tiny_bank(precision="bf16").base
    hidden = torch.randn(5, base.head.in_features, requires_grad=True)
    weights = torch.randn(5, base.head.out_features)
    logits = base.logits(hidden)
    assert torch.equal(logits, base.head(hidden))
    (taken,) = torch.autograd.grad((logits * weights).sum(), hidden)
    torch.testing.assert_close(taken, weights @ base.head.weight, rtol=0.02, atol=0.02 * float(taken.abs().max()))
    assert not torch.equal(taken, weights @ base.head.weight)


def test_a_learner_with_checkpointing_leaves_the_sampler_as_it_was() -> None:
    bank = tiny_bank()
    request = Request(1, tokens(1, 5), 2, rng_seed=0)
    sampler = TorchSampler(bank, max_new_tokens=8, end_tokens=[])
    before = sampler.sample([request])
    learner = TorchLearner(bank, LearnConfig(gradient_checkpointing=True))
    learner.gradients(by_member(ROLLOUTS))
    assert sampler.sample([request]) == before


def test_a_base_whose_layers_were_computed_twice_holds_neither_the_bank_nor_hooks() -> None:
    """A second bank of seven billion's factors would find the first one's still in memory."""
    bank = tiny_bank()
    base, gone = bank.base, weakref.ref(bank)
    learner = TorchLearner(bank, LearnConfig(gradient_checkpointing=True))
    for _ in range(3):
        learner.gradients(by_member(ROLLOUTS))
        assert not base.model.training
    bank.detach_from_base()
    del bank, learner
    gc.collect()
    assert gone() is None
    assert [name for name, module in base.model.named_modules() if module._forward_hooks] == []


def test_of_two_banks_on_one_base_each_has_its_own_layers_computed_twice() -> None:
    base = tiny_bank().base
    banks = [AdapterBank(base, 3, rank=4, alpha=8.0) for _ in range(2)]
    for i, bank in enumerate(banks):
        for slot in range(3):
            for _, b in bank.factors(slot).values():
                b.normal_(0.0, 0.3, generator=torch.Generator().manual_seed(i))
    plain = [gradients(bank, ROLLOUTS) for bank in banks]
    learners = [TorchLearner(bank, LearnConfig(gradient_checkpointing=True)) for bank in banks]
    for learner, expected in zip(learners, plain, strict=True):
        torch.testing.assert_close(learner.gradients(by_member(ROLLOUTS))[0], expected)
    assert not torch.equal(*plain)


def test_layers_that_are_computed_again_in_another_thread_have_their_members_there_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a GPU, where the backward pass runs in a thread of autograd's own."""
    backward = torch.Tensor.backward

    def elsewhere(self: torch.Tensor, signal: torch.Tensor) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(backward, self, signal).result()

    bank = tiny_bank()
    expected = gradients(bank, ROLLOUTS)
    monkeypatch.setattr(torch.Tensor, "backward", elsewhere)
    torch.testing.assert_close(gradients(bank, ROLLOUTS, gradient_checkpointing=True), expected)


def test_at_a_temperature_the_learner_sees_the_samplers_log_probabilities() -> None:
    """A range of the ratio so narrow that a token whose two log-probabilities differ would be clipped."""
    bank = tiny_bank("llama")
    prompt = tokens(5, 6)
    sampled = TorchSampler(bank, 8, end_tokens=[], temperature=0.6).sample([Request(1, prompt, 4, rng_seed=3)])[0]
    rollouts = [Rollout(1, prompt, tuple(sampled), (1.0, -1.0, 0.5, -0.5))]
    config = LearnConfig(updates_per_step=2, clip=1e-4)
    for temperature, fits in ((0.6, True), (1.0, False)):
        learner = TorchLearner(bank, config, temperature=temperature)
        _, sums = learner.gradients(by_member(rollouts))
        assert (sums[1].item() == 0) == fits


def test_at_a_temperature_the_gradient_is_that_of_the_tempered_distribution() -> None:
    bank = tiny_bank("qwen2")
    prompt, written, step = tokens(6, 5), completion(7, 4), 1e-2
    rollouts = [Rollout(0, prompt, (written,), (1.0,))]
    gradient = gradients(bank, rollouts, temperature=0.5)[0]
    direction = gradient / gradient.norm()

    def mean_logprob(change: float) -> float:
        with torch.no_grad():
            bank.flat[0] += change * direction
            ids = torch.tensor([prompt + written.tokens])
            with bank.routed([0]):
                logits = bank.base.model(ids).logits[0, len(prompt) - 1 : -1]
            bank.flat[0] -= change * direction
            logp = (logits / 0.5).log_softmax(-1)
        return float(logp[torch.arange(4), list(written.tokens)].mean())

    slope = (mean_logprob(step) - mean_logprob(-step)) / (2 * step)
    assert -slope == pytest.approx(float(gradient.norm()), rel=0.05), "the loss falls along its gradient"


# Samples of another engine -------------------------------------------------------------------------------------


def sampled_elsewhere(bank: AdapterBank, shifts: Sequence[float]) -> list[Rollout]:
    """Member 2's rollouts, whose completions come with its own log-probabilities less a shift each, in turn."""
    found, turn = [], iter(shifts)
    for one in (r for r in ROLLOUTS if r.slot == 2):
        moved = []
        for c in one.completions:
            with torch.no_grad(), bank.routed([2]):
                logits = bank.base.model(torch.tensor([one.prompt + c.tokens])).logits[0, len(one.prompt) - 1 : -1]
            own = logits.log_softmax(-1)[torch.arange(len(c.tokens)), list(c.tokens)]
            moved.append(replace(c, logprobs=tuple((own - next(turn)).tolist())))
        found.append(replace(one, completions=tuple(moved)))
    return found


def test_each_token_is_weighed_by_its_probability_over_the_samplers_cut_at_the_cap() -> None:
    bank, shifts = tiny_bank(), [math.log(1.5), math.log(0.5), math.log(8.0), 0.0, 0.0, math.log(3.0)]
    elsewhere, weights = sampled_elsewhere(bank, shifts), iter([1.5, 0.5, 2.0, 1.0, 1.0, 2.0])
    weighed = [replace(r, advantages=tuple(a * next(weights) for a in r.advantages)) for r in elsewhere]
    expected = gradients(bank, weighed)[0]
    got = gradients(bank, elsewhere, importance_cap=2.0)[0]
    assert (got - expected).norm() / expected.norm() < 1e-4
    plain = gradients(bank, elsewhere)[0]
    assert (plain - expected).norm() / expected.norm() > 0.1


def test_the_samplers_log_probabilities_in_the_ratio_are_not_weighed_twice() -> None:
    bank = tiny_bank()
    elsewhere = sampled_elsewhere(bank, [0.1, -0.1, 0.05, 0.0, 0.0, 0.1])
    options = {"updates_per_step": 2, "clip": 0.5}
    assert torch.equal(gradients(bank, elsewhere, **options), gradients(bank, elsewhere, importance_cap=2.0, **options))


@pytest.mark.parametrize("num_lanes", [1, 2])
def test_a_members_update_tells_how_far_the_sampler_is_from_the_learner(num_lanes: int) -> None:
    bank = tiny_bank()
    rollouts = sampled_elsewhere(bank, [math.log(3.0), 0.0, 0.0, 0.0, 0.0, -0.2])
    (stats,) = TorchLearner(bank, importance_cap=2.0, num_lanes=num_lanes).update(rollouts)
    told = stats.mismatch
    # Completions of 4, 9, 1, 5 and 7 tokens were learned from; the one with advantage 0 was not run.
    assert told.mean_abs == pytest.approx((4 * math.log(3.0) + 7 * 0.2) / 26, rel=1e-3)
    assert told.max_abs == pytest.approx(math.log(3.0), rel=1e-3)
    divergence = 4 * (2 - math.log(3.0)) + 7 * (math.exp(-0.2) - 1 + 0.2)
    assert told.kl == pytest.approx(divergence / 26, rel=1e-3)
    assert told.truncated_frac == pytest.approx(4 / 26)
    assert TorchLearner(bank).update(rollouts)[0].mismatch is None
