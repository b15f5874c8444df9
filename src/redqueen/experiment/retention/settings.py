"""The numbers of a retention experiment. All are ours, but for the operators' own constants."""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.config import Config, parse_config
from redqueen.domains.code.kinds import ABDUCTION, DEDUCTION


@dataclass(frozen=True)
class RetentionSettings:
    """How parents are trained, children bred and trained on, and how all are scored.

    An update is one optimiser step on fresh tasks. ``kinds`` leaves induction out: the embedded base solves too little
    of it to show a loss. Levels are the task generator's, taken in turn.
    """

    num_parent_updates: int = 24
    """Updates of each parent, on tasks of its own."""
    num_parent_programs: int = 8
    """Programs of a parent's update; each gives one task of every kind."""
    num_updates: int = 12
    """Updates of every child, all on the same tasks."""
    num_programs: int = 3
    """Programs of a child's update; each gives one task of every kind."""
    num_attempts: int = 6
    """Attempts at a training task: its group."""
    measure_every: int = 4
    """Updates between measurements of the children."""
    num_held_out: int = 32
    """Held-out programs; each gives one task of every kind."""
    num_samples: int = 1
    """Attempts at a held-out task."""
    num_fitness: int = 24
    """Programs on which the parents' internal fitness is measured: it says which one is copied and is the better."""
    checkpoint_every: int = 6
    """Steps between checkpoints; every measurement is saved too."""
    kinds: tuple[str, ...] = (DEDUCTION.name, ABDUCTION.name)
    levels: tuple[int, ...] = (1, 2, 3)
    lora_rank: int = 8
    lora_alpha: float = 16.0
    learning_rate: float = 3e-3
    max_new_tokens: int = 320


FULL = RetentionSettings()

QUICK = RetentionSettings(
    num_parent_updates=2,
    num_parent_programs=1,
    num_updates=2,
    num_programs=1,
    num_attempts=2,
    measure_every=1,
    num_held_out=2,
    num_fitness=1,
    checkpoint_every=1,
    levels=(1,),
    lora_rank=2,
    lora_alpha=4.0,
    max_new_tokens=96,
)
"""A miniature that shows only that everything runs."""


GENEROUS_CPU_MS = 500
"""CPU time of a program, in milliseconds; a generated one needs less than one."""


def engine_config(settings: RetentionSettings, num_members: int, num_threads: int) -> Config:
    """Return the config of an engine with ``num_members`` adapters on the embedded base."""
    return parse_config(
        {
            "run": {"name": "retention", "num_threads": num_threads},
            "population": {
                "num_teachers": 1,  # no member proposes here; the engine only counts them
                "num_students": num_members - 1,
                "lora_rank": settings.lora_rank,
                "lora_alpha": settings.lora_alpha,
            },
            # The programs are our own generator's: a busy machine must not refuse one and so change the tasks.
            "verify": {"accept_cpu_ms": GENEROUS_CPU_MS, "kill_cpu_ms": GENEROUS_CPU_MS},
            "solve": {"num_attempts": settings.num_attempts, "max_new_tokens": settings.max_new_tokens},
            "learn": {"learning_rate": settings.learning_rate},
        },
        "the retention settings",
    )
