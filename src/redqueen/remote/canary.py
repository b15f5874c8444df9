"""The canary: what a server answers for each adapter is compared with our own forward pass before it is believed.

A server that serves the bare base, a neighbour's adapter, the version before, or an adapter without some of its modules
answers without an error. So it is asked for the log-probabilities of the likeliest next tokens behind a few prompts
and behind the first few that it writes there itself, and the learner's base with the very factors is asked the same.
The answer is wrong when it is far from ours (a mean difference beyond the tolerance, or beyond twice the tolerance
behind one of the prompts), or when it is much nearer to one of those other things than to ours: so a swap is found too
where adapters have hardly parted. Where they have not parted at all, a swap does no harm. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redqueen.errors import UserError
from redqueen.policy.bank import AdapterBank, Site
from redqueen.remote.server import Sampled

Numbers = NDArray[np.float64]

TIMES_NEARER = 3.0
"""An answer is another adapter's when it is so many times nearer to that one's than to our own."""
HARMLESS = 1e-3
"""Mean difference in nats below which nobody is mistaken for another: two engines differ by as much in their sums."""
STEPS = 4
"""Tokens that a server writes behind each prompt: those after the first come by other kernels, in other batches."""
TIMES_ALONE = 2.0
"""How many tolerances an answer behind one prompt may be off: a mean over all hides one that is wrong among many."""
UNKNOWN = "nothing that is known"
LATER, ALONE = ", after the first token", ", behind one prompt among several"
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
        culprit = UNKNOWN
    return Finding(mean_abs, culprit, tuple(name for name, distance in near.items() if distance <= TIMES_NEARER * far))


@dataclass(frozen=True)
class Asked:
    """One question to our own forward pass: factors (parameters,), a text, and the tokens whose log-probabilities are
    wanted behind its last ones, ``listed[-1]`` behind all of it. Texts that are asked together are equally long."""

    row: Tensor
    text: Sequence[int]
    listed: Sequence[Sequence[int]]


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

    def own_at(
        self, rows: Sequence[Tensor], tokens: Sequence[Sequence[int]], *temperatures: float
    ) -> tuple[Numbers, ...]:
        """Return what ``own`` returns, at each of these temperatures."""
        found: list[list[Numbers]] = [[] for _ in temperatures]
        for prompt, listed in zip(self.prompts, tokens, strict=True):
            told = self.told([Asked(row, prompt, [listed]) for row in rows], *temperatures)
            for answers, numbers in zip(found, told, strict=True):
                answers.append(np.stack([one for (one,) in numbers]))
        return tuple(np.concatenate(answers, axis=1) for answers in found)

    @property
    def at_once(self) -> int:
        """Adapters that are asked or checked at a time: few large ones, so that memory holds them beside the base."""
        return max(1, min(MOST_AT_ONCE, PARAMETERS_AT_ONCE // self.bank.num_parameters))

    @torch.inference_mode()
    def told(self, asked: Sequence[Asked], *temperatures: float) -> tuple[list[list[Numbers]], ...]:
        """Return at each of these temperatures, for each asked, the log-probabilities of what is listed by position."""
        found: list[list[list[Numbers]]] = [[] for _ in temperatures]
        for start in range(0, len(asked), self.at_once):
            part = asked[start : start + self.at_once]
            logits = self._logits(part, len(part[0].listed))
            for answers, heat in zip(found, temperatures, strict=True):
                answers += [
                    [at[list(tokens)].double().cpu().numpy() for at, tokens in zip(row, one.listed, strict=True)]
                    for row, one in zip(torch.log_softmax(logits / heat, -1), part, strict=True)
                ]
        return tuple(found)

    def _logits(self, asked: Sequence[Asked], num_last: int) -> Tensor:
        """Return the logits (asked, ``num_last``, vocabulary) behind the last tokens of each text."""
        base, num, length = self.bank.base, len(asked), len(asked[0].text)
        tokens = torch.tensor([one.text for one in asked], device=base.device)
        positions = torch.arange(length, device=base.device).expand(num, length)
        factors = torch.stack([one.row for one in asked]).to(base.device)
        route = self.bank.route(list(range(num)), tokens_per_row=length, factors=factors)
        with self.bank.routed(route), base.autocast():
            return base.logits(base.hidden(tokens, positions)[:, -num_last:])

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


@dataclass(frozen=True)
class _Part:
    """Some of an adapter's answer: what the server said, our own, and what it could be in its place."""

    given: Numbers
    own: Numbers
    others: Mapping[str, Numbers]

    @property
    def mean_abs(self) -> float:
        return float(np.abs(self.given - self.own).mean())

    def finding(self, tolerance: float, where: str = "") -> Finding:
        found = judge(self.given, self.own, self.others, tolerance)
        return replace(found, culprit=found.culprit + where) if found.culprit else found


