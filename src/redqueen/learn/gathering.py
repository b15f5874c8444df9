"""Gradients that wait: a member's are gathered over steps until enough groups have spoken, and then count as one batch.

The gathered gradient is the mean over all tokens of all its steps, sum_k n_k g_k / sum_k n_k with n_k the tokens and
g_k the token-mean gradient of step k: the member has not moved in between, so it is that of one large batch (of which
each step's advantages are whitened for themselves). Ground: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

PREFIX = "waiting."
"""Begins the names of these tensors in a checkpoint."""


@dataclass
class Waiting:
    """A member's gradient summed over ``num_tokens`` tokens of ``num_groups`` groups."""

    gradient: Tensor
    num_tokens: int
    num_groups: int


class Gathering:
    """Gradients by slot that wait for more groups."""

    def __init__(self, min_groups: int) -> None:
        self.min_groups = min_groups
        self.waiting: dict[int, Waiting] = {}

    def add(self, slot: int, gradient: Tensor, num_tokens: int, num_groups: int) -> Tensor | None:
        """Add one step's token-mean ``gradient``; return that of everything gathered once enough groups spoke."""
        if num_groups >= self.min_groups and slot not in self.waiting:
            return gradient
        so_far = self.waiting.pop(slot, Waiting(torch.zeros_like(gradient), 0, 0))
        summed = so_far.gradient.add_(gradient, alpha=num_tokens)
        tokens, groups = so_far.num_tokens + num_tokens, so_far.num_groups + num_groups
        if groups >= self.min_groups:
            return summed / tokens
        self.waiting[slot] = Waiting(summed, tokens, groups)
        return None

    def forget(self, slot: int) -> None:
        """Drop what waits for a member: its weights are others now."""
        self.waiting.pop(slot, None)

    def state_dict(self) -> dict[str, Tensor]:
        """Return what waits, as ``waiting.<slot>.gradient`` and ``waiting.<slot>.counts`` (tokens, groups)."""
        state = {}
        for slot, one in self.waiting.items():
            state[f"{PREFIX}{slot}.gradient"] = one.gradient.clone()
            state[f"{PREFIX}{slot}.counts"] = torch.tensor([one.num_tokens, one.num_groups])
        return state

    def load_state(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what ``state_dict`` returned; other names are passed over."""
        self.waiting.clear()
        for name, gradient in state.items():
            if name.startswith(PREFIX) and name.endswith(".gradient"):
                slot = name.removeprefix(PREFIX).removesuffix(".gradient")
                tokens, groups = state[f"{PREFIX}{slot}.counts"].tolist()
                self.waiting[int(slot)] = Waiting(gradient.to(device, copy=True), int(tokens), int(groups))
