"""Distillation: text learned by cross-entropy, by one adapter, from its beginning."""

import pytest
import torch
from tiny_models import tiny_bank
from transformers import AutoTokenizer

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base_shape import embedded_folder
from redqueen.adapters.genotype import flattened
from redqueen.config import DistillConfig, LearnConfig
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.learn.answers import VerifiedAnswer
from redqueen.learn.batches import by_member
from redqueen.learn.distillation import Distilled, Example, examples_of, fine_tune, rate_at
from redqueen.learn.torch_learner import TorchLearner, TorchStore
from redqueen.records import Completion, Rollout, Task, Tuning
from redqueen.streams import Streams

EXAMPLES = [Example((3, 4, 5 + i), (6 + i, 7, 8)) for i in range(5)]
CONFIG = DistillConfig(batch_size=2, learning_rate=1e-2, warmup_updates=0)


def nats(bank: AdapterBank, slot: int, example: Example) -> torch.Tensor:
    """Of each token of the answer, by a forward pass of its own."""
    tokens = torch.tensor([example.prompt + example.answer])
    with torch.no_grad(), bank.routed(bank.route([slot], tokens_per_row=tokens.shape[1])):
        logp = bank.base.model(tokens).logits[0].log_softmax(-1)
    at = torch.arange(len(example.prompt) - 1, tokens.shape[1] - 1)
    return -logp[at, tokens[0, at + 1]]


def as_rollout(slot: int, example: Example, logprob: float = 0.0) -> Rollout:
    known = (logprob,) * len(example.answer)
    return Rollout(slot, example.prompt, (Completion(example.answer, known, 0.0, True),), (1.0,))


def taught(examples: list[Example], config: DistillConfig = CONFIG, seed: int = 0) -> tuple[AdapterBank, Distilled]:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig())
    store = TorchStore(bank, learner)
    return bank, fine_tune(examples, store, learner, 1, config, Streams(seed, 0))


def test_the_rate_rises_over_the_warm_up_and_falls_linearly_to_zero() -> None:
    config = DistillConfig(learning_rate=1.0, warmup_updates=4)
    # Of 10 updates: (1/4)(1), (2/4)(0.9), (3/4)(0.8), 0.7, 0.6 ... 0.1.
    wanted = [0.25, 0.45, 0.6, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert [rate_at(i, 10, config) for i in range(10)] == pytest.approx(wanted)
    assert rate_at(0, 2, DistillConfig(learning_rate=1.0, warmup_updates=0)) == 1.0


def test_a_supervised_update_reports_the_mean_nats_of_a_token_whatever_the_sampler_said() -> None:
    bank = tiny_bank("llama")
    expected = torch.cat([nats(bank, 1, one) for one in EXAMPLES[:2]]).mean().item()
    for updates_per_step in (1, 2):
        learner = TorchLearner(tiny_bank("llama"), LearnConfig(updates_per_step=updates_per_step))
        rollouts = [as_rollout(1, one, logprob=-30.0) for one in EXAMPLES[:2]]
        [stats] = learner.update(rollouts, {1: Tuning(1e-3, supervised=True)})
        assert stats.loss == pytest.approx(expected, rel=1e-5)


def test_its_gradient_is_that_of_reinforce_with_advantage_1() -> None:
    gradients = {}
    for supervised in (True, False):
        learner = TorchLearner(tiny_bank("llama"), LearnConfig(updates_per_step=1))
        learner.tunings = {1: Tuning(1e-3, supervised=supervised)}
        gradients[supervised] = learner.gradients(by_member([as_rollout(1, one) for one in EXAMPLES]))[0]
    assert gradients[True].abs().max() > 0
    torch.testing.assert_close(gradients[True], gradients[False], rtol=1e-6, atol=1e-9)


def test_beside_a_supervised_member_another_learns_as_it_would_alone() -> None:
    def stepped(rollouts: list[Rollout]) -> torch.Tensor:
        bank = tiny_bank("llama")
        learner = TorchLearner(bank, LearnConfig(updates_per_step=2))
        learner.update(rollouts, {0: Tuning(1e-3), 1: Tuning(1e-3, supervised=True)})
        return bank.flat[0].clone()

    own = [as_rollout(0, one, logprob=-3.0) for one in EXAMPLES]
    torch.testing.assert_close(stepped(own), stepped([*own, as_rollout(1, EXAMPLES[0])]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("others", [(), (0,)], ids=["alone", "beside one that is held"])
def test_the_divergence_holds_members_and_not_who_reads(others: tuple[int, ...]) -> None:
    def learned(kl_weight: float) -> tuple[torch.Tensor, torch.Tensor]:
        learner = TorchLearner(tiny_bank("llama"), LearnConfig(kl_weight=kl_weight, micro_batch_tokens=4096))
        learner.tunings = {slot: Tuning(1e-3, supervised=slot == 1) for slot in (0, 1)}
        return learner.gradients(by_member([as_rollout(slot, one) for slot in (*others, 1) for one in EXAMPLES]))

    held, free = learned(0.3), learned(0.0)
    torch.testing.assert_close(held[0][-1], free[0][-1], rtol=1e-3, atol=1e-6)
    assert held[1][2, -1] == 0.0
    for _ in others:
        assert held[1][2, 0] > 0.0
        assert not torch.allclose(held[0][0], free[0][0], rtol=1e-3)


def test_the_answers_become_likelier_and_nobody_else_is_touched() -> None:
    before = tiny_bank("llama")
    bank, result = taught(EXAMPLES)
    assert (result.num_answers, result.num_tokens) == (5, 15)
    assert result.nats[1] < result.nats[0]
    assert all(nats(bank, 1, one).mean() < nats(before, 1, one).mean() for one in EXAMPLES)
    for slot in (0, 2):
        assert torch.equal(bank.flat[slot], before.flat[slot])


def test_it_begins_anew_whatever_was_in_the_slot() -> None:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig())
    store = TorchStore(bank, learner)
    for _ in range(2):
        fine_tune(EXAMPLES, store, learner, 1, CONFIG, Streams(0, 0))
    once = taught(EXAMPLES)[0]
    assert torch.equal(flattened(bank.genotype(1)), flattened(once.genotype(1)))


def test_no_moments_are_left_of_it_for_a_checkpoint_to_hold() -> None:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig())
    fine_tune(EXAMPLES, TorchStore(bank, learner), learner, 1, CONFIG, Streams(0, 0))
    assert learner.state_dict() == {}


def test_every_answer_is_used_once_an_epoch() -> None:
    told: list[str] = []
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig())
    read: list[tuple[int, ...]] = []
    update = learner.update

    def noting(rollouts: list[Rollout], tunings: dict[int, Tuning]) -> object:
        read.extend(rollout.completions[0].tokens for rollout in rollouts)
        return update(rollouts, tunings)

    learner.update = noting  # type: ignore[assignment, method-assign]
    store = TorchStore(bank, learner)
    fine_tune(EXAMPLES, store, learner, 1, CONFIG, Streams(0, 0), on_progress=told.append)
    assert told == [f"update {i} of 6" for i in range(1, 7)]
    for epoch in (read[:5], read[5:]):
        assert sorted(epoch) == sorted(one.answer for one in EXAMPLES)
    assert read[:5] != read[5:]  # in another order


