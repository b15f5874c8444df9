"""What the teachers set, as a step's metrics: mean measures of the valid tasks, and the coverage so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redqueen.journal.records import MEASURES

STRUCTURE = {
    "curriculum/ast_depth": "ast_depth",
    "curriculum/cyclomatic": "cyclomatic",
    "curriculum/lines": "num_lines",
    "curriculum/variables": "num_variables",
}
"""Metrics of structure: each is the mean of this column of the task table. A domain's own measures come beside them."""

NOT_DEFINED = float("nan")


def curriculum_metrics(measures: Sequence[Mapping[str, float]], num_behaviours: int) -> dict[str, float]:
    """Return the step's ``curriculum/*`` metrics: means over its valid tasks, and the coverage so far.

    ``num_behaviours`` is the number of distinct behaviour signatures of all tasks up to this step. Without a valid
    task the means are NaN, which the journal stores as "not defined".
    """
    own = {f"curriculum/{name}": name for m in measures for name in m if name not in MEASURES}
    columns = {name: [m[at] for m in measures if at in m] for name, at in (STRUCTURE | own).items()}
    means = {name: sum(values) / len(values) if values else NOT_DEFINED for name, values in columns.items()}
    return {**means, "curriculum/coverage": float(num_behaviours)}
