"""A sampler in which other adapters stand in for some members: their averages, say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from redqueen.nouns import Completion, Request
from redqueen.policy.protocols import Sampler


@dataclass(frozen=True)
class StandInSampler:
    """Implements ``Sampler``: a request to slot s is answered by ``stand_ins[s]``, where there is one."""

    sampler: Sampler
    stand_ins: Mapping[int, int]

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of the stand-ins, in the order of the requests."""
        return self.sampler.sample([replace(r, slot=self.stand_ins.get(r.slot, r.slot)) for r in requests])
