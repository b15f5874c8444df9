"""From rollouts to micro-batches: packed rows of several members, with what the loss needs for each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from redqueen.nouns import Rollout
from redqueen.policy.packing import Group, Pack, pack


@dataclass(frozen=True)
class MemberData:
    """One member's rollouts of one step. ``num_tokens`` counts all its completion tokens, learned from or not."""

    slot: int
    rollouts: tuple[Rollout, ...]
    num_tokens: int
    has_signal: bool


@dataclass(frozen=True)
class Batch:
    """One forward and backward pass: ``tokens``, ``positions`` (rows, length), ``mask`` (rows, 1, length, length).

    ``owners``: the slot of each row. Flat, one entry for each of n completion tokens: the hidden state at (``row``,
    ``source``) predicts the token at (``row``, ``target``); its ``advantages``, ``old_logprobs`` and ``weights``
    (1 / the member's tokens) are fp32.
    """

    tokens: Tensor
    positions: Tensor
    mask: Tensor
    owners: list[int]
    row: Tensor
    source: Tensor
    target: Tensor
    advantages: Tensor
    old_logprobs: Tensor
    weights: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch with every tensor on ``device``."""
        return Batch(
            self.tokens.to(device),
            self.positions.to(device),
            self.mask.to(device),
            self.owners,
            self.row.to(device),
            self.source.to(device),
            self.target.to(device),
            self.advantages.to(device),
            self.old_logprobs.to(device),
            self.weights.to(device),
        )


def by_member(rollouts: Sequence[Rollout]) -> list[MemberData]:
    """Gather rollouts by slot, ascending. Completions without tokens teach nothing and are dropped.

    Raises ValueError when a rollout has not one advantage for each completion.
    """
    found: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if len(rollout.advantages) != len(rollout.completions):
            raise ValueError("a rollout needs one advantage for each completion")
        found.setdefault(rollout.slot, []).append(rollout)
    members = []
    for slot, own in sorted(found.items()):
        num_tokens = sum(len(c.tokens) for r in own for c in r.completions)
        # Also true of an advantage that is not a number: its member must be run, found broken and reported.
        signal = any(a != 0.0 and c.tokens for r in own for a, c in zip(r.advantages, r.completions, strict=True))
        members.append(MemberData(slot, tuple(own), num_tokens, signal))
    return members


def batches_of(members: Sequence[MemberData], row_tokens: int, micro_batch_tokens: int, pad_id: int) -> Iterator[Batch]:
    """Cut the members' rollouts into micro-batches, rows of one member beside each other.

    A completion with advantage 0 has an exactly zero gradient and is left out (it still counts in the mean). Rows that
    must be longer than ``row_tokens`` are packed on their own, so that the others are not padded to their length.
    """
    usual: list[tuple[Group, list[tuple[float, float, tuple[float, ...]]]]] = []
    long: list[tuple[Group, list[tuple[float, float, tuple[float, ...]]]]] = []
    for member in members:
        for rollout in member.rollouts:
            pairs = zip(rollout.completions, rollout.advantages, strict=True)
            kept = [(c, a) for c, a in pairs if c.tokens and a != 0.0]
            if not kept:
                continue
            group = Group(rollout.prompt, tuple(c.tokens for c, _ in kept), member.slot)
            facts = [(a, 1.0 / member.num_tokens, c.logprobs) for c, a in kept]
            longest = len(rollout.prompt) + max(len(c.tokens) for c, _ in kept)
            (usual if longest <= row_tokens else long).append((group, facts))
    for chosen in (usual, long):
        if chosen:
            packed = pack([group for group, _ in chosen], row_tokens, pad_id)
            yield from _micro_batches(packed, [facts for _, facts in chosen], micro_batch_tokens)


def _micro_batches(
    packed: Pack, facts: list[list[tuple[float, float, tuple[float, ...]]]], micro_batch_tokens: int
) -> Iterator[Batch]:
    """Order a pack's rows by owner and cut them to the token budget."""
    start = np.cumsum([0] + [len(f) for f in facts])
    flat = [fact for group in facts for fact in group]
    advantage = torch.tensor([a for a, _, _ in flat], dtype=torch.float32)
    weight = torch.tensor([w for _, w, _ in flat], dtype=torch.float32)
    logprob_start = torch.from_numpy(np.cumsum([0] + [len(lp) for _, _, lp in flat])[:-1].astype(np.int64))
    logprob = torch.tensor([x for _, _, lp in flat for x in lp], dtype=torch.float32)
    which = torch.from_numpy(start)[packed.group] + packed.completion
    order = torch.argsort(packed.owner, stable=True)
    rows_at_once = max(1, micro_batch_tokens // packed.tokens.shape[1])
    for first in range(0, len(order), rows_at_once):
        rows = order[first : first + rows_at_once]
        new_row = torch.full((len(order),), -1, dtype=torch.int64)
        new_row[rows] = torch.arange(len(rows))
        mine = (new_row[packed.row] >= 0).nonzero()[:, 0]
        at = which[mine]
        yield Batch(
            tokens=packed.tokens[rows],
            positions=packed.positions[rows],
            mask=replace(packed, segment=packed.segment[rows], branch=packed.branch[rows]).mask(),
            owners=packed.owner[rows].tolist(),
            row=new_row[packed.row[mine]],
            source=packed.source[mine],
            target=packed.target[mine],
            advantages=advantage[at],
            old_logprobs=logprob[logprob_start[at] + packed.offset[mine]],
            weights=weight[at],
        )
