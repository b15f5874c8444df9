"""The run as a whole: its length, seed, threads and checkpoints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from redqueen.config.section import Section


class RunConfig(Section):
    """The run as a whole."""

    name: str = Field(default="run", min_length=1, max_length=80, pattern=r"^[\w .+-]+$")
    """Name shown in reports and in the default run directory. Ours."""
    rng_seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of every random stream; each is derived from it by name, so a run repeats. Ours."""
    num_steps: int = Field(default=200, ge=1)
    """Steps of self-play. Paper: 200."""
    max_tokens: int = Field(default=0, ge=0)
    """Stop after the step in which this many tokens were sampled in all; 0: never. Ours: two arms, equal totals."""
    max_seconds: float = Field(default=0.0, ge=0)
    """Stop after this many seconds of steps, evaluation and checkpoints apart; 0: never. Ours: two arms, equal time."""
    num_threads: int = Field(default=0, ge=0)
    """CPU threads for tensor work; 0: all cores. The result depends on it in the last bits. Ours."""
    num_lanes: int = Field(default=1, ge=1, le=64)
    """Parts into which sampling and learning are dealt out on a CPU, each on a thread of its own, with ``num_threads``
    (0: the cores divided by the lanes) and its share of ``solve.max_rows`` and ``learn.micro_batch_tokens``; a GPU has
    one. The result depends on it in the last bits. Ours: measured (bench/results/lanes.md)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the base runs; auto: CUDA when there is one. Ours: the same config runs on both."""
    checkpoint_every_steps: int = Field(default=10, ge=1)
    """Steps between checkpoints. Ours: one generation, what a crash may cost."""
    num_checkpoints_kept: int = Field(default=2, ge=1)
    """Newest checkpoints kept. Ours: one to fall back on when the newest is damaged."""
    product: Literal["probe", "distilled", "merged", "none"] = "probe"
    """The one adapter that the run ends with: of the students and their mean in delta space the one that solves most of
    a probe of archived tasks; the same with a further candidate that is distilled from the right answers of all; always
    the mean; or none. Ours: a user wants one model, and the suite must not choose."""
    product_tasks: int = Field(default=256, ge=1)
    """Archived tasks of that probe. Ours: candidates are close to each other."""
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    """Where metrics are sent beside the journal, which holds everything; each is an extra of the same name. Ours."""
