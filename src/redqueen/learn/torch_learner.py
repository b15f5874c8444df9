"""The learner in torch: all members' rollouts in shared batches, one fused optimiser step over the stacked factors.

Each member is an independent learner: its loss is the mean over *its* tokens, its gradient is clipped on its own norm,
its moments and step count are its own, and nothing of one member enters another's update. The mean is over tokens (not
first over each completion), so a long wrong answer weighs more than a short one; that is AZR's choice too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from redqueen.config import LearnConfig
from redqueen.errors import UserError
from redqueen.learn.batches import Batch, MemberData, batches_of, by_member
from redqueen.learn.policy_loss import clipped_surrogate
from redqueen.nouns import Rollout, UpdateStats
from redqueen.policy.bank import AdapterBank
from redqueen.timing import Report, unheard

DEFAULTS = LearnConfig()


class TorchLearner:
    """Steps the members of ``bank`` by policy gradients, as the section ``learn`` of the config says.

    ``temperature`` must be the sampler's (0 counts as 1); ``pad_id`` fills rows up. ``logit_chunk_tokens``: tokens
    whose logits exist at a time. ``members_at_once``: members whose gradients are held at a time (0: all). ``report``
    is told of the completions' tokens as they are learned from.
    """

    def __init__(
        self,
        bank: AdapterBank,
        config: LearnConfig = DEFAULTS,
        *,
        temperature: float = 1.0,
        pad_id: int = 0,
        members_at_once: int = 0,
        logit_chunk_tokens: int = 4096,
        report: Report = unheard,
    ) -> None:
        self.bank, self.base, self.config = bank, bank.base, config
        self.temperature, self.pad_id = temperature or 1.0, pad_id
        self.members_at_once, self.logit_chunk_tokens = members_at_once, logit_chunk_tokens
        self.report = report
        # One parameter a member, sharing the bank's memory: AdamW then keeps moments and a step count for each, and
        # skips the members that have no gradient.
        self.members = [nn.Parameter(bank.flat[slot]) for slot in range(bank.num_members)]
        self.optimiser = torch.optim.AdamW(
            self.members,
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=True,
        )
        if config.gradient_checkpointing:
            # Renamed in transformers 5; the old name warns.
            enable = getattr(bank.base.model, "activation_checkpointing_enable", None)
            (enable or bank.base.model.gradient_checkpointing_enable)({"use_reentrant": False})

    def update(self, rollouts: Sequence[Rollout]) -> list[UpdateStats]:
        """Take one step for every member with rollouts; one record a member, by ascending slot.

        A member whose advantages are all zero has nothing to learn and is not stepped (momentum alone must not move
        it); it is reported with loss and gradient 0. A member whose loss or gradient is not finite is left unstepped
        too, and reported with ``ok=False``.
        """
        members = by_member(rollouts)
        at_once = self.members_at_once or max(1, len(members))
        stats: list[UpdateStats] = []
        for start in range(0, len(members), at_once):
            stats += self._update_wave(members[start : start + at_once])
        return stats

    def _update_wave(self, members: list[MemberData]) -> list[UpdateStats]:
        gradients, losses, clipped = self.gradients(members)
        norms = torch.linalg.vector_norm(gradients, dim=1)
        scales = (self.config.max_grad_norm / norms.clamp(min=1e-12)).clamp(max=1.0)
        norm_values, loss_values, clip_values = norms.tolist(), losses.tolist(), clipped.tolist()
        stats = []
        for i, member in enumerate(members):
            ok = math.isfinite(norm_values[i]) and math.isfinite(loss_values[i])
            if ok and member.has_signal:
                self.members[member.slot].grad = gradients[i].mul_(scales[i])
            clip_frac = clip_values[i] / member.num_tokens if member.num_tokens else 0.0
            stats.append(UpdateStats(member.slot, loss_values[i], norm_values[i], clip_frac, member.num_tokens, ok))
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return stats

    def gradients(self, members: Sequence[MemberData]) -> tuple[Tensor, Tensor, Tensor]:
        """Return gradients (n, parameters) fp32, losses (n,) and numbers of clipped tokens (n,), without stepping."""
        device = self.base.device
        gradients = torch.zeros(len(members), self.bank.num_parameters, device=device)
        losses, clipped = torch.zeros(len(members), device=device), torch.zeros(len(members), device=device)
        place = {member.slot: i for i, member in enumerate(members)}
        place_of = torch.zeros(self.bank.num_members, dtype=torch.int64)
        place_of[list(place)] = torch.tensor(list(place.values()))
        place_of = place_of.to(device)
        learned, total = 0, sum(member.num_tokens_run for member in members)
        self.base.model.train(self.config.gradient_checkpointing)
        for batch in batches_of(members, self.config.micro_batch_tokens, self.pad_id, self.base.compute_dtype):
            batch = batch.to(device)
            route = self.bank.route(batch.owners, tokens_per_row=batch.tokens.shape[1], train=True)
            with self.bank.routed(route), self.base.autocast():
                hidden = self.base.hidden(batch.tokens, batch.positions, tree=batch.tree)
                predicting = hidden.reshape(-1, hidden.shape[-1])[batch.source]
                signal = self._hidden_gradient(predicting.detach(), batch, place_of[batch.slot], losses, clipped)
                predicting.backward(signal)
            slots = sorted(set(batch.owners))
            self.bank.collect_gradients(route, gradients, [place[slot] for slot in slots])
            learned += len(batch.target)
            self.report(learned, total, learned)
        self.base.model.eval()
        return gradients, losses, clipped

    def _hidden_gradient(
        self, hidden: Tensor, batch: Batch, member_of: Tensor, losses: Tensor, clipped: Tensor
    ) -> Tensor:
        """Return d loss / d ``hidden`` (n, width) chunk by chunk, so that few logits exist; add up the statistics."""
        gradient = torch.empty_like(hidden)
        for chunk in _chunks(len(hidden), self.logit_chunk_tokens):
            leaf = hidden[chunk].requires_grad_()
            logits = self.base.logits(leaf) / self.temperature
            new = torch.log_softmax(logits, dim=-1).gather(1, batch.target[chunk, None])[:, 0]
            old = new.detach() if self.config.old_logprobs == "recompute" else batch.old_logprobs[chunk]
            token_loss, held = clipped_surrogate(new, old, batch.advantages[chunk], self.config.clip)
            weighted = token_loss * batch.weights[chunk]
            (gradient[chunk],) = torch.autograd.grad(weighted.sum(), leaf)
            losses.index_add_(0, member_of[chunk], weighted.detach())
            clipped.index_add_(0, member_of[chunk], held.float())
        return gradient

    # Optimiser state -------------------------------------------------------------------------------------------

    def reset(self, slot: int) -> None:
        """Forget a member's moments and step count (a newborn's optimiser state)."""
        self.optimiser.state.pop(self.members[slot], None)

    def inherit(self, slot: int, parent_slot: int) -> None:
        """Give ``slot`` a copy of its parent's moments and step count."""
        state = self.optimiser.state.get(self.members[parent_slot])
        self.reset(slot)
        if state:
            self.optimiser.state[self.members[slot]] = {name: value.clone() for name, value in state.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return moments and step counts as ``<slot>.step``, ``<slot>.exp_avg``, ``<slot>.exp_avg_sq`` (fp32)."""
        return {
            f"{slot}.{name}": value.detach().clone()
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
                    "resume with the configuration stored beside the run"
                )
            where = value.device if name == "step" and self.base.device.type == "cpu" else self.base.device
            self.optimiser.state[self.members[slot]][name] = value.to(where, copy=True)


def _chunks(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(total, start + size))
