"""Restarts: from time to time all students become the adapter that was distilled from all right answers so far.

So what a run has found is learned while it goes on, and the next right answers are those of a better student. The
adapter is distilled from the bare base each time (``learn/distillation.py``): nothing is learned on top of what was
learned, so errors do not add up. It happens before the step after, which a stop may drop; then it is done again, from
the same answers. Ground: restarting from the base in each round, as in STaR (Zelikman et al. 2022) and ReST-EM (Singh
et al. 2023); for the students of a population: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from redqueen.engine import Engine
from redqueen.journal import Journal
from redqueen.run.product import distil_answers
from redqueen.state import State


def restart_students(
    engine: Engine, state: State, journal: Journal, tell: Callable[[str], None]
) -> tuple[State, dict[str, float]]:
    """Return the state in which all students have the distilled adapter, without moments, and what it took.

    Where nothing was solved yet they stay as they are. Nothing is held back: what the run's product will be asked was
    posed later (``run/product.py``).
    """
    distilled = distil_answers(engine, state, journal, (), tell)
    if distilled is None or not distilled.num_answers:
        return state, {}
    for student in state.students:
        engine.store.copy(engine.config.slots.distilled[0], student.slot)
    whole = state.broken - {student.id for student in state.students}
    return replace(state, broken=whole), distilled.metrics("restart")
