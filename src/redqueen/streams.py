"""Named random streams: every draw of a run depends only on (seed, step, purpose), so a resumed run repeats it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Streams:
    """The random streams of one step. Equal purposes give equal draws; nothing needs to be stored for a resume."""

    rng_seed: int
    step: int

    def seed(self, *purpose: object) -> int:
        """Return a 63-bit seed for a purpose, such as ``seed("solve", task_id)``."""
        text = "\0".join(map(str, (self.rng_seed, self.step, *purpose)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def rng(self, *purpose: object) -> np.random.Generator:
        """Return a fresh generator for a purpose."""
        return np.random.default_rng(self.seed(*purpose))
