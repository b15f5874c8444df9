"""Packed groups: a prompt stands once for all its completions, and several groups share a row.

A *group* is one prompt with its completions (a tree of depth one). In a row each completion attends to its prompt
and to itself, never to its siblings or to another group, and its positions continue from the end of the prompt. So the
model computes exactly what it would on each prompt + completion alone, at the price of one prompt (ours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """One prompt (at least one token) and its completions (each at least one token) by one ``owner``."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    owner: int = 0


@dataclass(frozen=True)
class Pack:
    """Groups laid out in rows of one length.

    ``tokens``, ``positions``: (rows, length) int64. ``segment``: which group of its row a token belongs to, -1 for
    padding; ``branch``: 0 for the prompt, 1.. for the completions, per group. ``owner``: (rows,).
    For each of the N completion tokens, flat int64 arrays: the hidden state at (``row``, ``source``) predicts the
    token at (``row``, ``target``), which is token ``offset`` of completion ``completion`` of group ``group``.
    """

    tokens: Tensor
    positions: Tensor
    segment: Tensor
    branch: Tensor
    owner: Tensor
    row: Tensor
    source: Tensor
    target: Tensor
    group: Tensor
    completion: Tensor
    offset: Tensor

    def mask(self, rows: slice = slice(None)) -> Tensor:
        """Return the boolean attention mask (rows, 1, length, length), True where a query (dim 2) may look."""
        segment, branch = self.segment[rows], self.branch[rows]
        length = segment.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=segment.device).tril()
        same_group = segment[:, :, None] == segment[:, None, :]
        visible = (branch[:, None, :] == 0) | (branch[:, :, None] == branch[:, None, :])
        # Padding (segment -1) sees the padding before it: every query has something to look at, so no NaN.
        return (same_group & visible & causal)[:, None]


@dataclass
class _Row:
    owner: int
    used: int = 0
    pieces: list[tuple[int, list[int]]] = field(default_factory=list)  # (group index, completion indices)


def pack(groups: Sequence[Group], row_tokens: int, pad_id: int) -> Pack:
    """Lay ``groups`` out in rows of at most ``row_tokens`` tokens, each row holding one owner's groups.

    Completions of a group that do not fit beside each other are split over several rows, and the prompt is repeated
    there. A prompt + completion longer than ``row_tokens`` gets a longer row of its own. First fit, longest first:
    deterministic in the order of ``groups``.
    """
    rows: list[_Row] = []
    open_rows: dict[int, list[_Row]] = {}
    pieces = [(g, piece, size) for g, group in enumerate(groups) for piece, size in _pieces(group, row_tokens)]
    for g, piece, size in sorted(pieces, key=lambda p: -p[2]):
        owner = groups[g].owner
        candidates = open_rows.setdefault(owner, [])
        chosen = next((r for r in candidates if r.used + size <= row_tokens), None)
        if chosen is None:
            chosen = _Row(owner)
            rows.append(chosen)
            candidates.append(chosen)
            if len(candidates) > 32:  # keeps the search linear; the oldest rows are nearly full by now
                candidates.pop(0)
        chosen.used += size
        chosen.pieces.append((g, piece))
    return _lay_out(groups, rows, pad_id)


def _pieces(group: Group, row_tokens: int) -> list[tuple[list[int], int]]:
    """Split a group's completions into runs that fit a row with their prompt: (completion indices, tokens)."""
    result: list[tuple[list[int], int]] = []
    current: list[int] = []
    size = len(group.prompt)
    for c, completion in enumerate(group.completions):
        if current and size + len(completion) > row_tokens:
            result.append((current, size))
            current, size = [], len(group.prompt)
        current.append(c)
        size += len(completion)
    if current:
        result.append((current, size))
    return result


def _lay_out(groups: Sequence[Group], rows: list[_Row], pad_id: int) -> Pack:
    length = max((r.used for r in rows), default=1)
    shape = (len(rows), length)
    tokens = np.full(shape, pad_id, dtype=np.int64)
    positions = np.zeros(shape, dtype=np.int64)
    segment = np.full(shape, -1, dtype=np.int64)
    branch = np.zeros(shape, dtype=np.int64)
    links: list[np.ndarray] = []
    for i, row in enumerate(rows):
        at = 0
        for s, (g, members) in enumerate(row.pieces):
            prompt = groups[g].prompt
            end = at + len(prompt)
            tokens[i, at:end] = prompt
            positions[i, at:end] = np.arange(len(prompt))
            segment[i, at:end] = s
            last_prompt, at = end - 1, end
            for b, c in enumerate(members, start=1):
                completion = groups[g].completions[c]
                n = len(completion)
                end = at + n
                tokens[i, at:end] = completion
                positions[i, at:end] = np.arange(len(prompt), len(prompt) + n)
                segment[i, at:end] = s
                branch[i, at:end] = b
                target = np.arange(at, end)
                source = np.concatenate([[last_prompt], target[:-1]])
                same = np.ones(n, dtype=np.int64)
                links.append(np.stack([same * i, source, target, same * g, same * c, np.arange(n)]))
                at = end
    flat = np.concatenate(links, axis=1) if links else np.zeros((6, 0), dtype=np.int64)
    index = [torch.from_numpy(np.ascontiguousarray(line)) for line in flat]
    return Pack(
        tokens=torch.from_numpy(tokens),
        positions=torch.from_numpy(positions),
        segment=torch.from_numpy(segment),
        branch=torch.from_numpy(branch),
        owner=torch.tensor([r.owner for r in rows], dtype=torch.int64),
        row=index[0],
        source=index[1],
        target=index[2],
        group=index[3],
        completion=index[4],
        offset=index[5],
    )
