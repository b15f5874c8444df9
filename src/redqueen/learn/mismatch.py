"""How far the engine that sampled is from the learner: sums over the tokens of each member, on the learner's device."""

from __future__ import annotations

import torch
from torch import Tensor

from redqueen.learn.sums import add_by_member
from redqueen.nouns import Mismatch


class MismatchSums:
    """Adds up d = log p - log q by member, ``num_members`` of them; ``cap`` is that of the weights exp(d)."""

    def __init__(self, num_members: int, cap: float, device: torch.device) -> None:
        self.cap = cap
        self.sums = torch.zeros(4, num_members, dtype=torch.float64, device=device)
        self.largest = torch.zeros(num_members, dtype=torch.float64, device=device)

    def add(self, log_ratios: Tensor, member_of: Tensor) -> None:
        """Add tokens: ``log_ratios`` (n,) in nats and the place of each one's member (n,)."""
        d = log_ratios.double()
        size = d.abs()
        for row, values in enumerate((torch.ones_like(d), size, torch.expm1(d) - d, (d.exp() > self.cap).double())):
            add_by_member(self.sums[row], member_of, values)
        self.largest.scatter_reduce_(0, member_of, size, "amax")

    def merge(self, other: MismatchSums) -> None:
        """Add the tokens that ``other`` has added up for the same members."""
        self.sums += other.sums
        self.largest = torch.maximum(self.largest, other.largest)

    def of(self, member: int) -> Mismatch | None:
        """Return a member's figures; None when nothing was added for it."""
        num, size, divergence, truncated = self.sums[:, member].tolist()
        if num == 0:
            return None
        return Mismatch(size / num, float(self.largest[member]), divergence / num, truncated / num)
