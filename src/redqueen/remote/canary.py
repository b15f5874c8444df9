"""The canary: before an adapter is used, a server's log-probabilities for it are compared with the learner's own.

A server that serves the base model, another adapter, an earlier version or an adapter without some modules answers
without an error. The canary therefore lets it write a few tokens after some prompts and asks for the log-probabilities
of the most likely tokens at each; the learner computes the same from the factors. The answer is wrong if it is far from
the learner's (a mean difference beyond the tolerance, or beyond twice the tolerance after one prompt), or if it is much
nearer to one of those other adapters, which also detects a swap of adapters that hardly differ. The method and its
constants are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from redqueen.adapters.bank import AdapterBank, Site
from redqueen.config import Config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import domain_of, kinds, num_proposals
from redqueen.errors import UserError
from redqueen.remote.server import Sampled

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TIMES_NEARER = 3.0
"""An answer is attributed to another adapter when it is this many times nearer to that one than to our own."""
HARMLESS = 1e-3
"""Mean difference in nats below which no answer is attributed to another adapter, since engines round differently."""
STEPS = 4
"""Tokens that a server writes after each prompt: those after the first come from other kernels, in other batches."""
TIMES_ALONE = 2.0
"""Allowed difference after a single prompt, in tolerances: a mean over all prompts would hide one wrong answer."""
TEMPERATURE = 0.75
"""Not 1, at which raw and processed log-probabilities are equal; lower temperatures increase rounding errors."""
BASE = "the base model"
UNKNOWN = "no known adapter (does the server run with --logprobs-mode processed_logprobs?)"
MAX_AT_ONCE, PARAMETERS_AT_ONCE = 16, 1 << 28
"""Maximum number of adapters in one forward pass, and of their parameters (a gigabyte in fp32)."""
LOWEST, HIGHEST = -8, 5
"""Random adapters are scaled by powers of two in this range."""
MAX_PROMPTS = 8
PROMPT_TOKENS, LONG_TOKENS = 64, 320
"""Tokens kept from the end of each of the run's prompts, and tokens of the long prompt, which fills a prefix cache."""
GIVEN, OWN = "given", "own"


def probe_prompts(config: Config, tokenizer: PreTrainedTokenizerBase, longest: int) -> list[tuple[int, ...]]:
    """Return the ends of proposing and solving prompts of each kind, and a long one; ``MAX_PROMPTS`` at most.

    The long prompt repeats all of them until it has ``LONG_TOKENS``. None has more than ``longest`` tokens.
    """
    prompt_format, texts = choose_format(config), []
    for name in num_proposals(config.propose):
        seed = domain_of(name).seed
        given = seed if kinds()[name].needs_given else None
        texts += [prompt_format.propose(name, (), given), prompt_format.solve(seed)]
    try:
        found = [tuple(prompt_format.encode(tokenizer, text)) for text in dict.fromkeys(texts)]
    except Exception as error:  # a chat template is a program of the model and may raise anything
        raise UserError(f"the tokenizer of model.base {config.model.base} cannot write a prompt ({error})") from None
    whole = tuple(token for prompt in found for token in prompt)
    return [
        *(prompt[-min(PROMPT_TOKENS, longest) :] for prompt in found[: MAX_PROMPTS - 1]),
        (whole * LONG_TOKENS)[: min(LONG_TOKENS, longest)],
    ]


