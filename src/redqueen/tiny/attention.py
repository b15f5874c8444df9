"""Attention for packed rows on a CPU: plain batched products, which are faster there than PyTorch's masked kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

PACKED = "redqueen_packed"


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float,
    **unused: Any,
) -> tuple[Tensor, None]:
    """Return softmax(q k^T scaling + mask) v as (rows, length, heads, width).

    ``query`` is (rows, heads, length, width), ``key`` and ``value`` have fewer heads, each for a run of query heads;
    ``attention_mask`` is added, (rows, 1, length, length).
    """
    rows, heads, length, width = query.shape
    shared = key.shape[1]
    stacked = query.reshape(rows * shared, heads // shared * length, width)
    scores = torch.bmm(stacked, key.reshape(rows * shared, length, width).transpose(1, 2))
    weights = torch.softmax(scores.view(rows, heads, length, length) * scaling + attention_mask, dim=-1)
    weights = weights.to(value.dtype).view(rows * shared, heads // shared * length, length)
    result = torch.bmm(weights, value.reshape(rows * shared, length, width))
    return result.view(rows, heads, length, width).transpose(1, 2), None


ALL_ATTENTION_FUNCTIONS.register(PACKED, packed_attention)


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a boolean mask (True: may look) as what is added to scores."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)
