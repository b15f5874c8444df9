"""How the population is divided among processes and machines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class ClusterConfig(Section):
    """Shards of the population; ``redqueen train --cluster`` says on which machines they run."""

    num_shards: int = Field(default=1, ge=1)
    """Parts of the population, each with a base, sampler and learner of its own: slot i is in part i modulo this.
    Ours: the result depends on it in the last bits, as other rows share a batch, and not on where the parts stand."""
    verify: Literal["driver", "shard"] = "driver"
    """Where proposals and answers are judged: on the driver's machine, or on those of the shards, each with a verifier
    of ``verify.num_workers``. Ours: verdicts are the same, and one machine is enough until the driver's cores are not;
    on the shards' machines the sandbox must hold too."""
    silence_s: float = Field(default=120.0, gt=0)
    """Seconds without progress after which a shard that was asked something counts as lost; loading the base may take
    five times as long. Ours: far longer than one token of the largest batch or one batch of learning."""