class Probe:
    """The learner's own log-probabilities after ``prompts`` at ``temperature``, of any adapters on the bank's base."""

    def __init__(self, bank: AdapterBank, prompts: Sequence[tuple[int, ...]], temperature: float = TEMPERATURE) -> None:
        self.bank, self.prompts, self.temperature = bank, tuple(prompts), temperature
        self.vocabulary = int(bank.base.head.weight.shape[0])
        self.sorts = sorted({_sort_of(site) for site in bank.sites})
        """The types of adapted modules, such as ``q_proj``."""
        self.at_once = max(1, min(MAX_AT_ONCE, PARAMETERS_AT_ONCE // bank.num_parameters))

    @torch.inference_mode()
    def logprobs(self, rows: Sequence[Tensor], texts: Sequence[Sequence[int]], num_last: int = 1) -> Tensor:
        """Return log-probabilities (rows, num_last, vocabulary) after the last tokens of each row's text, on the CPU.

        ``rows`` are factors (parameters,) as the bank holds them; their ``texts`` are equally long.
        """
        base, found = self.bank.base, []
        for start in range(0, len(rows), self.at_once):
            part = slice(start, start + self.at_once)
            factors = torch.stack(list(rows[part])).to(base.device)  # (part, parameters)
            tokens = torch.tensor([list(text) for text in texts[part]], device=base.device)  # (part, length)
            positions = torch.arange(tokens.shape[1], device=base.device).expand(tokens.shape)
            route = self.bank.route(list(range(len(factors))), tokens_per_row=tokens.shape[1], factors=factors)
            with self.bank.routed(route), base.autocast():
                logits = base.logits(base.hidden(tokens, positions)[:, -num_last:])  # (part, num_last, vocabulary)
            found.append(torch.log_softmax(logits / self.temperature, -1).cpu())
        return torch.cat(found)

    def ablated(self, row: Tensor) -> dict[str, Tensor]:
        """Return the row without each type of module in turn, by a description of what is missing."""
        return {f"the adapter without its {sort}": self._scaled(row, {sort: None}) for sort in self.sorts}

    def strong(self, seed: int, least: float) -> Tensor:
        """Return random factors (parameters,) in which each type of module changes our answers by ``least`` nats.

        They are hardly stronger, so that no type hides the others and half precision is exact enough. Raises UserError
        when a type of module changes nothing.
        """
        generator = torch.Generator().manual_seed(seed)
        row = torch.empty(self.bank.num_parameters)
        for site in self.bank.sites:
            row[site.a_slice].uniform_(-(site.num_in**-0.5), site.num_in**-0.5, generator=generator)
            row[site.b_slice].normal_(generator=generator)
        powers = dict.fromkeys(self.sorts, LOWEST)
        while True:
            scaled = self._scaled(row, powers)
            rows = [scaled, *self.ablated(scaled).values()]
            answers = [self.logprobs(rows, [prompt] * len(rows)) for prompt in self.prompts]
            own, *without = torch.cat(answers, dim=-1)  # (1 + sorts, 1, prompts * vocabulary)
            moved = {sort: float((own - one).abs().mean()) for sort, one in zip(self.sorts, without, strict=True)}
            weak = [sort for sort in self.sorts if moved[sort] < least and powers[sort] < HIGHEST]
            if not weak:
                break
            powers |= {sort: powers[sort] + 1 for sort in weak}
        if min(moved.values()) < 10 * HARMLESS:
            raise UserError(
                "population.lora_targets: one of them does not change the base's answers, so servers cannot be "
                "checked: set sampler.kind = torch, or other targets"
            )
        return scaled

    def _scaled(self, row: Tensor, powers: Mapping[str, int | None]) -> Tensor:
        """Return the row with each type of module scaled by two to its power; None: by 0."""
        scaled = row.clone()
        for site in self.bank.sites:
            power = powers.get(_sort_of(site), 0)
            scaled[site.b_slice] *= 0.0 if power is None else 2.0**power
        return scaled


def _sort_of(site: Site) -> str:
    return site.name.rpartition(".")[2]


def nearest(given: Tensor, own: Tensor, others: Mapping[str, Tensor]) -> str:
    """Return the name in ``others`` that the answer ``given`` (n,) is clearly nearer to than to ``own``; "" if none."""
    far = float((given - own).norm())
    near = {name: float((given - other).norm()) for name, other in others.items()}
    name = min(near, key=near.__getitem__, default="")
    is_clear = name and near[name] * TIMES_NEARER < far and (given - own).abs().mean() > HARMLESS
    return name if is_clear else ""


def judge_all(
    probe: Probe,
    answers: Sequence[Sequence[Sampled]],
    rows: Sequence[Tensor],
    others: Sequence[Mapping[str, Tensor]],
    tolerance: float,
) -> list[tuple[float, str]]:
    """Judge ``answers[i][p]``, ``STEPS`` tokens of adapter i (``rows[i]``) after prompt p, with the likeliest of each.

    ``others[i]``: factors that a server might use instead of adapter i, in addition to the base model and the other
    adapters. Returns for each adapter the mean distance from ours in nats, and whose answers they are ("": its own).
    """
    num = len(rows)
    named = [(i, name, row) for i, own_others in enumerate(others) for name, row in own_others.items()]
    all_rows = [*enumerate(rows), (0, torch.zeros_like(rows[0])), *((i, row) for i, _, row in named)]
    firsts: list[list[dict[str, Tensor]]] = [[] for _ in rows]
    laters: list[list[dict[str, Tensor]]] = [[] for _ in rows]
    for p, prompt in enumerate(probe.prompts):
        texts = [(*prompt, *answers[i][p].tokens[:-1]) for i, _ in all_rows]
        own = probe.logprobs([row for _, row in all_rows], texts, STEPS)  # (all_rows, STEPS, vocabulary)
        for i, answer in enumerate(answers):
            mine = {name: num + 1 + k for k, (j, name, _) in enumerate(named) if j == i}
            shared = {BASE: num} | {f"adapter {j + 1} of those loaded with it": j for j in range(num) if j != i}
            firsts[i].append(_compared(own[:, :1], answer[p].likely[:1], i, shared | mine))
            laters[i].append(_compared(own[:, 1:], answer[p].likely[1:], i, mine))
    return [_judge(first, later, tolerance) for first, later in zip(firsts, laters, strict=True)]


def _compared(
    own: Tensor, likely: Sequence[Mapping[int, float]], at: int, others: Mapping[str, int]
) -> dict[str, Tensor]:
    """Return log-probabilities (n,) of the listed tokens by name: the server's, our own, and those of others.

    ``own`` (adapters, steps, vocabulary) has the adapter itself at ``at``, and the others at the indices in ``others``.
    """
    listed = {OWN: at, **others}
    found = {
        name: torch.cat([own[k, step, list(tokens)] for step, tokens in enumerate(likely)]).double()
        for name, k in listed.items()
    }
    return {GIVEN: torch.tensor([value for tokens in likely for value in tokens.values()]).double(), **found}


def _judge(
    firsts: Sequence[dict[str, Tensor]], laters: Sequence[dict[str, Tensor]], tolerance: float
) -> tuple[float, str]:
    """Judge an adapter's answers after all prompts: the first token of each, and those after it."""
    culprit = ""
    for parts in (firsts, laters):
        joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        culprit = culprit or nearest(joined.pop(GIVEN), joined.pop(OWN), joined)
    off = [(part[GIVEN] - part[OWN]).abs() for part in (*firsts, *laters)]
    mean_abs = float(torch.cat(off).mean())
    if not culprit and (mean_abs > tolerance or any(one.mean() > TIMES_ALONE * tolerance for one in off)):
        culprit = UNKNOWN
    return mean_abs, culprit
