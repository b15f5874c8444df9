"""Attention over groups that share a prompt, without a dense mask: each run of tokens against what it may see.

Several groups (a prompt and its completions) stand in one batch, and most pairs of tokens are strangers. Here prompts
attend causally to themselves, and completions to their prompt and themselves, in a few rectangular calls over runs of
similar length, so that hardly a pair is scored in vain. It does not matter how tokens are cut into rows. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_WASTE = 0.7
"""Runs share a call while the shorter is at least this part of the longer; below, padding costs more than a call."""


@dataclass(frozen=True)
class Run:
    """Consecutive tokens of a batch, seen as one line of tokens: a prompt, or a completion of ``prompt``.

    A prompt's tokens see the prompt up to themselves; a completion's see their prompt and themselves.
    """

    start: int
    length: int
    prompt: Run | None = None


@dataclass(frozen=True)
class Bucket:
    """Runs handled by one call: n runs of up to ``queries.shape[1]`` tokens, padded.

    ``queries`` (n, q), ``keys`` (n, k): flat token positions, padding repeating a token of the same run or prompt.
    ``bias`` (n, 1, q, k): 0 where a query may look, -inf elsewhere; None: causal, and the keys are the queries.
    """

    queries: Tensor
    keys: Tensor
    bias: Tensor | None


@dataclass(frozen=True)
class TreePlan:
    """The calls for one batch. ``home`` (rows, length): where a token's output lies among theirs."""

    buckets: tuple[Bucket, ...]
    home: Tensor

    def to(self, device: torch.device) -> TreePlan:
        """Return the plan with every tensor on ``device``."""
        moved = (
            Bucket(b.queries.to(device), b.keys.to(device), None if b.bias is None else b.bias.to(device))
            for b in self.buckets
        )
        return TreePlan(tuple(moved), self.home.to(device))


def plan_tree(runs: Sequence[Run], num_rows: int, row_tokens: int, dtype: torch.dtype) -> TreePlan:
    """Plan the attention of ``runs`` in a batch of tokens (num_rows, row_tokens).

    Every row must begin with a token of a run. ``dtype`` is that of the model's queries, which the biases must share.
    """
    home = np.full(num_rows * row_tokens, -1, dtype=np.int64)
    buckets: list[Bucket] = []
    place = 0
    for members in _grouped(runs):
        bucket = _bucket(members, dtype)
        for i, run in enumerate(members):
            first = place + i * bucket.queries.shape[1]
            home[run.start : run.start + run.length] = np.arange(first, first + run.length)
        place += bucket.queries.numel()
        buckets.append(bucket)
    rows = home.reshape(num_rows, row_tokens)
    # Padding at a row's end takes the output of the row's first token, which is the same member's: a broken member
    # then spoils no other, not even with zero gradients times NaN.
    rows = np.where(rows >= 0, rows, rows[:, :1])
    return TreePlan(tuple(buckets), torch.from_numpy(rows))


def tree_attention(query: Tensor, key: Tensor, value: Tensor, plan: TreePlan, scale: float) -> Tensor:
    """Attend as ``plan`` says. ``query`` (rows, heads, length, dim), ``key``, ``value`` with fewer heads perhaps.

    Returns (rows, length, heads, dim). Gathering by ``embedding`` because its backward pass adds rows fast on a CPU.
    """
    rows, heads, length, dim = query.shape
    kv_heads = key.shape[1]
    shared = heads // kv_heads
    flat_q, flat_k, flat_v = (t.to(value.dtype).transpose(1, 2).reshape(rows * length, -1) for t in (query, key, value))
    outputs = []
    for bucket in plan.buckets:
        n, num_q = bucket.queries.shape
        q = F.embedding(bucket.queries, flat_q).view(n, num_q, heads, dim).transpose(1, 2)
        k, v = (F.embedding(bucket.keys, f).view(n, -1, kv_heads, dim).transpose(1, 2) for f in (flat_k, flat_v))
        if bucket.bias is None:
            k, v = (t.repeat_interleave(shared, dim=1) if shared > 1 else t for t in (k, v))
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        else:
            # Query heads that share a key head become further queries of it: no copies of long keys.
            q = q.reshape(n, kv_heads, shared * num_q, dim)
            bias = bucket.bias.repeat(1, 1, shared, 1) if shared > 1 else bucket.bias
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
            out = out.view(n, heads, num_q, dim)
        outputs.append(out.transpose(1, 2).reshape(n * num_q, heads * dim))
    return F.embedding(plan.home, torch.cat(outputs)).view(rows, length, heads, dim).to(query.dtype)


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Put runs of similar shape together: completions by their own length, rounded up, then by their prompt's."""

    def shape(run: Run) -> tuple[int, int, int]:
        if run.prompt is None:
            return (0, 0, run.length)
        return (1, (run.length - 1).bit_length(), run.prompt.length)

    groups: list[list[Run]] = []
    for run in sorted(runs, key=shape, reverse=True):
        first = groups[-1][0] if groups else None
        if first and shape(first)[:2] == shape(run)[:2] and shape(run)[2] >= _WASTE * shape(first)[2]:
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def _bucket(runs: list[Run], dtype: torch.dtype) -> Bucket:
    starts = np.array([run.start for run in runs])[:, None]
    lengths = np.array([run.length for run in runs])[:, None]
    steps = np.arange(lengths.max())[None]
    inside = steps < lengths
    queries = starts + np.where(inside, steps, 0)
    first = runs[0].prompt
    if first is None:  # prompts: padding comes last, where no token looks
        index = torch.from_numpy(queries)
        return Bucket(index, index, None)
    prompt_starts = np.array([run.prompt.start for run in runs if run.prompt])[:, None]
    prompt_lengths = np.array([run.prompt.length for run in runs if run.prompt])[:, None]
    prompt_steps = np.arange(prompt_lengths.max())[None]
    in_prompt = prompt_steps < prompt_lengths
    keys = np.concatenate([prompt_starts + np.where(in_prompt, prompt_steps, 0), queries], axis=1)
    num_queries = queries.shape[1]
    see_prompt = np.repeat(in_prompt[:, None, :], num_queries, axis=1)
    see_own = np.broadcast_to(np.tril(np.ones((num_queries, num_queries), dtype=bool)), (len(runs), *[num_queries] * 2))
    seen = torch.from_numpy(np.concatenate([see_prompt, see_own], axis=2))[:, None]
    bias = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)
    return Bucket(torch.from_numpy(queries), torch.from_numpy(keys), bias)
