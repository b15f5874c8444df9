"""Sums over the tokens of each member that come out the same every time, on a GPU too."""

from __future__ import annotations

import torch
from torch import Tensor


def add_by_member(sums: Tensor, member_of: Tensor, values: Tensor) -> None:
    """Add each of ``values`` (n,) to its member's place, ``member_of`` (n,), in ``sums`` (members,).

    On a GPU ``index_add_`` adds in whatever order its threads come, and the last digits of a journal vary with it.
    """
    if sums.device.type == "cpu":
        sums.index_add_(0, member_of, values)
    else:
        members = torch.arange(len(sums), device=sums.device)
        sums += torch.where(member_of == members[:, None], values, 0.0).sum(dim=1)
