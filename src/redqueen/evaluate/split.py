"""The two parts of a frozen suite: one to develop on, one that decides.

Whoever tries settings and keeps the best has fitted them to the items they were tried on. So a quarter of each suite is
set aside for trying, and nothing is tuned on the rest. Whole clusters (tasks made from one function) go to one part, by
a digest of the cluster's name alone: the split was made once, no dice can make another, and new items change nothing
for the old ones. Ground: ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from redqueen.domains.domain import Item

Part = Literal["all", "development", "decision"]

DEVELOPMENT_FRAC = 0.25
"""Share of the clusters that are for development."""


def is_for_development(cluster: str) -> bool:
    """Tell the part of a cluster: that of its digest's first 32 bits."""
    digest = hashlib.sha256(b"development split\0" + cluster.encode("utf-8", "backslashreplace")).digest()
    return int.from_bytes(digest[:4], "big") < DEVELOPMENT_FRAC * 2**32


def part_of(items: Sequence[Item], part: Part) -> list[Item]:
    """Return the items of a part, in order."""
    return [item for item in items if part == "all" or is_for_development(item.cluster) == (part == "development")]
