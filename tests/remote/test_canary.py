"""The canary's judgement, on numbers that can be worked out by hand, and its own answers."""

from pathlib import Path

import torch
from tiny_models import tiny_bank
from torch import Tensor

from redqueen.adapters.bank import AdapterBank
from redqueen.config import load_config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import domain_of
from redqueen.engine import load_tokenizer
from redqueen.records import BASE_SLOT
from redqueen.remote.canary import STEPS, UNKNOWN, Probe, judge_all, nearest, probe_prompts
from redqueen.remote.server import TOP, Sampled

OWN = torch.tensor([-1.0, -2.0, -3.0, -4.0])
OTHER = OWN + torch.tensor([0.4, -0.4, 0.4, -0.4])


def test_an_answer_is_anothers_when_it_is_three_times_nearer_to_that_one() -> None:
    assert nearest(OWN + 0.01, OWN, {"other": OTHER}) == ""
    assert nearest(OTHER + 0.01, OWN, {"other": OTHER}) == "other"
    assert nearest(OWN + 0.74 * (OTHER - OWN), OWN, {"other": OTHER}) == ""  # distances of 0.592 and 0.208
    assert nearest(OWN + 0.76 * (OTHER - OWN), OWN, {"other": OTHER}) == "other"
    assert nearest(OTHER + 0.001, OWN, {"far": OTHER + 0.05, "near": OTHER}) == "near"


def test_adapters_that_hardly_differ_are_not_confused() -> None:
    assert nearest(OWN + 2e-4, OWN, {"other": OWN + 2e-4}) == "" == nearest(OWN, OWN, {"other": OWN})


def test_our_own_answers_are_those_of_a_plain_forward_pass_for_prompts_of_any_length() -> None:
    bank = tiny_bank(num_members=2)
    prompts = [(5, 6, 7), tuple(range(4, 30)), (9,)]
    rows = [bank.flat[1], torch.zeros(bank.num_parameters), bank.flat[0]]
    probe = Probe(bank, prompts, temperature=0.5)
    for prompt in prompts:
        own = probe.logprobs(rows, [prompt] * 3, num_last=2 if len(prompt) > 1 else 1)
        for got, slot in zip(own, (1, BASE_SLOT, 0), strict=True):
            with torch.no_grad(), bank.routed([slot]):
                logits = bank.base.model(torch.tensor([prompt])).logits[0, -len(got) :]
            assert torch.allclose(got, torch.log_softmax(logits / 0.5, dim=-1), atol=1e-4)


def test_the_canarys_prompts_are_the_ends_of_the_runs_own_and_one_that_fills_blocks_of_a_cache() -> None:
    config = load_config(Path("configs/smoke.toml"), ["model.prompt_format=fewshot"])
    tokenizer = load_tokenizer("embedded")
    *prompts, whole = probe_prompts(config, tokenizer, longest=1000)
    solving = choose_format(config).solve(domain_of("code_o").seed)
    assert tuple(choose_format(config).encode(tokenizer, solving))[-64:] in prompts
    assert {len(prompt) for prompt in prompts} == {64} and len(whole) == 320
    assert max(map(len, probe_prompts(config, tokenizer, longest=50))) == 50


def test_each_sort_of_module_of_the_strong_adapters_can_be_missed() -> None:
    bank = tiny_bank()
    probe = Probe(bank, [(5, 6, 7), tuple(range(4, 30))], temperature=0.75)
    strong = probe.strong(seed=1, least=0.3)
    without = probe.ablated(strong)
    assert sorted(without) == [
        f"the adapter without its {name}"
        for name in ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    ]
    rows = [strong, *without.values()]
    answers = torch.cat([probe.logprobs(rows, [prompt] * len(rows)) for prompt in probe.prompts], dim=-1)[:, 0]
    moved = (answers[1:] - answers[0]).abs().mean(dim=1)
    assert (moved >= 0.3).all() and (moved <= 0.6).all(), "no sort hides the others"
    assert torch.equal(strong, probe.strong(seed=1, least=0.3))


def answered(bank: AdapterBank, row: Tensor, prompt: tuple[int, ...]) -> Sampled:
    """What a server would write after a prompt, if it served these factors."""
    tokens: tuple[int, ...] = ()
    likely = []
    for _ in range(STEPS):
        best = Probe(bank, []).logprobs([row], [prompt + tokens])[0, 0].topk(TOP)
        likely.append(dict(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
        tokens += (int(best.indices[0]),)
    return Sampled(tokens, tuple(at[t] for at, t in zip(likely, tokens, strict=True)), False, tuple(likely))


def test_one_wrong_prompt_among_eight_is_found_though_the_mean_is_within_the_tolerance() -> None:
    bank = tiny_bank(num_members=2)
    prompts = [tuple(range(3 + 5 * i, 12 + 6 * i)) for i in range(8)]
    probe, row, bare = Probe(bank, prompts), bank.flat[1], torch.zeros(bank.num_parameters)
    answer = [answered(bank, row, prompt) for prompt in prompts]
    assert judge_all(probe, [answer], [row], [{}], tolerance=1e-4)[0][1] == ""
    answer[5] = answered(bank, bare, prompts[5])
    apart = judge_all(probe, [answer], [row], [{}], tolerance=1e-4)[0][0]
    assert judge_all(probe, [answer], [row], [{}], tolerance=1.2 * apart) == [(apart, UNKNOWN)]
    assert judge_all(probe, [answer], [row], [{}], tolerance=10 * apart) == [(apart, "")]


def test_a_server_that_is_another_after_the_first_token_is_found() -> None:
    bank = tiny_bank(num_members=2)
    probe, row, before = Probe(bank, [(5, 6, 7, 8)]), bank.flat[1], bank.flat[0]
    own, other = answered(bank, row, probe.prompts[0]), answered(bank, before, (5, 6, 7, 8))
    rest = answered(bank, before, (5, 6, 7, 8, own.tokens[0]))
    mixed = Sampled((own.tokens[0], *rest.tokens[:-1]), own.logprobs, False, (own.likely[0], *rest.likely[:-1]))
    for given, culprit in ((own, ""), (other, "the version before"), (mixed, "the version before")):
        ((_, found),) = judge_all(probe, [[given]], [row], [{"the version before": before}], tolerance=10.0)
        assert found == culprit


def test_short_prompts_are_said_again_until_they_fill_blocks_of_a_cache() -> None:
    *prompts, whole = probe_prompts(load_config(Path("configs/smoke.toml"), []), load_tokenizer("embedded"), 1000)
    assert sum(map(len, prompts)) < 320 and len(whole) == 320
