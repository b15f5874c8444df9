"""The canary's judgement, on numbers that can be worked out by hand, and its own answers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import tiny_bank
from torch import Tensor

from redqueen.config import load_config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import domain_of
from redqueen.engine import load_tokenizer
from redqueen.nouns import BASE_SLOT
from redqueen.policy.bank import AdapterBank
from redqueen.policy.memory import fit_limits
from redqueen.remote import opening
from redqueen.remote.canary import STEPS, Finding, Probe, judge, judge_all
from redqueen.remote.prompts import probe_prompts
from redqueen.remote.server import TOP, Sampled

OWN = np.array([-1.0, -2.0, -3.0, -4.0])
BASE = OWN + np.array([0.4, -0.4, 0.4, -0.4])


def test_an_answer_that_is_ours_but_for_rounding_is_ours() -> None:
    finding = judge(OWN + 0.01, OWN, {"the bare base": BASE}, tolerance=0.1)
    assert finding == Finding(pytest.approx(0.01), "", ())


def test_an_answer_three_times_nearer_to_another_is_the_others() -> None:
    assert judge(BASE + 0.01, OWN, {"the bare base": BASE}, tolerance=10.0).culprit == "the bare base"
    # At distance 0.6 and 0.2 of 0.8 it is just not three times nearer: then the tolerance decides.
    between = OWN + 0.74 * (BASE - OWN)
    assert judge(between, OWN, {"the bare base": BASE}, tolerance=10.0) == Finding(
        pytest.approx(0.296), "", ("the bare base",)
    )
    assert judge(between, OWN, {"the bare base": BASE}, tolerance=0.29).culprit == "nothing that is known"


def test_the_nearest_of_several_is_named() -> None:
    others = {"another": BASE + 0.05, "the bare base": BASE}
    assert judge(BASE + 0.001, OWN, others, tolerance=0.1).culprit == "the bare base"


def test_adapters_that_have_hardly_parted_are_not_told_apart_and_do_no_harm() -> None:
    near = OWN + 2e-4
    assert judge(near, OWN, {"the version before": near}, tolerance=0.1) == Finding(
        pytest.approx(2e-4), "", ("the version before",)
    )
    assert judge(OWN, OWN, {"the bare base": OWN}, tolerance=0.1) == Finding(0.0, "", ("the bare base",))


def test_our_own_answers_are_those_of_a_plain_forward_pass_for_prompts_of_any_length() -> None:
    bank = tiny_bank(num_members=2)
    prompts = [(5, 6, 7), tuple(range(4, 30)), (9,)]
    tokens = [[1, 2], [3], [60, 0]]
    rows = [bank.flat[1], torch.zeros(bank.num_parameters), bank.flat[0]]
    own = Probe(bank, prompts, temperature=0.5).own(rows, tokens)
    assert own.shape == (3, 5)
    for got, slot in zip(own, (1, BASE_SLOT, 0), strict=True):
        expected = []
        for prompt, asked in zip(prompts, tokens, strict=True):
            with torch.no_grad(), bank.routed([slot]):
                logits = bank.base.model(torch.tensor([prompt])).logits[0, -1]
            expected += torch.log_softmax(logits / 0.5, dim=-1)[asked].tolist()
        assert got == pytest.approx(expected, abs=1e-4)


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
    answers = probe.own([strong, *without.values()], [range(61)] * 2)
    moved = np.abs(answers[1:] - answers[0]).mean(axis=1)
    assert (moved >= 0.3).all() and (moved <= 0.6).all(), "no sort drowns the others"
    assert torch.equal(strong, probe.strong(seed=1, least=0.3))


def answered(bank: AdapterBank, row: Tensor, prompt: tuple[int, ...]) -> Sampled:
    """What a server would write behind a prompt, if it served these factors."""
    tokens: tuple[int, ...] = ()
    likely = []
    for _ in range(STEPS):
        every = Probe(bank, [prompt + tokens], 0.75).own([row], [range(61)])[0]
        best = np.argsort(-every)[:TOP]
        likely.append(dict(zip(best.tolist(), every[best].tolist(), strict=True)))
        tokens += (int(best[0]),)
    return Sampled(tokens, tuple(at[t] for at, t in zip(likely, tokens, strict=True)), False, tuple(likely))


def test_one_wrong_prompt_among_eight_is_found_though_the_mean_is_within_the_tolerance() -> None:
    bank = tiny_bank(num_members=2)
    prompts = [tuple(range(3 + 5 * i, 12 + 6 * i)) for i in range(8)]
    probe, row, bare = Probe(bank, prompts, 0.75), bank.flat[1], torch.zeros(bank.num_parameters)
    answer = [answered(bank, row, prompt) for prompt in prompts]
    assert judge_all(probe, [answer], [row], [{}], tolerance=1e-4)[0].culprit == ""
    answer[5] = answered(bank, bare, prompts[5])
    apart = judge_all(probe, [answer], [row], [{}], tolerance=1e-4)[0].mean_abs
    (finding,) = judge_all(probe, [answer], [row], [{}], tolerance=1.2 * apart)
    assert finding.culprit == "the bare base, behind one prompt among several"
    assert finding.mean_abs > 5 * apart


def test_a_server_that_is_another_after_the_first_token_is_found() -> None:
    bank = tiny_bank(num_members=2)
    probe, row, before = Probe(bank, [(5, 6, 7, 8)], 0.75), bank.flat[1], bank.flat[0]
    own, other = answered(bank, row, probe.prompts[0]), answered(bank, before, (5, 6, 7, 8))
    rest = answered(bank, before, (5, 6, 7, 8, own.tokens[0]))
    mixed = Sampled((own.tokens[0], *rest.tokens[:-1]), own.logprobs, False, (own.likely[0], *rest.likely[:-1]))
    assert judge_all(probe, [[own]], [row], [{"the version before": before}], 10.0)[0].culprit == ""
    assert judge_all(probe, [[other]], [row], [{"the version before": before}], 10.0)[0].culprit == "the version before"
    (finding,) = judge_all(probe, [[mixed]], [row], [{"the version before": before}], 10.0)
    assert finding.culprit == "the version before, after the first token"


def test_short_prompts_are_said_again_until_they_fill_blocks_of_a_cache() -> None:
    *prompts, whole = probe_prompts(load_config(Path("configs/smoke.toml"), []), load_tokenizer("embedded"), 1000)
    assert sum(map(len, prompts)) < 320 and len(whole) == 320


@pytest.mark.parametrize("temperature", [0.2, 0.7, 1.0])
def test_the_canary_asks_at_one_temperature_whatever_the_runs_is(
    temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In half precision, a server's answers at 0.3 are more than twice as far from ours as at 0.75."""
    probes: list[Probe] = []

    class Opened:
        def __init__(self, _config: object, _versions: object, probe: Probe, *_: object) -> None:
            probes.append(probe)

        def open(self) -> None:
            pass

    monkeypatch.setattr(opening, "Fleet", Opened)
    monkeypatch.setattr(opening, "Versions", lambda *_: None)
    hot = [f"{phase}.temperature={temperature}" for phase in ("propose", "solve")]
    config, bank = load_config(Path("configs/smoke.toml"), hot), tiny_bank()
    opening.open_fleet(config, bank, None, load_tokenizer("embedded"), fit_limits(config, 1024))
    assert [probe.temperature for probe in probes] == [0.75]
