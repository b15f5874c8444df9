"""Attention over groups that share a prompt, without a dense mask: each run of tokens attends only to itself and its
prefix.

One batch holds several groups (a prompt and its completions), and most pairs of tokens must not attend to each other.
A run attends causally to itself and fully to the runs that it continues: a completion to its prompt, the rest of a
prompt to the prefix that it shares with others. This takes a few rectangular calls over runs of similar length, so that
few pairs are scored and then masked. The division of the tokens into rows does not matter. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

_MIN_LENGTH_RATIO = 0.7
"""Runs share a call if the shorter has at least this share of the longer's length; otherwise padding costs more."""

IN_CACHE = 1 << 40
"""A run with this or a larger start is not in the batch: ``tree_attention`` gets its keys and values as ``cached``."""

MOST_SCORES = 1 << 25
"""Calls with more scores (over all heads) use the fused kernel, which does not store them."""


@dataclass(frozen=True)
class Run:
    """Consecutive tokens of a (flattened) batch that continue those of ``before``, if any.

    A token attends to those of its run up to itself, to ``before``, and to all runs that ``before`` continues.
    """

    start: int
    length: int
    before: Run | None = None

    @property
    def num_before(self) -> int:
        """The number of tokens in ``before`` and in the runs that it continues."""
        return 0 if self.before is None else self.before.length + self.before.num_before

    def positions_before(self) -> NDArray[np.int64]:
        """Return the positions of these tokens in order."""
        if self.before is None:
            return np.zeros(0, dtype=np.int64)
        own = np.arange(self.before.start, self.before.start + self.before.length)
        return np.concatenate([self.before.positions_before(), own])


@dataclass(frozen=True)
class Bucket:
    """``num_runs`` runs of one call, padded to ``num_queries`` tokens that attend to ``num_keys``.

    ``bias`` (num_runs or 1, 1, 1, num_queries, num_keys): 0 where a query may attend, -inf elsewhere.
    """

    num_runs: int
    num_queries: int
    num_keys: int
    bias: Tensor


@dataclass(frozen=True)
class TreePlan:
    """The calls for one batch, and the positions of their tokens in it.

    ``queries``, ``keys``: flat token positions of all buckets, concatenated; padding repeats a token of the same run or
    of those before it. Keys of cached runs are numbered after the batch's own. ``output_index`` (rows, length): the
    index of a token's output among the outputs of all queries.
    """

    buckets: tuple[Bucket, ...]
    queries: Tensor
    keys: Tensor
    output_index: Tensor

    def to(self, device: torch.device) -> TreePlan:
        """Return the plan with every tensor on ``device``."""
        moved = (replace(bucket, bias=bucket.bias.to(device)) for bucket in self.buckets)
        return TreePlan(tuple(moved), self.queries.to(device), self.keys.to(device), self.output_index.to(device))


def plan_tree(runs: Sequence[Run], num_rows: int, row_tokens: int, dtype: torch.dtype) -> TreePlan:
    """Plan the attention of ``runs`` in a batch of tokens (num_rows, row_tokens).

    Every row must begin with a token of a run. ``dtype`` is that of the model's queries, which the biases get too.
    """
    output_index = np.full(num_rows * row_tokens, -1, dtype=np.int64)
    buckets: list[Bucket] = []
    queries: list[NDArray[np.int64]] = []
    keys: list[NDArray[np.int64]] = []
    place = 0
    for group in _grouped(runs):
        bucket, bucket_queries, bucket_keys = _bucket(group, dtype)
        for i, run in enumerate(group):
            first = place + i * bucket.num_queries
            output_index[run.start : run.start + run.length] = np.arange(first, first + run.length)
        place += bucket_queries.size
        buckets.append(bucket)
        queries.append(bucket_queries.ravel())
        keys.append(bucket_keys.ravel())
    rows = output_index.reshape(num_rows, row_tokens)  # (rows, row length)
    # Padding at a row's end takes the output of the row's first token, which is of the same member: a broken member
    # then cannot affect another, not even by zero gradients times NaN.
    rows = np.where(rows >= 0, rows, rows[:, :1])
    all_keys = np.concatenate(keys)
    all_keys[all_keys >= IN_CACHE] -= IN_CACHE - num_rows * row_tokens
    return TreePlan(
        tuple(buckets), torch.from_numpy(np.concatenate(queries)), torch.from_numpy(all_keys), torch.from_numpy(rows)
    )


def tree_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: TreePlan, scale: float, cached: Tensor | None = None
) -> Tensor:
    """Attend along ``plan``. ``query`` (rows, heads, length, dim); ``key``, ``value`` may have fewer heads.

    ``cached`` (tokens, 2 * kv heads, dim): keys, then values, of the runs in the cache, in the order of their starts.
    Returns (rows, length, heads, dim). Tokens are gathered with ``embedding``, whose backward sums rows quickly.
    """
    rows, heads, length, dim = query.shape
    dtype, kv_heads = value.dtype, key.shape[1]
    with torch.autocast(query.device.type, enabled=False):
        # One line for each token: flat_q (rows * length, heads * dim), flat_kv (rows * length, 2 * kv heads * dim)
        flat_q = (query * scale).to(dtype).transpose(1, 2).reshape(rows * length, heads * dim)
        flat_kv = torch.cat((key.to(dtype), value), dim=1).transpose(1, 2).reshape(rows * length, 2 * kv_heads * dim)
        if cached is not None:
            flat_kv = torch.cat((flat_kv, cached.flatten(1)))  # (rows * length + cached tokens, 2 * kv heads * dim)
        # all_q (queries of all buckets, heads * dim), all_kv (keys of all buckets, 2 * kv heads * dim)
        all_q, all_kv = F.embedding(plan.queries, flat_q), F.embedding(plan.keys, flat_kv)
        parts_q = all_q.split([b.num_runs * b.num_queries for b in plan.buckets])
        parts_kv = all_kv.split([b.num_runs * b.num_keys for b in plan.buckets])
        # Each (runs * queries, heads * dim) of its bucket
        outputs = [_attend(b, q, kv, kv_heads, dim) for b, q, kv in zip(plan.buckets, parts_q, parts_kv, strict=True)]
        out = F.embedding(plan.output_index, torch.cat(outputs))  # (rows, length, heads * dim)
    return out.view(rows, length, heads, dim).to(query.dtype)


