"""Routing: which rows of a batch belong to which member, laid out in blocks for one batched product.

A block is up to ``width`` rows of one member. If the rows are sorted by member, with equally many for each, the blocks
are a view of the batch; otherwise rows are gathered into blocks and scattered back. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from redqueen.adapters.tree_attention import Run, TreePlan, plan_tree

ROW_TOKENS = 64
"""Length of a row: long enough for an efficient product, short enough that padding a member's last row is cheap."""


class TokenRows:
    """Runs of tokens, added member by member, in rows of one member each; a last row is padded with ``pad_id``.

    ``owners``: the slot of each row.
    """

    def __init__(self, pad_id: int) -> None:
        self.owners: list[int] = []
        self._pad_id = pad_id
        self._tokens: list[int] = []
        self._positions: list[int] = []
        self._runs: list[Run] = []

    def add(self, tokens: Sequence[int], before: Run | None = None) -> Run:
        """Append a run of ``tokens``. It continues ``before``, if given: its positions follow that run's."""
        run = Run(len(self._tokens), len(tokens), before)
        self._runs.append(run)
        self._tokens += tokens
        self._positions += range(run.num_before, run.num_before + run.length)
        return run

    def end_member(self, slot: int) -> None:
        """Pad the last row; all runs since the last call belong to the member ``slot``."""
        tail = -len(self._tokens) % ROW_TOKENS
        self._tokens += [self._pad_id] * tail
        self._positions += [0] * tail
        self.owners += [slot] * (len(self._tokens) // ROW_TOKENS - len(self.owners))

    def laid_out(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, TreePlan]:
        """Return tokens and positions (rows, ``ROW_TOKENS``) and the plan of their attention (its bias: ``dtype``)."""
        shape = (len(self.owners), ROW_TOKENS)
        tokens, positions = torch.tensor(self._tokens).view(shape), torch.tensor(self._positions).view(shape)
        return tokens, positions, plan_tree(self._runs, *shape, dtype)


# Overhead of a layout, in units of the cost of one token's product (measured on a CPU at rank 16, width 192).
BLOCK_COST_TOKENS = 8  # one more matrix in a batched product
COPY_COST_TOKENS = 64  # another copy of a member's factors, if it has several blocks
GATHER_COST_TOKENS = 2  # for each token, if rows must be gathered into blocks and scattered back


@dataclass(frozen=True)
class Layout:
    """Rows in blocks: place p of the blocks (num_blocks * width) holds row ``gather[p]``; row i is at ``scatter[i]``.

    ``slots`` (num_active,): the members in the batch, ascending; ``members``: the same on the host, so that comparing
    them does not wait for a device. ``block_member`` (num_blocks,): the index of a block's member in ``slots``; None
    when block i belongs to ``slots[i]``. ``gather`` and ``scatter`` are None when the blocks hold the rows in order.
    """

    slots: Tensor
    members: tuple[int, ...]
    block_member: Tensor | None
    gather: Tensor | None
    scatter: Tensor | None
    num_blocks: int
    num_rows: int

    def into_blocks(self, x: Tensor) -> Tensor:
        """(rows, length, width) -> (num_blocks, rows a block * length, width)."""
        if self.gather is not None:
            x = x.index_select(0, self.gather)  # (num_blocks * rows a block, length, width)
        return x.reshape(self.num_blocks, -1, x.shape[-1])  # (num_blocks, rows a block * length, width)

    def out_of_blocks(self, y: Tensor, length: int) -> Tensor:
        """The inverse of ``into_blocks``, with padding dropped."""
        y = y.reshape(-1, length, y.shape[-1])  # (num_blocks * rows a block, length, width)
        return y if self.scatter is None else y.index_select(0, self.scatter)


def lay_out(row_slots: Sequence[int], tokens_per_row: int, device: torch.device) -> Layout:
    """Choose blocks for rows of the members ``row_slots`` (any order, any mix), each row ``tokens_per_row`` long.

    Padding repeats a row of the same member, so that one member never affects another's products.
    """
    rows = np.asarray(row_slots, dtype=np.int64)  # (rows,)
    # slots, counts (active,); member (rows,): the index in ``slots`` of each row's member
    slots, member, counts = np.unique(rows, return_inverse=True, return_counts=True)
    order = np.argsort(member, kind="stable")  # (rows,): rows sorted by member
    is_sorted = bool((order == np.arange(len(rows))).all())
    width = _best_width(counts, tokens_per_row, is_sorted)
    blocks_of = -(-counts // width)  # (active,): blocks of each member
    num_blocks = int(blocks_of.sum())
    block_member = np.repeat(np.arange(len(slots)), blocks_of)  # (num_blocks,)
    first_place = np.concatenate([[0], np.cumsum(blocks_of)[:-1]]) * width  # (active,)
    rank_in_member = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)  # (rows,), in sorted order
    scatter = np.empty(len(rows), dtype=np.int64)  # (rows,): the place of each row in the blocks
    scatter[order] = first_place[member[order]] + rank_in_member
    first_row = order[np.cumsum(counts) - counts]
    gather = np.repeat(first_row[block_member], width)  # (num_blocks * width,): the row at each place
    gather[scatter] = np.arange(len(rows))
    in_place = len(gather) == len(rows) and bool((scatter == np.arange(len(rows))).all())

    def on_device(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    return Layout(
        slots=on_device(slots),
        members=tuple(slots.tolist()),
        block_member=None if num_blocks == len(slots) else on_device(block_member),
        gather=None if in_place else on_device(gather),
        scatter=None if in_place else on_device(scatter),
        num_blocks=num_blocks,
        num_rows=len(rows),
    )


def _best_width(counts: np.ndarray, tokens_per_row: int, is_sorted: bool) -> int:
    """The number of rows per block with the lowest cost of padding, blocks, copies of factors, and gathering."""
    largest = int(counts.max())
    candidates = sorted({largest, *counts.tolist(), *(1 << k for k in range(largest.bit_length()))})

    def cost(width: int) -> int:
        num_blocks = int((-(-counts // width)).sum())
        total = num_blocks * (width * tokens_per_row + BLOCK_COST_TOKENS)
        if num_blocks > len(counts):
            total += num_blocks * COPY_COST_TOKENS
        if not is_sorted or num_blocks * width > counts.sum():
            total += GATHER_COST_TOKENS * int(counts.sum()) * tokens_per_row
        return total

    return min(candidates, key=cost)
