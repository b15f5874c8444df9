"""Pack samples into rows for training: a prompt is stored once for all its completions, and samples share rows.

In a row each completion attends to its prompt and to itself, never to other completions or samples, and its positions
continue from the end of the prompt. So the model computes the same as on each prompt + completion separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Sample:
    """Token ids of a prompt (at least one) and of its completions (each at least one), with the completions' weights.

    ``weights[c][i]`` is the loss weight of token ``i`` of completion ``c``.
    """

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        return len(self.prompt) + sum(map(len, self.completions))


@dataclass(frozen=True)
class Batch:
    """Samples laid out in rows of one length.

    ``tokens`` and ``positions`` are int64 (rows, length). ``segment`` is the index of the sample in its row, -1 for
    padding; ``branch`` is 0 for the prompt and 1.. for the completions. For each of the N completion tokens, int64
    (N,): the hidden state at (``row``, ``source``) predicts the token at (``row``, ``target``), with loss weight
    ``weights``, float32 (N,).
    """

    tokens: Tensor
    positions: Tensor
    segment: Tensor
    branch: Tensor
    row: Tensor
    source: Tensor
    target: Tensor
    weights: Tensor

    def mask(self) -> Tensor:
        """Return the boolean attention mask (rows, 1, length, length), True where a query (dim 2) attends to a key."""
        causal = torch.ones(self.tokens.shape[1], self.tokens.shape[1], dtype=torch.bool).tril()
        same_sample = self.segment[:, :, None] == self.segment[:, None, :]
        visible = (self.branch[:, None, :] == 0) | (self.branch[:, :, None] == self.branch[:, None, :])
        # Padding attends to the padding before it: a query without any key would give NaN.
        return (same_sample & visible & causal)[:, None]


@dataclass
class _Row:
    used: int = 0
    pieces: list[tuple[int, list[int]]] = field(default_factory=list)  # (sample index, completion indices)


def pack(samples: Sequence[Sample], row_tokens: int, pad_id: int) -> Batch:
    """Lay ``samples`` out in rows of at most ``row_tokens`` tokens.

    Completions of a sample that do not fit into one row are split over several rows, and the prompt is repeated there.
    A prompt + completion longer than ``row_tokens`` gets a longer row of its own. First fit, longest first.
    """
    rows: list[_Row] = []
    open_rows: list[_Row] = []
    pieces = [(s, piece, size) for s, sample in enumerate(samples) for piece, size in _pieces(sample, row_tokens)]
    for s, piece, size in sorted(pieces, key=lambda p: -p[2]):
        chosen = next((r for r in open_rows if r.used + size <= row_tokens), None)
        if chosen is None:
            chosen = _Row()
            rows.append(chosen)
            open_rows.append(chosen)
            if len(open_rows) > 32:  # keeps the search linear; the oldest rows are nearly full by now
                open_rows.pop(0)
        chosen.used += size
        chosen.pieces.append((s, piece))
    return _lay_out(samples, rows, pad_id)


def _pieces(sample: Sample, row_tokens: int) -> list[tuple[list[int], int]]:
    """Split a sample's completions into runs that fit into a row with their prompt: (completion indices, tokens)."""
    result: list[tuple[list[int], int]] = []
    current: list[int] = []
    size = len(sample.prompt)
    for c, completion in enumerate(sample.completions):
        if current and size + len(completion) > row_tokens:
            result.append((current, size))
            current, size = [], len(sample.prompt)
        current.append(c)
        size += len(completion)
    return [*result, (current, size)] if current else result


def _lay_out(samples: Sequence[Sample], rows: list[_Row], pad_id: int) -> Batch:
    shape = (len(rows), max((r.used for r in rows), default=1))
    tokens = np.full(shape, pad_id, dtype=np.int64)
    positions = np.zeros(shape, dtype=np.int64)
    segment = np.full(shape, -1, dtype=np.int64)
    branch = np.zeros(shape, dtype=np.int64)
    links: list[tuple[int, int, int]] = []  # row, source, target
    weights: list[float] = []
    for i, row in enumerate(rows):
        at = 0
        for number, (s, members) in enumerate(row.pieces):
            prompt = samples[s].prompt
            last_prompt = at + len(prompt) - 1
            parts = [prompt, *(samples[s].completions[c] for c in members)]
            weights += [weight for c in members for weight in samples[s].weights[c]]
            for b, part in enumerate(parts):
                end, start = at + len(part), len(prompt) if b else 0
                tokens[i, at:end] = part
                positions[i, at:end] = np.arange(start, start + len(part))
                segment[i, at:end] = number
                branch[i, at:end] = b
                if b:
                    links += [(i, last_prompt if target == at else target - 1, target) for target in range(at, end)]
                at = end
    row_of, source, target = torch.tensor(links, dtype=torch.int64).reshape(-1, 3).T.contiguous()
    token_ids, position_ids, segments, branches = map(torch.from_numpy, (tokens, positions, segment, branch))
    loss_weights = torch.tensor(weights, dtype=torch.float32)
    return Batch(token_ids, position_ids, segments, branches, row_of, source, target, loss_weights)