def judge_all(
    probe: Probe,
    answers: Sequence[Sequence[Sampled]],
    rows: Sequence[Tensor],
    others: Sequence[Mapping[str, Tensor]],
    tolerance: float,
) -> list[Finding]:
    """Judge ``answers[i][p]``, ``STEPS`` tokens of adapter i (``rows[i]``) behind prompt p with the likeliest of each.

    ``others[i]``: factors of what adapter i could be mistaken for; the bare base and the adapters beside it are added
    to these, and log-probabilities at temperature 1.
    """
    named = [(i, name, row) for i, own_others in enumerate(others) for name, row in own_others.items()]
    everybody = [*enumerate(rows), (0, torch.zeros_like(rows[0])), *((i, row) for i, _, row in named)]
    firsts: list[list[_Part]] = [[] for _ in rows]
    laters: list[list[_Part]] = [[] for _ in rows]
    for p, prompt in enumerate(probe.prompts):
        tokens = sorted({t for answer in answers for t in answer[p].likely[0]})
        asked = [
            Asked(row, (*prompt, *answers[i][p].tokens[:-1]), [tokens, *map(list, answers[i][p].likely[1:])])
            for i, row in everybody
        ]
        own, raw = probe.told(asked, probe.temperature, 1.0)
        for i, answer in enumerate(answers):
            said = answer[p].likely
            given = np.array([said[0].get(t, np.nan) for t in tokens])
            known = ~np.isnan(given)
            mine = {name: len(rows) + 1 + k for k, (j, name, _) in enumerate(named) if j == i}
            mistaken = {"the bare base": own[len(rows)][0]} | {name: own[k][0] for name, k in mine.items()}
            mistaken |= {f"adapter {j + 1} of those loaded with it": own[j][0] for j in range(len(rows)) if j != i}
            if probe.temperature != 1.0:
                mistaken[RAW] = raw[i][0]
            firsts[i].append(_Part(given[known], own[i][0][known], {name: v[known] for name, v in mistaken.items()}))
            later = {name: np.concatenate(own[k][1:]) for name, k in mine.items()}
            written = np.array([value for likely in said[1:] for value in likely.values()])
            laters[i].append(_Part(written, np.concatenate(own[i][1:]), later))
    return [_judge_parts(first, later, tolerance) for first, later in zip(firsts, laters, strict=True)]


def _judge_parts(firsts: Sequence[_Part], laters: Sequence[_Part], tolerance: float) -> Finding:
    """Judge an adapter by what it is nearest to, then by its mean distance from ours, then behind each prompt alone.

    The mean is over everything: first tokens alone are few, and half precision moves all that are behind one prompt
    together.
    """
    first, later = _joined(firsts), _joined(laters)
    mean_abs = float(np.abs(np.concatenate([first.given - first.own, later.given - later.own])).mean())
    found = [first.finding(np.inf), later.finding(np.inf, LATER)]
    if mean_abs > tolerance:
        found.append(Finding(mean_abs, UNKNOWN + ("" if first.mean_abs > tolerance else LATER)))
    for parts, where in (firsts, ""), (laters, LATER):
        far = [part for part in parts if part.mean_abs > TIMES_ALONE * tolerance]
        found += [part.finding(0.0, where + ALONE) for part in far]
    return next((one for one in found if one.culprit), replace(found[0], mean_abs=mean_abs))


def _joined(parts: Sequence[_Part]) -> _Part:
    names = parts[0].others
    return _Part(
        np.concatenate([part.given for part in parts]),
        np.concatenate([part.own for part in parts]),
        {name: np.concatenate([part.others[name] for part in parts]) for name in names},
    )
