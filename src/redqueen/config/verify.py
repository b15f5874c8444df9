"""How untrusted programs are run."""

from __future__ import annotations

from pydantic import Field, model_validator

from redqueen.config.section import Section


class VerifyConfig(Section):
    """How untrusted programs are run."""

    num_workers: int = Field(default=2, ge=1)
    """Sandboxed processes at a time. Ours: the cores of a small machine."""
    num_hash_seeds: int = Field(default=2, ge=1)
    """Hash seeds a program must agree under, 8 or more where sets appear. Ours: the fewest that can disagree."""
    accept_cpu_ms: int = Field(default=50, ge=1)
    """CPU time within which a proposed program must finish, in milliseconds. Ours: well under the kill limit, so that
    no program is valid once and killed the next time."""
    kill_cpu_ms: int = Field(default=200, ge=1)
    """CPU time after which any program is killed, in milliseconds. Ours: what takes longer is no puzzle."""
    num_inputs: int = Field(default=10, ge=2)
    """Pairs of an induction task; the embedded base writes ten at most. AZR: 10."""
    num_shown: int = Field(default=5, ge=1)
    """Pairs of an induction task that the solver sees. AZR: the first half."""
    refuse_constant: bool = False
    """Refuse a proposal with one input whose program takes no other, or gives the same output for all others made from
    it. Ours: a program that ignores its input is always valid, and any input answers it."""
    allow_weak: bool = False
    """Run even where no system-call filter can be had. Ours: a hostile program could do harm."""

    @model_validator(mode="after")
    def _some_hidden(self) -> VerifyConfig:
        if self.num_shown >= self.num_inputs:
            raise ValueError("num_shown must be below num_inputs: some pairs stay hidden")
        if self.accept_cpu_ms > self.kill_cpu_ms:
            raise ValueError("accept_cpu_ms must not be above kill_cpu_ms")
        return self
