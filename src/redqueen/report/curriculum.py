"""What the teachers set: mean measures of the valid tasks' programs, and how much of the problem space was covered."""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.domains.registry import in_order
from redqueen.journal import Journal

NO_TASK = {"num_tasks": 0, "ast_depth": None, "cyclomatic": None, "num_lines": None, "num_variables": None}


@dataclass(frozen=True)
class CurriculumStep:
    """Means over the valid tasks of one step; None when it had none. ``coverage`` counts up over the whole run.

    ``kind`` is one of the kinds, or ``all``. ``num_lines`` and the others are means, hence floats.
    """

    step: int
    kind: str
    num_tasks: int
    ast_depth: float | None
    cyclomatic: float | None
    num_lines: float | None
    num_variables: float | None
    coverage: int


def curriculum_steps(journal: Journal) -> list[CurriculumStep]:
    """Return the curriculum after every step from the task rows: over all kinds first, then each kind that occurs."""
    present = {row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task")}
    kinds = ["all", *in_order(present)]
    return [point for kind in kinds for point in _of_kind(journal, kind)]


def _of_kind(journal: Journal, kind: str) -> list[CurriculumStep]:
    wanted, values = ("1", ()) if kind == "all" else ("kind = ?", (kind,))
    means = journal.query(
        "SELECT step, count(*) AS num_tasks, avg(ast_depth) AS ast_depth, avg(cyclomatic) AS cyclomatic, "
        f"avg(num_lines) AS num_lines, avg(num_variables) AS num_variables FROM task WHERE {wanted} GROUP BY step",
        values,
    )
    firsts = journal.query(
        "SELECT first AS step, count(*) AS num FROM "
        f"(SELECT min(step) AS first FROM task WHERE {wanted} GROUP BY behaviour) GROUP BY first",
        values,
    )
    mean_of, num_new = {row["step"]: row for row in means}, {row["step"]: row["num"] for row in firsts}
    points, coverage = [], 0
    for row in journal.query("SELECT step FROM step WHERE step > 0 ORDER BY step"):
        step = row["step"]
        coverage += num_new.get(step, 0)
        mean = mean_of.get(step, NO_TASK)
        points.append(CurriculumStep(**{**mean, "step": step}, kind=kind, coverage=coverage))
    return points
