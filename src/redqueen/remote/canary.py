"""The canary: what a server answers for each adapter is compared with our own forward pass before it is believed.

A server that serves the bare base, a neighbour's adapter, the version before, or an adapter without some of its modules
answers without an error. So it is asked for the log-probabilities of the likeliest next tokens behind a few prompts,
and the learner's base with the very factors is asked the same. The answer is wrong when it is far from ours (a mean
difference beyond the tolerance), or when it is much nearer to one of those other things than to ours: so a swap is
found too where adapters have hardly parted. Where they have not parted at all, a swap does no harm. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redqueen.errors import UserError
from redqueen.policy.bank import AdapterBank, Site

Numbers = NDArray[np.float64]

TIMES_NEARER = 3.0
"""An answer is another adapter's when it is so many times nearer to that one's than to our own."""
HARMLESS = 1e-3
"""Mean difference in nats below which nobody is mistaken for another: two engines differ by as much in their sums."""
RAW = "log-probabilities at temperature 1 (start it with --logprobs-mode processed_logprobs)"
MOST_AT_ONCE = 16
"""Adapters in one forward pass."""
PARAMETERS_AT_ONCE = 1 << 28
"""Their parameters: a gigabyte in fp32."""
POWERS = -8, 5
"""How large random adapters are tried: two to these powers and those between."""


@dataclass(frozen=True)
class Finding:
    """What an answer is: its mean distance from ours in nats, and what it was found to be in place of ours ("": ours).

    ``undecided`` names what the answer could as well be: it is not ``TIMES_NEARER`` to ours than to that.
    """

    mean_abs: float
    culprit: str = ""
    undecided: tuple[str, ...] = ()


def judge(answer: Numbers, own: Numbers, others: Mapping[str, Numbers], tolerance: float) -> Finding:
    """Compare log-probabilities (n,) of the same tokens: a server's, our own, and what it could be in their place."""
    mean_abs = float(np.abs(answer - own).mean())
    far = float(np.linalg.norm(answer - own))
    near = {name: float(np.linalg.norm(answer - other)) for name, other in others.items()}
    nearer = [name for name, distance in near.items() if distance * TIMES_NEARER < far and mean_abs > HARMLESS]
    culprit = min(nearer, key=near.__getitem__, default="")
    if not culprit and mean_abs > tolerance:
        culprit = "nothing that is known"
    return Finding(mean_abs, culprit, tuple(name for name, distance in near.items() if distance <= TIMES_NEARER * far))


