"""The report's tables and tiles as rows of text, for both the page and the markdown summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.display import NOTHING, duration, number
from redqueen.journal.values import LARGEST_INTEGER, json_of
from redqueen.journal.write import Row
from redqueen.nouns import Birth
from redqueen.report.card import MARKS
from redqueen.report.fitness import MODES, Verdict, last_evaluated_step, member_score, outcomes
from redqueen.report.lineage import tree_lines
from redqueen.report.side_by_side import ArmRow
from redqueen.report.stretches import ends, rolling
from redqueen.report.view import RunView

MAX_MEMBERS, MAX_BIRTHS = 100, 400
"""Longest tables of a report: the fittest members, the latest births."""


@dataclass(frozen=True)
class Tile:
    """One number at a glance: its name, the value with its unit, a few words on it, and a verdict where it has one."""

    name: str
    value: str
    note: str
    standing: Verdict | None = None

    @property
    def mark(self) -> str:
        """The shape of the verdict, "" without one."""
        return "" if self.standing is None else MARKS[self.standing]


def tiles(view: RunView) -> list[Tile]:
    """Return the run at a glance."""
    made = []
    for comparison in outcomes(view):
        change = 100 * (comparison.members.mean - comparison.base.mean)
        other = comparison.against
        verdict = {"better": f"above the {other}", "worse": f"below the {other}", "unclear": "no clear change"}
        note = f"points, {comparison.mode}; {verdict[comparison.verdict]}"
        made.append(Tile("External fitness", f"{change:+.1f}", note, comparison.verdict))
    solve, valid = rolling(view.series("solve/rate"), view.steps), view.values("propose/valid_frac")
    if solve and solve[-1] is not None:
        made.append(Tile("Solve rate", f"{100 * solve[-1]:.0f} %", "of a task's attempts right, last 10 steps"))
    elif any(mean is not None for mean in solve):
        made.append(Tile("Solve rate", "–", "no attempt was judged in the last 10 steps"))
    if valid:
        made.append(Tile("Validity", f"{100 * sum(valid) / len(valid):.0f} %", "of proposals, mean over the steps"))
    first, last = ends(view.series("solve/thought_frac"), view.last_step).values()
    if first is not None and last is not None:
        note = f"of attempts at the end, {100 * first:.0f} % at the start"
        made.append(Tile("Thought first", f"{100 * last:.0f} %", note))
    coverage = next((point.coverage for point in reversed(view.curriculum) if point.kind == "all"), None)
    if coverage is not None:
        made.append(Tile("Coverage", f"{coverage:,}", f"distinct tasks; {view.num_attempts:,} attempts in all"))
    seconds = sum(value or 0.0 for series in view.timings.values() for _, value in series)
    if seconds:
        in_steps = view.step_seconds / max(1, view.last_step)
        made.append(
            Tile("Time", duration(seconds), f"{in_steps:.1f} s a step; evaluations, checkpoints and product apart")
        )
    return made


def member_head(view: RunView, living_only: bool = True) -> list[str]:
    """Return the head of the members' table."""
    rated = ["rating", "fitness"] if view.ratings else []
    left = [] if living_only else ["left at step"]
    return ["member", "role", *rated, "born at step", *left, "operator", *(f"external, {mode}" for mode in MODES)]


def member_rows(view: RunView, most: int = MAX_MEMBERS, skip: int = 0, living_only: bool = True) -> list[list[str]]:
    """Return one row for each member that is there at the end, teachers first, fittest first.

    At most ``most`` rows, after the first ``skip``. Without ``living_only`` those that left follow, the latest first.
    """
    last_rating = {row["individual"]: row for row in view.ratings}
    suite = next(iter(sorted({row["suite"] for row in view.evaluations})), "")
    step = last_evaluated_step(view, suite)
    there = [m for m in view.individuals if m["left_step"] is None or not living_only]
    there.sort(
        key=lambda m: (
            -(m["left_step"] or LARGEST_INTEGER),
            m["role"] != "teacher",
            -last_rating.get(m["id"], {"fitness": 0.0})["fitness"],
            m["slot"],
        )
    )
    rows = []
    for member in there[skip : skip + most]:
        rating = last_rating.get(member["id"])
        rated = [NOTHING, NOTHING]
        if rating is not None:
            rated = [f"{rating['mu']:.1f} ± {rating['sigma']:.1f}", f"{rating['fitness']:.1f}"]
        scores = [None if step is None else member_score(view, step, member["id"], suite, mode) for mode in MODES]
        external = [NOTHING if score is None else str(score) for score in scores]
        rated = rated if view.ratings else []
        left = [] if living_only else [NOTHING if member["left_step"] is None else str(member["left_step"])]
        born = [str(member["born_step"]), *left, member["operator"]]
        rows.append([member["id"], member["role"], *rated, *born, *external])
    return rows


def birth_rows(view: RunView) -> list[list[str]]:
    """Return one row for each of the latest births: child, step, replaced, operator, parents, change, constants."""
    rows = []
    for row, parents in view.births[-MAX_BIRTHS:]:
        constants = ", ".join(f"{name} {value:.3g}" for name, value in json_of(row, "constants").items())
        change = _change(row)
        names = " and ".join(parents)
        rows.append(
            [row["child"], str(row["step"]), row["replaced"], row["operator"], names, change, constants or NOTHING]
        )
    return rows


def family_tree(view: RunView) -> str:
    """Return the lineage as text: each child under its first parent, a star marks present members; "" without any.

    Founders without children are counted at the end; of a large run only the first lines are shown.
    """
    if not view.births:
        return ""
    births = [
        Birth(
            step=row["step"],
            child=row["child"],
            replaced=row["replaced"],
            parents=tuple(parents),
            operator=row["operator"],
            relative_change=row["relative_change"] or 0.0,
        )
        for row, parents in view.births
    ]
    fertile = {birth.parents[0] for birth in births if birth.parents}
    founders = [member["id"] for member in view.individuals if member["born_step"] == 0]
    living = [member["id"] for member in view.individuals if member["left_step"] is None]
    lines = tree_lines(births, [name for name in founders if name in fertile], living)
    shown = lines[:MAX_BIRTHS]
    if len(lines) > len(shown):
        shown.append(f"({len(lines) - len(shown):,} more lines)")
    alone = [name for name in founders if name not in fertile]
    if alone:
        named = ", ".join(alone[:MAX_MEMBERS])
        shown.append(f"without children: {named}{', ...' if len(alone) > MAX_MEMBERS else ''} ({len(alone):,} in all)")
    return "\n".join(shown)


def _change(row: Row) -> str:
    """The relative change of a child, overall and between the least and the most changed layers."""
    if row["relative_change"] is None:
        return NOTHING
    layers = json_of(row, "layer_changes").values()
    span = f" (layers {100 * min(layers):.0f} to {100 * max(layers):.0f} %)" if layers else ""
    return f"{100 * row['relative_change']:.1f} %{span}"


def arm_cells(rows: Sequence[ArmRow]) -> list[list[str]]:
    """Return the table of measures by arm as text; the spread is left out where an arm has one run."""
    return [
        [
            row.measure,
            row.arm,
            str(row.num_runs),
            number(row.mean),
            number(row.lowest) if row.num_runs > 1 else NOTHING,
            number(row.highest) if row.num_runs > 1 else NOTHING,
        ]
        for row in rows
    ]
