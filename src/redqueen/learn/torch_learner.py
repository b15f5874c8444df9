"""The learner in torch: all members' rollouts in shared batches, one fused optimiser step over the stacked factors.

Each member is an independent learner: its loss is the mean over *its* tokens, its gradient is clipped by its own norm,
it has its own moments and step count, and it does not influence the updates of others. The mean is over tokens (not
first over each completion), so a long wrong answer weighs more than a short one, as in AZR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import torch
from torch import Tensor, nn

from redqueen.adapters.bank import AdapterBank, checkpoint_contexts
from redqueen.adapters.base import deterministic_kernels
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.memory import available_bytes, give_back_if_scarce, logits_at_once
from redqueen.adapters.threads import run_in_threads
from redqueen.config import LearnConfig
from redqueen.errors import UserError
from redqueen.learn.batches import Batch, MemberData, batches_of, by_member, mini_batches, split_evenly
from redqueen.learn.loss import (
    MismatchSums,
    add_by_member,
    clipped_surrogate,
    divergence,
    drawn_logprobs,
    truncated_weights,
)
from redqueen.records import Rollout, Tuning, UpdateStats
from redqueen.timing import Report, unheard

DEFAULTS = LearnConfig()
BETAS = (0.9, 0.99)
"""AdamW's. Ours: runs of a few hundred steps need a shorter memory than 0.999."""
MAX_GRAD_NORM = 1.0
"""Gradients are clipped to this norm, per member. Ours: one member's outlier does not slow the others."""


@dataclass
class Totals:
    """Sums over passes for n members: ``gradients`` (n, parameters) and ``sums`` (3, n), fp32."""

    gradients: Tensor
    sums: Tensor
    mismatch: MismatchSums | None

    def add(self, other: Totals) -> None:
        """Add the totals of other passes for the same members."""
        self.gradients += other.gradients
        self.sums += other.sums
        if self.mismatch is not None and other.mismatch is not None:
            self.mismatch.merge(other.mismatch)


def _merged(stats: Sequence[UpdateStats]) -> UpdateStats:
    """Return one record for a member's updates of a step: means over the finite ones (over all if none is), weighted
    by tokens where they are over tokens. It is ``ok`` if the last update was finite."""
    if len(stats) == 1:
        return stats[0]
    finite = [one for one in stats if one.ok] or stats
    num_finite = sum(one.num_tokens for one in finite)
    shares = [one.num_tokens / max(1, num_finite) for one in finite]
    return replace(
        stats[0],  # with its mismatch, since the weights had not changed yet
        loss=sum(share * one.loss for share, one in zip(shares, finite, strict=True)),
        grad_norm=fmean(one.grad_norm for one in finite),
        clip_frac=sum(share * one.clip_frac for share, one in zip(shares, finite, strict=True)),
        num_tokens=sum(one.num_tokens for one in stats),
        ok=stats[-1].ok,
        kl=sum(share * one.kl for share, one in zip(shares, finite, strict=True)),
        stepped=any(one.stepped for one in stats),
    )