class Probe:
    """Our own answers: log-probabilities behind ``prompts`` at ``temperature``, of any adapters on the bank's base."""

    def __init__(self, bank: AdapterBank, prompts: Sequence[tuple[int, ...]], temperature: float) -> None:
        self.bank, self.prompts, self.temperature = bank, tuple(prompts), temperature
        self.vocabulary = int(bank.base.head.weight.shape[0])

    def own(self, rows: Sequence[Tensor], tokens: Sequence[Sequence[int]]) -> Numbers:
        """Return log-probabilities (adapters, all tokens) behind each prompt, of its ``tokens``.

        ``rows`` are factors (parameters,) as the bank holds them, one for each adapter.
        """
        return self.own_at(rows, tokens, self.temperature)[0]

    @torch.inference_mode()
    def own_at(
        self, rows: Sequence[Tensor], tokens: Sequence[Sequence[int]], *temperatures: float
    ) -> tuple[Numbers, ...]:
        """Return what ``own`` returns, at each of these temperatures."""
        columns = [torch.tensor(listed, device=self.bank.base.device) for listed in tokens]
        found: list[list[Numbers]] = [[] for _ in temperatures]
        for start in range(0, len(rows), self.at_once):
            part = torch.stack(list(rows[start : start + self.at_once])).to(self.bank.base.device)
            logits = [self._logits(part, prompt) for prompt in self.prompts]
            for answers, heat in zip(found, temperatures, strict=True):
                logp = [torch.log_softmax(one / heat, -1)[:, kept] for one, kept in zip(logits, columns, strict=True)]
                answers.append(torch.cat(logp, dim=1).double().cpu().numpy())
        return tuple(np.concatenate(answers) for answers in found)

    @property
    def at_once(self) -> int:
        """Adapters that are asked or checked at a time: few large ones, so that memory holds them beside the base."""
        return max(1, min(MOST_AT_ONCE, PARAMETERS_AT_ONCE // self.bank.num_parameters))

    def _logits(self, rows: Tensor, prompt: Sequence[int]) -> Tensor:
        """Return the logits (adapters, vocabulary) of each adapter behind a prompt."""
        base, num, length = self.bank.base, len(rows), len(prompt)
        tokens = torch.tensor(prompt, device=base.device).expand(num, length)
        positions = torch.arange(length, device=base.device).expand(num, length)
        route = self.bank.route(list(range(num)), tokens_per_row=length, factors=rows)
        with self.bank.routed(route), base.autocast():
            return base.logits(base.hidden(tokens, positions)[:, -1])

    def ablated(self, row: Tensor) -> dict[str, Tensor]:
        """Return a row without each sort of module in turn, by what is then missing."""
        return {f"the adapter without its {sort}": self._scaled(row, {sort: None}) for sort in self.sorts}

    @property
    def sorts(self) -> list[str]:
        """The sorts of modules that are adapted, by the last part of their names."""
        return sorted({_sort_of(site) for site in self.bank.sites})

    def strong(self, seed: int, least: float) -> Tensor:
        """Return random factors (parameters,) where each sort of module moves our answers by ``least`` nats.

        Hardly more, so that none drowns the others and half precision is exact enough. Where none are so strong, the
        strongest found. Raises UserError when a sort of module changes nothing.
        """
        generator = torch.Generator().manual_seed(seed)
        row = torch.empty(self.bank.num_parameters)
        for site in self.bank.sites:
            row[site.a_slice].uniform_(-(site.num_in**-0.5), site.num_in**-0.5, generator=generator)
            row[site.b_slice].normal_(generator=generator)
        tokens = [range(min(self.vocabulary, 256))] * len(self.prompts)
        powers = self._powers_alone(row, tokens, least)
        strongest, moved = row, 0.0
        while True:
            scaled = self._scaled(row, powers)
            answers = self.own([scaled, torch.zeros_like(row), *self.ablated(scaled).values()], tokens)
            sizes = np.abs(answers[1:] - answers[0]).mean(axis=1)
            if sizes.min() > moved:
                strongest, moved = scaled, float(sizes.min())
            weak = [sort for sort, size in zip(self.sorts, sizes[1:], strict=True) if size < least]
            weak = [sort for sort in weak if powers[sort] < POWERS[1]]
            if not weak:
                break
            powers |= {sort: powers[sort] + 1 for sort in weak}
        if moved < 10 * HARMLESS:
            raise UserError(
                "population.lora_targets: one of them changes nothing in the base's answers, so that no server could "
                "be checked: set sampler.kind = torch, or other targets"
            )
        return strongest

    def _powers_alone(self, row: Tensor, tokens: Sequence[Sequence[int]], least: float) -> dict[str, int]:
        """Return for each sort of module the power of two by which it alone moves our answers by ``least`` nats."""
        low, high = ({sort: power for sort in self.sorts} for power in POWERS)
        while any(low[sort] < high[sort] for sort in self.sorts):
            middle = {sort: (low[sort] + high[sort]) // 2 for sort in self.sorts}
            alone = [
                self._scaled(row, {other: None for other in self.sorts} | {sort: middle[sort]}) for sort in self.sorts
            ]
            answers = self.own([torch.zeros_like(row), *alone], tokens)
            sizes = np.abs(answers[1:] - answers[0]).mean(axis=1)
            for sort, size in zip(self.sorts, sizes, strict=True):
                if size >= least:
                    high[sort] = middle[sort]
                else:
                    low[sort] = min(middle[sort] + 1, high[sort])
        return high

    def _scaled(self, row: Tensor, powers: Mapping[str, int | None]) -> Tensor:
        """Return a row whose sorts of modules are scaled by two to their power; None: by 0."""
        scaled = row.clone()
        for site in self.bank.sites:
            power = powers.get(_sort_of(site), 0)
            scaled[site.b_slice] *= 0.0 if power is None else 2.0**power
        return scaled


def _sort_of(site: Site) -> str:
    return site.name.rpartition(".")[2]


def judge_all(
    probe: Probe,
    answers: Sequence[Sequence[Mapping[int, float]]],
    rows: Sequence[Tensor],
    others: Sequence[Mapping[str, Tensor]],
    tolerance: float,
) -> list[Finding]:
    """Judge ``answers[i][p]``, log-probabilities by token, of adapter i (``rows[i]``) behind prompt p.

    ``others[i]``: factors of what adapter i could be mistaken for; the bare base and the adapters beside it are added
    to these, and log-probabilities at temperature 1.
    """
    tokens = [sorted({t for answer in answers for t in answer[p]}) for p in range(len(probe.prompts))]
    named = [(i, name, row) for i, own_others in enumerate(others) for name, row in own_others.items()]
    own, raw = probe.own_at(rows, tokens, probe.temperature, 1.0)
    every = probe.own([torch.zeros_like(rows[0]), *(row for _, _, row in named)], tokens)
    findings = []
    for i, answer in enumerate(answers):
        given = np.array([answer[p].get(t, np.nan) for p, listed in enumerate(tokens) for t in listed])
        mistaken = {"the bare base": every[0]}
        mistaken |= {name: every[k] for k, (j, name, _) in enumerate(named, start=1) if j == i}
        mistaken |= {f"adapter {j + 1} of those loaded with it": own[j] for j in range(len(rows)) if j != i}
        if probe.temperature != 1.0:
            mistaken[RAW] = raw[i]
        known = ~np.isnan(given)
        kept = {name: values[known] for name, values in mistaken.items()}
        findings.append(judge(given[known], own[i][known], kept, tolerance))
    return findings
