"""How the population is divided among processes and machines."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class ClusterConfig(Section):
    """Shards of the population; where they stand is said by ``redqueen train --cluster``."""

    num_shards: int = Field(default=1, ge=1)
    """Parts of the population, each with a base, sampler and learner of its own: slot i is in part i modulo this.
    Ours: the result depends on it in the last bits, as other rows share a batch, and not on where the parts stand."""
    verify: Literal["driver", "shard"] = "driver"
    """Where proposals and answers are judged: on the driver's machine, or on those of the shards, each with a verifier
    of ``verify.num_workers``. Ours: verdicts are the same, and one machine is enough until the driver's cores are not;
    on the shards' machines the sandbox must hold too."""
    silence_s: float = Field(default=120.0, gt=0)
    """Seconds without progress after which a shard that was asked something counts as lost. Ours: far longer than one
    token of the largest batch or one batch of learning; a process that hangs is alive, and must be found too."""
    start_s: float = Field(default=600.0, gt=0)
    """Seconds that a shard may take to load the base, or to find a place. Ours: a large base from a slow disk."""
    num_losses_of_a_call: int = Field(default=3, ge=0)
    """Shards that may be lost over one call before the run stops. Ours: a call that kills every shard it meets is at
    fault itself."""
    num_losses: int = Field(default=100, ge=0)
    """Shards that may be lost in a session before it stops. Ours: machines that are taken back now and then."""
