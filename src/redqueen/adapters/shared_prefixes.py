"""Prompts with a common prefix, and a layout in which the prefix is computed once.

Few-shot examples, and the instructions of a chat, precede every prompt of a kind. A member computes them once
for all its prompts; keys and values depend on the adapter, so members do not share. Source: prefix caching, as serving
engines have it; in training: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.adapters.routing import TokenRows
from redqueen.adapters.tree_attention import Run, TreePlan

SHARED_TOKENS = 32
"""Prompts with fewer first tokens in common are read separately: a further run costs about as much (ours)."""


def group_by_beginning(prompts: Sequence[tuple[int, ...]]) -> list[tuple[list[int], int]]:
    """Return groups of prompts that begin alike, as indices, each with the number of tokens that it has in common.

    Alike are prompts whose first ``SHARED_TOKENS`` are equal; the number is 0 for a prompt like no other. Each prompt
    keeps a token of its own. Groups are in the order of their first prompts.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, prompt in enumerate(prompts):
        alike.setdefault(prompt[:SHARED_TOKENS], []).append(i)
    return [(group, _in_common([prompts[i][:-1] for i in group])) for group in alike.values()]


def _in_common(prompts: list[tuple[int, ...]]) -> int:
    first, last = min(prompts), max(prompts)  # the two that are least alike
    if len(prompts) < 2 or len(first) < SHARED_TOKENS:
        return 0
    return next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


@dataclass(frozen=True)
class PackedPrompts:
    """Prompts in rows (``token_rows``), beginnings once: ``tokens``, ``positions`` (rows, row length), ``owners``.

    ``sources`` (prompts, longest prompt): where each token of a prompt lies in the rows as one line, -1 behind its end.
    """

    tokens: Tensor
    positions: Tensor
    tree: TreePlan
    owners: list[int]
    sources: Tensor

    def to(self, device: torch.device) -> PackedPrompts:
        """Return it with every tensor on ``device``."""
        tokens, positions, sources = (t.to(device) for t in (self.tokens, self.positions, self.sources))
        return PackedPrompts(tokens, positions, self.tree.to(device), self.owners, sources)


def pack_prompts(
    slots: Sequence[int], prompts: Sequence[tuple[int, ...]], num_shared: Sequence[int], pad_id: int, dtype: torch.dtype
) -> PackedPrompts:
    """Lay out the prompts of members ``slots`` (those of one side by side), of which the first ``num_shared`` tokens
    are read once for all of the member's prompts that begin so. ``dtype`` is that of the model's attention.
    """
    rows = TokenRows(pad_id)
    sources = torch.full((len(prompts), max(map(len, prompts))), -1)
    known: dict[tuple[int, ...], Run] = {}
    for i, (slot, prompt, num) in enumerate(zip(slots, prompts, num_shared, strict=True)):
        beginning = known.get(prompt[:num])
        if num and beginning is None:
            beginning = known[prompt[:num]] = rows.add(prompt[:num])
        rest = rows.add(prompt[num:], beginning)
        if beginning:
            sources[i, :num] = torch.arange(beginning.start, beginning.start + num)
        sources[i, num : len(prompt)] = torch.arange(rest.start, rest.start + rest.length)
        if i + 1 == len(prompts) or slots[i + 1] != slot:
            rows.end_member(slot)
            known = {}
    tokens, positions, tree = rows.laid_out(dtype)
    return PackedPrompts(tokens, positions, tree, rows.owners, sources)
