"""Prompts with a common prefix, and a layout in which the prefix is computed once.

Few-shot examples, and the instructions of a chat, precede every prompt of a kind. A member computes them once for all
its prompts: those that it reads later find them in the cache. Keys and values depend on the adapter, so members do not
share. Source: prefix caching, as serving engines have it; in training: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.adapters.routing import TokenRows
from redqueen.adapters.tree_attention import IN_CACHE, Run, TreePlan

Beginning = tuple[int, tuple[int, ...]]
"""A member's slot, and the first tokens of prompts of its."""

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

    ``in_cache`` (2, n): place and position in the cache of the n tokens that were read before. ``sources`` (prompts,
    longest prompt): where each token of a prompt lies in the rows as one line, followed by these n; -1 behind its end.
    """

    tokens: Tensor
    positions: Tensor
    tree: TreePlan
    owners: list[int]
    sources: Tensor
    in_cache: Tensor

    def to(self, device: torch.device) -> PackedPrompts:
        """Return it with every tensor on ``device``."""
        tokens, positions, tree = self.tokens.to(device), self.positions.to(device), self.tree.to(device)
        return PackedPrompts(tokens, positions, tree, self.owners, self.sources.to(device), self.in_cache.to(device))


def pack_prompts(
    slots: Sequence[int],
    prompts: Sequence[tuple[int, ...]],
    num_shared: Sequence[int],
    cached: Mapping[Beginning, int],
    pad_id: int,
    dtype: torch.dtype,
) -> PackedPrompts:
    """Lay out the prompts of members ``slots`` (those of one side by side), of which the first ``num_shared`` tokens
    are read once for all of the member's prompts that begin so, and not at all where a place in the cache holds them.
    ``dtype`` is that of the model's attention.
    """
    rows = TokenRows(pad_id)
    sources = torch.full((len(prompts), max(map(len, prompts))), -1)
    known: dict[Beginning, Run] = {}
    in_cache: list[tuple[int, int]] = []
    for i, (slot, prompt, num) in enumerate(zip(slots, prompts, num_shared, strict=True)):
        name = slot, prompt[:num]
        if num and name not in known and name in cached:
            known[name] = Run(IN_CACHE + len(in_cache), num)
            in_cache += [(cached[name], position) for position in range(num)]
        elif num and name not in known:
            known[name] = rows.add(prompt[:num])
        beginning = known.get(name)
        rest = rows.add(prompt[num:], beginning)
        if beginning:
            sources[i, :num] = torch.arange(beginning.start, beginning.start + num)
        sources[i, num : len(prompt)] = torch.arange(rest.start, rest.start + rest.length)
        if i + 1 == len(prompts) or slots[i + 1] != slot:
            rows.end_member(slot)
    tokens, positions, tree = rows.laid_out(dtype)
    sources[sources >= IN_CACHE] -= IN_CACHE - tokens.numel()
    places = torch.tensor(in_cache, dtype=torch.int64).view(-1, 2).T  # (2, n)
    return PackedPrompts(tokens, positions, tree, rows.owners, sources, places)
