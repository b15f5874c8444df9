"""Which archived tasks students are asked again beside the new ones, and who is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redqueen.config import SolveConfig
from redqueen.nouns import Individual, Task
from redqueen.propose.archive import TaskArchive, draw_for_replay


def replays(
    archive: TaskArchive,
    students: Sequence[Individual],
    num_fresh: int,
    config: SolveConfig,
    step: int,
    rng: np.random.Generator,
) -> list[tuple[Task, Individual]]:
    """Return archived tasks, each with the student that is asked: as many that they are ``replay_frac`` of all.

    Students take turns, beginning with one that is drawn; nobody is asked more than one task oftener than another.
    """
    num = round(num_fresh * config.replay_frac / (1.0 - config.replay_frac))
    drawn = draw_for_replay(archive, num, step, rng) if num else []
    turns = rng.permutation(len(students)).tolist()
    return [(one.task, students[turns[i % len(turns)]]) for i, one in enumerate(drawn)]