def _attend(bucket: Bucket, q: Tensor, kv: Tensor, kv_heads: int, dim: int) -> Tensor:
    """Attend within one bucket: ``q`` (runs * queries, heads * dim), already scaled; the output is like it."""
    n, num_q, num_k = bucket.num_runs, bucket.num_queries, bucket.num_keys
    # Query heads that share a key head become more queries of it, without copies of keys.
    q = q.view(n, num_q, kv_heads, -1, dim).permute(0, 2, 3, 1, 4)  # (runs, kv heads, shared, queries, dim)
    shared = q.shape[2]  # query heads that share one key-value head
    q = q.reshape(n * kv_heads, shared * num_q, dim)  # (runs * kv heads, shared * queries, dim)
    # k, v (runs * kv heads, keys, dim)
    k, v = kv.view(n, num_k, 2, kv_heads, dim).permute(2, 0, 3, 1, 4).reshape(2, n * kv_heads, num_k, dim).unbind()
    if q.device.type == "cpu" and n * kv_heads * shared * num_q * num_k <= MOST_SCORES:
        # Twice as fast as the fused kernel, which is optimised for long sequences.
        # (runs, kv heads, shared, queries, keys)
        scores = torch.bmm(q, k.transpose(1, 2)).view(n, kv_heads, shared, num_q, num_k).add_(bucket.bias)
        # (runs * kv heads, shared * queries, dim)
        out = torch.bmm(torch.softmax(scores, dim=-1).view(n * kv_heads, shared * num_q, num_k), v)
    else:
        # (runs, 1, shared * queries, keys)
        bias = bucket.bias.expand(n, 1, shared, num_q, num_k).reshape(n, 1, shared * num_q, num_k)
        q, k, v = (t.view(n, kv_heads, -1, dim) for t in (q, k, v))  # (runs, kv heads, shared * queries or keys, dim)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)
    # (runs * queries, heads * dim)
    return out.view(n, kv_heads, shared, num_q, dim).permute(0, 3, 1, 2, 4).reshape(n * num_q, -1)


def _grouped(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs of similar shape: by length; continuing runs by length, rounded up, and then by tokens before them."""

    def shape(run: Run) -> tuple[int, int, int]:
        if run.before is None:
            return (0, 0, run.length)
        return (1, (run.length - 1).bit_length(), run.num_before)

    groups: list[list[Run]] = []
    for run in sorted(runs, key=shape, reverse=True):
        first = groups[-1][0] if groups else None
        if first and shape(first)[:2] == shape(run)[:2] and shape(run)[2] >= _MIN_LENGTH_RATIO * shape(first)[2]:
            groups[-1].append(run)
        else:
            groups.append([run])
    return groups


def _bucket(runs: list[Run], dtype: torch.dtype) -> tuple[Bucket, NDArray[np.int64], NDArray[np.int64]]:
    """Return the bucket of similar ``runs`` with the positions of its queries and of its keys, (runs, tokens) each."""
    starts = np.array([run.start for run in runs])[:, None]  # (runs, 1)
    lengths = np.array([run.length for run in runs])[:, None]
    num_queries = int(lengths.max())
    steps = np.arange(num_queries)[None]
    queries = starts + np.where(steps < lengths, steps, 0)  # (runs, queries)
    causal = np.tril(np.ones((num_queries, num_queries), dtype=bool))[None]  # (1, queries, queries)
    if runs[0].before is None:  # padding comes last, where no token attends
        return _with_bias(len(runs), causal, dtype), queries, queries
    before = [run.positions_before() for run in runs]
    # is_before, positions_before (runs, longest before): a run with fewer tokens before it repeats the first of them
    is_before = np.arange(max(len(places) for places in before)) < np.array([len(places) for places in before])[:, None]
    positions_before = np.repeat(np.array([places[0] for places in before])[:, None], is_before.shape[1], axis=1)
    positions_before[is_before] = np.concatenate(before)
    keys = np.concatenate([positions_before, queries], axis=1)  # (runs, longest before + queries)
    attends_before = np.repeat(is_before[:, None, :], num_queries, axis=1)  # (runs, queries, longest before)
    attends = np.concatenate([attends_before, np.repeat(causal, len(runs), axis=0)], axis=2)  # (runs, queries, keys)
    return _with_bias(len(runs), attends, dtype), queries, keys


def _with_bias(num_runs: int, attends: NDArray[np.bool_], dtype: torch.dtype) -> Bucket:
    mask = torch.from_numpy(attends)[:, None, None]  # (runs or 1, 1, 1, queries, keys)
    bias = torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, -torch.inf)
    return Bucket(num_runs, attends.shape[1], attends.shape[2], bias)