class TorchLearner:
    """Updates the members of ``bank`` by policy gradients, as configured in the section ``learn``.

    ``temperature`` must be the sampler's (0 counts as 1); ``pad_id`` pads rows. ``logit_chunk_tokens``: maximum number
    of tokens whose logits exist at a time. ``importance_cap``: cap of the tokens' importance weights if another engine
    samples; None if this one does. ``num_lanes`` threads share each update and the micro-batches' tokens. ``report``
    gets the number of completion tokens learned from.
    """

    def __init__(
        self,
        bank: AdapterBank,
        config: LearnConfig = DEFAULTS,
        *,
        temperature: float = 1.0,
        pad_id: int = 0,
        logit_chunk_tokens: int = 4096,
        importance_cap: float | None = None,
        num_lanes: int = 1,
        report: Report = unheard,
    ) -> None:
        self.bank, self.base, self.config = bank, bank.base, config
        self.temperature, self.pad_id = temperature or 1.0, pad_id
        self.importance_cap = importance_cap
        self.mismatch: MismatchSums | None = None
        self.tunings: dict[int, Tuning] = {}
        on_cuda = self.base.device.type == "cuda"
        self.logit_chunk_tokens = logits_at_once(self.base.head.out_features, on_cuda, logit_chunk_tokens)
        self.num_lanes, self.report = num_lanes, report
        # One parameter a member, sharing the bank's memory: AdamW then keeps moments and a step count for each, and
        # skips the members that have no gradient. One group a member, since each has its own learning rate.
        self.members = [nn.Parameter(bank.flat[slot]) for slot in range(bank.num_members)]
        self.optimiser = torch.optim.AdamW(
            [{"params": [member]} for member in self.members],
            lr=config.learning_rate,  # each update sets its own, from ``tunings``
            betas=BETAS,
            weight_decay=0.0,  # decay would pull an adapter back to the base
            fused=True,
        )
        if config.gradient_checkpointing:
            # Renamed in transformers 5; the old name warns.
            enable = getattr(bank.base.model, "activation_checkpointing_enable", None)
            enable = enable or bank.base.model.gradient_checkpointing_enable
            enable({"use_reentrant": False, "context_fn": checkpoint_contexts})
            bank.base.model.disable_input_require_grads()  # only reentrant checkpointing needs it

    def update(self, rollouts: Sequence[Rollout], tunings: Mapping[int, Tuning] | None = None) -> list[UpdateStats]:
        """Take one step for every member with rollouts, or one for each of its mini-batches (``Tuning.num_updates``);
        return one record per member, by ascending slot.

        ``tunings`` by slot; other members use the config's. A member whose advantages are all zero is not stepped
        (momentum alone must not change it); it is reported with loss and gradient 0. With ``supervised`` and advantages
        of 1 the loss is the mean cross-entropy in nats per token. A member whose loss or gradient is not finite is not
        stepped either, and is reported with ``ok=False``.
        """
        default = Tuning(self.config.learning_rate)
        self.tunings = {r.slot: (tunings or {}).get(r.slot, default) for r in rollouts}
        parts = mini_batches(rollouts, {slot: tuning.num_updates for slot, tuning in self.tunings.items()})
        stats: list[UpdateStats] = []
        for members in map(by_member, parts):
            stats += self._update_all(members)
        return [_merged([one for one in stats if one.slot == slot]) for slot in sorted(self.tunings)]

    def _update_all(self, members: list[MemberData]) -> list[UpdateStats]:
        gradients, sums = self.gradients(members)
        norms = torch.linalg.vector_norm(gradients, dim=1).tolist()  # (n,), of gradients (n, parameters)
        losses, clipped, kl_sums = sums.tolist()  # (n,) each
        stats, stepped = [], []
        for i, member in enumerate(members):
            ok = math.isfinite(norms[i]) and math.isfinite(losses[i])
            if ok and member.has_signal:
                self._set_gradient(member.slot, gradients[i])
                stepped.append(member.slot)
            clip_frac = clipped[i] / member.num_tokens if member.num_tokens else 0.0
            kl = kl_sums[i] / max(1, member.num_run)
            moved = member.slot in stepped
            mismatch = self.mismatch.of(i) if self.mismatch else None
            stats.append(
                UpdateStats(member.slot, losses[i], norms[i], clip_frac, member.num_tokens, ok, kl, moved, mismatch)
            )
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return stats

    def _set_gradient(self, slot: int, gradient: Tensor) -> None:
        """Pass a member's gradient (parameters,), clipped by its own norm, to the optimiser."""
        norm = torch.linalg.vector_norm(gradient)
        self.members[slot].grad = gradient.mul_((MAX_GRAD_NORM / norm.clamp(min=1e-12)).clamp(max=1.0))
        self.optimiser.param_groups[slot]["lr"] = self.tunings[slot].learning_rate

    def gradients(self, members: Sequence[MemberData]) -> tuple[Tensor, Tensor]:
        """Return gradients (n, parameters) and sums (3, n), fp32, without stepping.

        The sums are each member's loss, its number of clipped tokens, and its divergence from the reference over all
        its tokens that were run.
        """
        place = {member.slot: i for i, member in enumerate(members)}
        self.base.model.train(self.config.gradient_checkpointing)
        parts = split_evenly(members, self.num_lanes)
        try:
            first, *others = run_in_threads([partial(self._run, part, place) for part in parts], self.report)
        finally:
            self.base.model.eval()
        for other in others:
            first.add(other)
        self.mismatch = first.mismatch
        return first.gradients, first.sums

    def _run(self, members: Sequence[MemberData], place: Mapping[int, int], report: Report) -> Totals:
        """Run the members' micro-batches forward and backward; the member in slot s adds to row ``place[s]``."""
        device, cap = self.base.device, self.importance_cap
        totals = Totals(
            torch.zeros(len(place), self.bank.num_parameters, device=device),
            torch.zeros(3, len(place), device=device),
            None if cap is None else MismatchSums(len(place), cap, device),
        )
        place_of = torch.zeros(self.bank.num_members, dtype=torch.int64)  # (members,): slot -> row of the totals
        place_of[list(place)] = torch.tensor(list(place.values()))
        place_of = place_of.to(device)
        learned, total = 0, sum(member.num_run for member in members)
        size = -(-self.config.micro_batch_tokens // self.num_lanes)
        for batch in batches_of(members, size, self.pad_id, self.base.compute_dtype):
            batch = batch.to(device)
            has_rl = any(slot not in self.tunings or not self.tunings[slot].supervised for slot in batch.owners)
            reference = self._reference_hidden(batch) if self.config.kl_weight and has_rl else None  # (n, width)
            route = self.bank.route(batch.owners, tokens_per_row=batch.tokens.shape[1], train=True)
            with self.bank.routed(route), self.base.autocast():
                predicting = self._predicting(batch)  # (n, width), n = completion tokens of the batch
                # d loss / d predicting (n, width)
                signal = self._hidden_gradient(predicting.detach(), reference, batch, place_of[batch.slot], totals)
                with deterministic_kernels(device):
                    predicting.backward(signal)
            slots = sorted(set(batch.owners))
            self.bank.collect_gradients(route, totals.gradients, [place[slot] for slot in slots])
            del predicting, signal, route
            if device.type == "cpu":
                give_back_if_scarce(available_bytes(device))
            learned += len(batch.target)
            report(learned, total, learned)
        return totals

    def _predicting(self, batch: Batch) -> Tensor:
        """Return the hidden states (n, width) that predict the batch's completion tokens, with the current route."""
        hidden = self.base.hidden(batch.tokens, batch.positions, tree=batch.tree)  # (rows, length, width)
        return hidden.reshape(-1, hidden.shape[-1])[batch.source]  # (n, width)

    @torch.no_grad()
    def _reference_hidden(self, batch: Batch) -> Tensor:
        """Return the same hidden states (n, width) of the bare base, which is run without a route."""
        with self.base.autocast():
            return self._predicting(batch)

    def _hidden_gradient(
        self, hidden: Tensor, reference: Tensor | None, batch: Batch, member_of: Tensor, totals: Totals
    ) -> Tensor:
        """Return d loss / d ``hidden`` (n, width), in chunks to limit the logits; add statistics to ``totals``."""
        gradient = torch.empty_like(hidden)  # (n, width)
        factors = self._by_token(batch, {s: t.temperature for s, t in self.tunings.items()}, 1.0)  # (n,) or None
        supervised = self._by_token(batch, {s: float(t.supervised) for s, t in self.tunings.items()}, 0.0)
        for chunk in _chunks(len(hidden), self.logit_chunk_tokens):
            leaf = hidden[chunk].requires_grad_()  # (chunk, width)
            # a number or (chunk, 1)
            temperature = self.temperature if factors is None else self.temperature * factors[chunk, None]
            logits = self.base.logits(leaf)  # (chunk, vocabulary) fp32
            if reference is None:
                new = drawn_logprobs(logits, batch.target[chunk], temperature)  # (chunk,)
            else:
                log_p = torch.log_softmax(logits / temperature, dim=-1)  # (chunk, vocabulary)
                new = log_p.gather(1, batch.target[chunk, None])[:, 0]
            old = new.detach() if self.config.updates_per_step == 1 else batch.old_logprobs[chunk]
            # (chunk,) each
            token_loss, clipped = clipped_surrogate(new, old, batch.advantages[chunk], self.config.clip)
            if totals.mismatch is not None:
                log_ratios = new.detach() - batch.old_logprobs[chunk]
                totals.mismatch.add(log_ratios, member_of[chunk])
                if self.config.updates_per_step == 1:  # otherwise the surrogate already contains the ratio
                    token_loss = token_loss * truncated_weights(log_ratios, totals.mismatch.cap)
            if supervised is not None:
                token_loss = torch.where(supervised[chunk] > 0, -batch.advantages[chunk] * new, token_loss)
            if reference is not None:
                log_q = torch.log_softmax(self.base.logits(reference[chunk]) / temperature, dim=-1)  # like log_p
                kl = divergence(log_p, log_q)  # (chunk,)
                if supervised is not None:  # supervised text has no KL penalty
                    kl = kl * (1.0 - supervised[chunk])
                token_loss = token_loss + self.config.kl_weight * kl
                add_by_member(totals.sums[2], member_of[chunk], kl.detach())
            weighted = token_loss * batch.weights[chunk]  # (chunk,); a member's tokens sum to its mean loss
            (gradient[chunk],) = torch.autograd.grad(weighted.sum(), leaf)
            add_by_member(totals.sums[0], member_of[chunk], weighted.detach())
            add_by_member(totals.sums[1], member_of[chunk], clipped.float())
        return gradient

    def _by_token(self, batch: Batch, by_slot: Mapping[int, float], usual: float) -> Tensor | None:
        """Return for each token its member's number (n,), or None if all members have the ``usual`` one."""
        if all(value == usual for value in by_slot.values()):
            return None
        values = torch.full((self.bank.num_members,), usual)  # (members,)
        for slot, value in by_slot.items():
            values[slot] = value
        return values.to(self.base.device)[batch.slot]  # filled on the host, without waiting for a device

    # Optimiser state -------------------------------------------------------------------------------------------

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count."""
        self.optimiser.state.pop(self.members[slot], None)

    def _placed(self, name: str, value: Tensor) -> Tensor:
        # The step count of a fused AdamW is on the CPU for a base there, and otherwise on the device.
        stays = name == "step" and self.base.device.type == "cpu"
        return value.to(value.device if stays else self.base.device, copy=True)

    def state_dict(self) -> dict[str, Tensor]:
        """Return moments and step counts as ``<slot>.step``, ``<slot>.exp_avg``, ``<slot>.exp_avg_sq`` (fp32): the
        learner's own tensors, not copies."""
        return {
            f"{slot}.{name}": value.detach()
            for slot, member in enumerate(self.members)
            for name, value in self.optimiser.state.get(member, {}).items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned. Raises UserError when it belongs to another population."""
        self.optimiser.state.clear()
        for key, value in state.items():
            slot_text, name = key.split(".", 1)
            slot = int(slot_text)
            if slot >= len(self.members) or (name != "step" and value.shape != self.members[slot].shape):
                raise UserError(
                    "the optimiser state belongs to a population of another size or lora_rank; "
                    "resume with the configuration stored with the run"
                )
            self.optimiser.state[self.members[slot]][name] = self._placed(name, value)


def _chunks(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(total, start + size))


FACTORS, MOMENTS = "factors", "learner."
"""In ``state_dict``: the name of all members' factors (members, parameters); prefix of the learner's tensors."""


class TorchStore:
    """Implements ``AdapterStore`` on a bank and the learner whose parameters share its memory."""

    def __init__(self, bank: AdapterBank, learner: TorchLearner) -> None:
        self.bank, self.learner = bank, learner

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""
        return self.bank.genotype(slot)

    def load(self, slot: int, genotype: Genotype) -> None:
        """Put a new member into ``slot``, without moments."""
        self.bank.load(slot, genotype)
        self.learner.forget(slot)

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, without moments."""
        self.bank.copy(slot, into)
        self.learner.forget(into)

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder without moments."""
        self.bank.reset(slot, rng_seed)
        self.learner.forget(slot)

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count; its factors stay."""
        self.learner.forget(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments as named tensors."""
        moments = self.learner.state_dict()
        return {FACTORS: self.bank.flat} | {f"{MOMENTS}{name}": tensor for name, tensor in moments.items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned."""
        self.bank.load_all(tensors[FACTORS])
        self.learner.load_state({k.removeprefix(MOMENTS): v for k, v in tensors.items() if k.startswith(MOMENTS)})
