"""Figures of the population: ratings with bands, the match-up matrix, the lineage."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from redqueen.journal.write import Row
from redqueen.report.figure import NUM_COLORS, Figure, Line, line
from redqueen.report.view import RunView

MAX_MATRIX_SIDE = 24
"""The match-up matrix shows at most this many members of each role, the latest born."""

FEW_ROWS, MAX_ROWS = 12, 40
"""The lineage has a row for each of so few slots, and of a larger population at most this many rows."""

FEW_TEXT = (
    "Each line is a slot of the population; it breaks where a child takes the slot over. The band is one sigma to "
    "either side: how unsure the rating is of itself."
)
MANY_TEXT = "Best, middle and worst member; the band reaches from the worst to the best."


def rating_figures(view: RunView) -> list[Figure]:
    """Return the ratings of teachers and of students, one figure each; none when no member was rated."""
    figures = []
    for role in ("teacher", "student"):
        places = _rated_places(view, role)
        if not places:
            continue
        few = len(places) <= NUM_COLORS
        series = _lines_by_place(places) if few else _summary_lines(places)
        shown = FEW_TEXT if few else MANY_TEXT
        text = f"Gaussian skill rating (mu) of the {role}s after each step. {shown}"
        chart = {"type": "lines", "series": series}
        figures.append(Figure(f"ratings-{role}", f"Ratings of the {role}s", "rating points", text, chart))
    return figures


def matchup_figure(view: RunView) -> Figure | None:
    """Return the match-up matrix: how much of each teacher's tasks each student solved."""
    rows = [row for row in view.meetings if row["teacher"] != row["student"]]
    order = {member["id"]: at for at, member in enumerate(view.individuals)}
    teachers = sorted({row["teacher"] for row in rows}, key=lambda name: order.get(name, -1))
    students = sorted({row["student"] for row in rows}, key=lambda name: order.get(name, -1))
    if not rows:
        return None
    left_out = len(teachers) > MAX_MATRIX_SIDE or len(students) > MAX_MATRIX_SIDE
    teachers, students = teachers[-MAX_MATRIX_SIDE:], students[-MAX_MATRIX_SIDE:]
    cells = [
        [students.index(row["student"]), teachers.index(row["teacher"]), row["solve_frac"], row["num_tasks"]]
        for row in rows
        if row["student"] in students and row["teacher"] in teachers and row["solve_frac"] is not None
    ]
    text = (
        "Share of each teacher's valid tasks that each student solved, over all their matches; empty: never played. "
        "Dark rows are hard teachers, bright columns strong students."
    )
    if left_out:
        text += f" Only the {MAX_MATRIX_SIDE} latest born of each role are shown."
    chart = {"type": "heat", "rows": teachers, "columns": students, "cells": cells}
    return Figure("matchups", "Who beats whom", "solve rate (0 to 1)", text, chart, tall=len(teachers) > 8)


def lineage_figure(view: RunView) -> Figure | None:
    """Return the lineage: every member from birth to replacement in its slot, and lines from parents to children.

    Of a population with many slots, those without births share one row, and so do slots beyond the ``MAX_ROWS`` that
    saw a birth last.
    """
    if not view.births:
        return None
    names, apart = _place_names(view), _slots_apart(view)
    rows = [name for slot, name in names.items() if slot in apart]
    num_together = len(names) - len(rows)
    if num_together:
        rows.append(f"{num_together} more")
    row_of = {m["id"]: rows.index(names[m["slot"]]) if m["slot"] in apart else len(apart) for m in view.individuals}
    parents_of = {row["child"]: parents for row, parents in view.births}
    lives = [
        {
            "id": member["id"],
            "row": row_of[member["id"]],
            "start": member["born_step"],
            "end": member["left_step"] if member["left_step"] is not None else view.last_step,
            "alive": member["left_step"] is None,
            "operator": member["operator"],
            "parents": parents_of.get(member["id"], []),
        }
        for member in view.individuals
        if member["slot"] in apart
    ]
    if num_together:
        whole = {"id": rows[-1], "row": len(apart), "start": 0, "end": view.last_step, "alive": True}
        lives.append({**whole, "operator": "founder", "parents": []})
    links = [
        {"step": row["step"], "start": row_of[parent], "end": row_of[row["child"]]}
        for row, parents in view.births
        for parent in parents
        if row_of[row["child"]] < len(apart)
    ]
    text = "Steps from left to right, slots of the population from top to bottom. The table below has the constants."
    if num_together:
        text += f" The last row stands for {num_together} slots, most or all of them without births."
    chart = {"type": "lineage", "rows": rows, "lives": lives, "links": links}
    return Figure("lineage", "Lineage", "step", text, chart, tall=len(rows) > 6, wide=True)


def _slots_apart(view: RunView) -> set[int]:
    """Return the slots that have a row of their own in the lineage."""
    slots = {member["slot"] for member in view.individuals}
    if len(slots) <= FEW_ROWS:
        return slots
    slot_of = {member["id"]: member["slot"] for member in view.individuals}
    born = dict.fromkeys(slot_of[row["child"]] for row, _ in reversed(view.births))
    return set(list(born)[:MAX_ROWS])


def _place_names(view: RunView) -> dict[int, str]:
    """Return the name of each slot of the bank: its founder's, for children take slots over."""
    names: dict[int, str] = {}
    for member in view.individuals:
        names.setdefault(member["slot"], member["id"])
    return names


def _rated_places(view: RunView, role: str) -> dict[str, list[list[Row]]]:
    """Return, by slot, the ratings of its members one after the other."""
    of_member: dict[str, list[Row]] = defaultdict(list)
    for row in view.ratings:
        of_member[row["individual"]].append(row)
    names, places = _place_names(view), defaultdict(list)
    for member in view.individuals:
        if member["role"] == role and of_member[member["id"]]:
            places[names[member["slot"]]].append(of_member[member["id"]])
    return dict(places)


def _lines_by_place(places: dict[str, list[list[Row]]]) -> list[Line]:
    series = []
    for at, (place, holders) in enumerate(places.items()):
        points: list[tuple[int, float | None]] = []
        bands = []
        for ratings in holders:
            if points:
                points.append((ratings[0]["step"], None))
            points += [(row["step"], row["mu"]) for row in ratings]
            bands.append([[row["step"], row["mu"] - row["sigma"], row["mu"] + row["sigma"]] for row in ratings])
        series.append({**line(place, points, at, at % 4), "bands": bands})
    return series


def _summary_lines(places: dict[str, list[list[Row]]]) -> list[Line]:
    by_step: dict[int, list[float]] = defaultdict(list)
    for holders in places.values():
        for row in (row for ratings in holders for row in ratings):
            by_step[row["step"]].append(row["mu"])
    steps = sorted(by_step)
    band = [[step, min(by_step[step]), max(by_step[step])] for step in steps]
    middle = {**line("middle", [(step, median(by_step[step])) for step in steps], 0), "bands": [band]}
    best = line("best", [(step, max(by_step[step])) for step in steps], 2, 1)
    return [middle, best, line("worst", [(step, min(by_step[step])) for step in steps], 1, 2)]
