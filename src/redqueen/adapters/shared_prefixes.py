"""Prompts with a common prefix, and a layout in which the prefix is computed once.

Few-shot examples, and the instructions of a chat, precede every prompt of a kind. A member computes them once for all
its prompts; later prompts find them in the cache. Keys and values depend on the adapter, so members do not share a
prefix. Source: prefix caching of serving engines; in training: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.adapters.routing import TokenRows
from redqueen.adapters.tree_attention import IN_CACHE, Run, TreePlan

Prefix = tuple[int, tuple[int, ...]]
"""A member's slot and the tokens with which several of its prompts begin."""

SHARED_TOKENS = 32
"""Shorter common prefixes are not shared: another run of tokens costs about as much (ours)."""


def group_by_prefix(prompts: Sequence[tuple[int, ...]]) -> list[tuple[list[int], int]]:
    """Return groups of prompts with a common prefix, as indices, each with the length of the prefix.

    Prompts are in one group if their first ``SHARED_TOKENS`` are equal; the length is 0 for a single prompt. The prefix
    leaves out at least the last token of each prompt. Groups are in the order of their first prompts.
    """
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    for i, prompt in enumerate(prompts):
        by_prefix.setdefault(prompt[:SHARED_TOKENS], []).append(i)
    return [(group, _in_common([prompts[i][:-1] for i in group])) for group in by_prefix.values()]


def _in_common(prompts: list[tuple[int, ...]]) -> int:
    first, last = min(prompts), max(prompts)  # in sorted order, the two with the shortest common prefix
    if len(prompts) < 2 or len(first) < SHARED_TOKENS:
        return 0
    return next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


@dataclass(frozen=True)
class PackedPrompts:
    """Prompts in rows (``TokenRows``), each prefix once: ``tokens``, ``positions`` (rows, row length), ``owners``.

    ``in_cache`` (2, n): place and position in the cache of the n tokens that were computed before. ``sources``
    (prompts, longest prompt): the index of each token of a prompt in the flattened rows followed by these n tokens; -1
    after a prompt's end.
    """

    tokens: Tensor
    positions: Tensor
    tree: TreePlan
    owners: list[int]
    sources: Tensor
    in_cache: Tensor

    def to(self, device: torch.device) -> PackedPrompts:
        """Return the prompts with every tensor on ``device``."""
        tokens, positions, tree = self.tokens.to(device), self.positions.to(device), self.tree.to(device)
        return PackedPrompts(tokens, positions, tree, self.owners, self.sources.to(device), self.in_cache.to(device))


def pack_prompts(
    slots: Sequence[int],
    prompts: Sequence[tuple[int, ...]],
    num_shared: Sequence[int],
    cached: Mapping[Prefix, int],
    pad_id: int,
    dtype: torch.dtype,
) -> PackedPrompts:
    """Lay out the prompts of members ``slots`` (a member's prompts are adjacent). The first ``num_shared`` tokens are
    laid out once for all prompts of the member with this prefix, and not at all if the prefix is ``cached`` (at a place
    in the cache). ``dtype`` is that of the model's attention."""
    rows = TokenRows(pad_id)
    sources = torch.full((len(prompts), max(map(len, prompts))), -1)
    runs: dict[Prefix, Run] = {}
    in_cache: list[tuple[int, int]] = []
    for i, (slot, prompt, num) in enumerate(zip(slots, prompts, num_shared, strict=True)):
        name = slot, prompt[:num]
        if num and name not in runs and name in cached:
            runs[name] = Run(IN_CACHE + len(in_cache), num)
            in_cache += [(cached[name], position) for position in range(num)]
        elif num and name not in runs:
            runs[name] = rows.add(prompt[:num])
        prefix = runs.get(name)
        rest = rows.add(prompt[num:], prefix)
        if prefix:
            sources[i, :num] = torch.arange(prefix.start, prefix.start + num)
        sources[i, num : len(prompt)] = torch.arange(rest.start, rest.start + rest.length)
        if i + 1 == len(prompts) or slots[i + 1] != slot:
            rows.end_member(slot)
    tokens, positions, tree = rows.laid_out(dtype)
    sources[sources >= IN_CACHE] -= IN_CACHE - tokens.numel()
    places = torch.tensor(in_cache, dtype=torch.int64).view(-1, 2).T  # (2, n)
    return PackedPrompts(tokens, positions, tree, rows.owners, sources, places)
