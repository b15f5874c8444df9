"""Summary tiles and the members' table of a run, as text."""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.display import NOTHING, counted, duration
from redqueen.journal.untrusted import LARGEST_INTEGER
from redqueen.report.fitness import MODES, Verdict, last_evaluated_step, outcomes, score_at
from redqueen.report.series import ends, rolling
from redqueen.report.view import RunView

MAX_MEMBERS = 50
"""Maximum number of members in a table (the fittest)."""


@dataclass(frozen=True)
class Tile:
    """One number: its name, value with unit, a short note, and the verdict if there is one."""

    name: str
    value: str
    note: str
    standing: Verdict | None = None


def tiles(view: RunView) -> list[Tile]:
    """Return the tiles that summarize the run."""
    made = []
    for comparison in [] if view.is_nothing_valid else outcomes(view):
        change = 100 * (comparison.members.mean - comparison.base.mean)
        other = comparison.against
        verdict = {"better": f"above the {other}", "worse": f"below the {other}", "unclear": "no clear change"}
        note = f"points, {comparison.mode}; {verdict[comparison.verdict]}"
        made.append(Tile("External fitness", f"{change:+.1f}", note, comparison.verdict))
    solve, valid = rolling(view.series("solve/rate"), view.steps), view.values("propose/valid_frac")
    if solve and solve[-1] is not None:
        made.append(Tile("Solve rate", f"{100 * solve[-1]:.0f} %", "of a task's attempts right, last 10 steps"))
    elif any(mean is not None for mean in solve):
        made.append(Tile("Solve rate", "–", "no attempt was graded in the last 10 steps"))
    if valid:
        made.append(Tile("Validity", f"{100 * sum(valid) / len(valid):.0f} %", "of proposals, mean over the steps"))
    first, last = ends(view.series("solve/thought_frac"), view.last_step).values()
    if first is not None and last is not None:
        note = f"of attempts at the end, {100 * first:.0f} % at the start"
        made.append(Tile("Thought first", f"{100 * last:.0f} %", note))
    coverage = next((point["coverage"] for point in reversed(view.curriculum) if point["kind"] == "all"), None)
    if coverage is not None:
        note = f"distinct tasks; {counted(view.num_attempts, 'attempt')} in all"
        made.append(Tile("Coverage", f"{coverage:,}", note))
    seconds = sum(value or 0.0 for series in view.timings.values() for _, value in series)
    if seconds:
        step_s = view.step_seconds / max(1, view.last_step)
        note = f"{step_s:.1f} s per step, without evaluations, checkpoints and product"
        made.append(Tile("Time", duration(seconds), note))
    return made


def member_head(view: RunView, living_only: bool = True) -> list[str]:
    """Return the head of the members' table."""
    rated = ["rating", "fitness"] if view.ratings else []
    left = [] if living_only else ["left at step"]
    return ["member", "role", *rated, "born at step", *left, "operator", *(f"external, {mode}" for mode in MODES)]


def member_rows(view: RunView, most: int = MAX_MEMBERS, skip: int = 0, living_only: bool = True) -> list[list[str]]:
    """Return one row for each present member, teachers first, then by fitness.

    At most ``most`` rows, after the first ``skip``. Without ``living_only`` the replaced members follow, latest first.
    """
    last_rating = {row["individual"]: row for row in view.ratings}
    step = last_evaluated_step(view)
    members = [m for m in view.individuals if m["left_step"] is None or not living_only]
    members.sort(
        key=lambda m: (
            -(m["left_step"] or LARGEST_INTEGER),
            m["role"] != "teacher",
            -last_rating.get(m["id"], {"fitness": 0.0})["fitness"],
            m["slot"],
        )
    )
    rows = []
    for member in members[skip : skip + most]:
        rating = last_rating.get(member["id"])
        rated = [NOTHING, NOTHING] if view.ratings else []
        if rating is not None:
            rated = [f"{rating['mu']:.1f} ± {rating['sigma']:.1f}", f"{rating['fitness']:.1f}"]
        scores = [None if step is None else score_at(view, step, member["id"], mode) for mode in MODES]
        external = [NOTHING if score is None else str(score) for score in scores]
        left = [] if living_only else [NOTHING if member["left_step"] is None else str(member["left_step"])]
        born = [str(member["born_step"]), *left, member["operator"]]
        rows.append([member["id"], member["role"], *rated, *born, *external])
    return rows