def test_the_nats_of_an_epoch_are_the_mean_over_tokens_and_not_over_batches() -> None:
    examples = [Example((3, 4), (5,)), Example((3, 4), (6, 7, 8, 9))]
    config = DistillConfig(batch_size=1, learning_rate=1e-9, warmup_updates=0)
    expected = torch.cat([nats(tiny_bank("llama", trained=False), 1, one) for one in examples]).mean().item()
    assert taught(examples, config)[1].nats == pytest.approx((expected, expected), rel=1e-4)


@pytest.mark.parametrize(("name", "ended"), [("compact", False), ("fewshot", True)])
def test_an_answer_is_followed_by_the_end_token_unless_a_stop_string_ended_it(name: str, ended: bool) -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    prompt_format = PromptFormat(FRAMES[name])
    task = Task("1", "T1", "S1", "code_o", "def f(x):\n    return x\n", ("1",), ("1",))
    text = "1" + "".join(prompt_format.stops[:1])
    [example] = examples_of([VerifiedAnswer(task, text, 1)], prompt_format, tokenizer)
    end = () if ended else (tokenizer.eos_token_id,)
    assert example.answer == (*tokenizer(text, add_special_tokens=False)["input_ids"], *end)
    assert example.prompt == tuple(prompt_format.encode(tokenizer, prompt_format.solve(task)))


def test_where_no_update_is_finite_nothing_was_distilled() -> None:
    bank = tiny_bank("llama")
    learner = TorchLearner(bank, LearnConfig())
    bank.base.model.get_output_embeddings().weight.data.fill_(float("nan"))
    result = fine_tune(EXAMPLES, TorchStore(bank, learner), learner, 1, CONFIG, Streams(0, 0))
    assert result.num_answers == 0 and torch.isfinite(bank.flat[1]).all()


def test_of_no_answers_nothing_is_learned() -> None:
    bank, result = taught([])
    assert result == Distilled(0, 0, ()) and result.metrics() == {"distill/answers": 0.0, "distill/tokens": 0.0}
    assert torch.isfinite(bank.flat[1]).all()
