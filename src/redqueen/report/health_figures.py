"""The health of the co-evolution as figures: one point a generation."""

from __future__ import annotations

from redqueen.report.figure import Figure, line
from redqueen.report.metrics import SHARE
from redqueen.report.view import RunView

Drawn = tuple[str, str, int, int]
"""Label, column of the journal's table ``health``, colour, dash."""


def health_figures(view: RunView) -> list[Figure | None]:
    """Return one figure for each failure mode that could be measured."""
    return [
        _figure(
            view,
            "disengagement",
            "Disengagement",
            "Share of tasks that every attempt solved, and that none did: students learn nothing from either.",
            [("solved by all", "won_frac", 0, 0), ("solved by none", "lost_frac", 3, 1)],
        ),
        _figure(
            view,
            "diversity",
            "Diversity",
            "Adapters: mean distance of dW, 1 as for independent ones, 0 for copies. Behaviour: how much two members "
            "differ in what they solve, or in the classes of task they write.",
            [
                ("teachers' adapters", "teacher_weight_diversity", 1, 0),
                ("students' adapters", "student_weight_diversity", 0, 0),
                ("teachers' behaviour", "teacher_behaviour_diversity", 1, 1),
                ("students' behaviour", "student_behaviour_diversity", 0, 1),
            ],
        ),
        _figure(
            view,
            "cycling",
            "Cycling",
            "Share of who beats whom that no ladder of strength explains, and share of comparisons in which two "
            "students disagree about which of two teachers is the harder.",
            [("off the ladder", "residual_frac", 4, 0), ("reversed", "reversal_frac", 5, 1)],
        ),
        _figure(
            view,
            "forgetting",
            "Forgetting",
            "How much of its earlier score against frozen past members the population has lost; gains do not hide it.",
            [("lost score", "forgetting_frac", 3, 0)],
        ),
    ]


def _figure(view: RunView, figure_id: str, title: str, text: str, drawn: list[Drawn]) -> Figure | None:
    lines = [
        line(label, [(row["step"], row[column]) for row in view.health], color, dash)
        for label, column, color, dash in drawn
        if any(row[column] is not None for row in view.health)
    ]
    if not lines:
        return None
    chart = {"type": "lines", "series": lines, "low": 0}
    return Figure(f"health-{figure_id}", title, SHARE, text, chart)
