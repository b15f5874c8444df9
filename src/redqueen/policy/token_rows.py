"""Members' runs of tokens one after the other, cut into short rows of one owner.

Rows only say whose adapter runs; who attends to whom is planned apart (``tree_attention``), so a run may go over
several rows. Ground: ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from redqueen.policy.tree_attention import Run, TreePlan, plan_tree

ROW_TOKENS = 64
"""Length of a row: long enough for a matrix product of its own, short enough that a member's last row wastes little."""


class TokenRows:
    """Runs of tokens, added member by member; each member's are filled up with ``pad_id`` to whole rows.

    ``owners``: the slot of each full row.
    """

    def __init__(self, pad_id: int) -> None:
        self.owners: list[int] = []
        self._pad_id = pad_id
        self._tokens: list[int] = []
        self._positions: list[int] = []
        self._runs: list[Run] = []

    def add(self, tokens: Sequence[int], before: Run | None = None) -> Run:
        """Put a run of ``tokens`` behind the others, which goes on from ``before``: its positions follow that one's."""
        run = Run(len(self._tokens), len(tokens), before)
        self._runs.append(run)
        self._tokens += tokens
        self._positions += range(run.seen_before, run.seen_before + run.length)
        return run

    def end_member(self, slot: int) -> None:
        """Fill the last row; what was added since the last call belongs to the member ``slot``."""
        tail = -len(self._tokens) % ROW_TOKENS
        self._tokens += [self._pad_id] * tail
        self._positions += [0] * tail
        self.owners += [slot] * (len(self._tokens) // ROW_TOKENS - len(self.owners))

    def laid_out(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, TreePlan]:
        """Return tokens and positions (rows, ``ROW_TOKENS``) and the plan of their attention (its bias: ``dtype``)."""
        shape = (len(self.owners), ROW_TOKENS)
        tokens, positions = torch.tensor(self._tokens).view(shape), torch.tensor(self._positions).view(shape)
        return tokens, positions, plan_tree(self._runs, *shape, dtype)
