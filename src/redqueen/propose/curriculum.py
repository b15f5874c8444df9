"""What the teachers set, as a step's metrics: mean measures of the valid tasks' programs, and the coverage so far."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.journal import ProgramMeasures

STRUCTURE = {
    "curriculum/ast_depth": "ast_depth",
    "curriculum/cyclomatic": "cyclomatic",
    "curriculum/lines": "num_lines",
    "curriculum/variables": "num_variables",
}
"""Metrics of the structure of programs: each is the mean of this column of the task table."""

NOT_DEFINED = float("nan")


def curriculum_metrics(measures: Sequence[ProgramMeasures], num_behaviours: int) -> dict[str, float]:
    """Return the step's ``curriculum/*`` metrics: means over the programs of its valid tasks, and the coverage so far.

    ``num_behaviours`` is the number of distinct behaviour signatures of all tasks up to this step. Without a valid
    task the means are NaN, which the journal stores as "not defined".
    """
    columns = {name: [getattr(m, column) for m in measures] for name, column in STRUCTURE.items()}
    means = {name: sum(values) / len(values) if values else NOT_DEFINED for name, values in columns.items()}
    return {**means, "curriculum/coverage": float(num_behaviours)}
