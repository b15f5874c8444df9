"""The lineage page: the family tree as rows, the operators' records, and a figure of the latest births."""

from __future__ import annotations

from dataclasses import dataclass, replace

from redqueen.display import NOTHING, number
from redqueen.journal.values import json_of
from redqueen.journal.write import Row
from redqueen.nouns import Birth
from redqueen.report.figure import Section
from redqueen.report.lineage import founder_shares, generations, operator_records
from redqueen.report.population_figures import lineage_figure
from redqueen.report.view import RunView

MAX_BIRTHS = 240
"""The figure and the table of births show at most this many, the latest."""

MAX_TREE = 500
"""Longest family tree that is shown."""

MAX_FOUNDERS = 12
"""So many founders of a role are named."""

FAMILIES = {"M": "mutation", "X": "crossover"}


@dataclass(frozen=True)
class TreeRow:
    """One member in the family tree, below its first parent. ``depth`` 0 is a root."""

    member: Row
    depth: int
    others: list[str]
    change: str
    family: str


def births_of(view: RunView) -> list[Birth]:
    """Return the journal's births as records."""
    return [
        Birth(
            row["step"],
            row["child"],
            row["replaced"],
            tuple(parents),
            row["operator"],
            json_of(row, "constants"),
            int(row["rng_seed"]),
            row["relative_change"] or 0.0,
        )
        for row, parents in view.births
    ]


@dataclass(frozen=True)
class Tree:
    """``rows``: the families, at most ``MAX_TREE`` rows; ``num_left_out`` of them are missing. ``childless``: founders
    that are nobody's first parent."""

    rows: list[TreeRow]
    num_left_out: int
    childless: list[Row]


def family_tree(view: RunView) -> Tree:
    """Return every member once: those without children of their own apart, for they make no tree."""
    parents = {parents[0] for _, parents in view.births if parents}
    every = tree_rows(view)
    alone = [r.member for r in every if r.depth == 0 and r.family == "founder" and r.member["id"] not in parents]
    names = {member["id"] for member in alone}
    rows = [row for row in every if row.member["id"] not in names]
    return Tree(rows[:MAX_TREE], max(0, len(rows) - MAX_TREE), alone)


def tree_rows(view: RunView) -> list[TreeRow]:
    """Return every member once, each child after its first parent (deeper), in the order of birth."""
    births = {row["child"]: (row, parents) for row, parents in view.births}
    children: dict[str, list[Row]] = {}
    roots = []
    for member in view.individuals:
        parents = births[member["id"]][1] if member["id"] in births else []
        if parents:
            children.setdefault(parents[0], []).append(member)
        else:
            roots.append(member)
    rows = []
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        member, depth = waiting.pop()
        birth, parents = births.get(member["id"], (None, []))
        change = birth["relative_change"] if birth else None
        operator = member["operator"]
        family = "founder" if operator == "founder" else FAMILIES.get(operator[:1], "copy")
        text = NOTHING if change is None else f"{100 * change:.1f} %"
        rows.append(TreeRow(member, depth, parents[1:], text, family))
        waiting += [(child, depth + 1) for child in reversed(children.get(member["id"], []))]
    return rows


def lineage_section(view: RunView) -> Section | None:
    """Return the figure of the lineage: the members that lived at the latest births."""
    latest = view.births[-MAX_BIRTHS:]
    if not latest:
        return None
    first = latest[0][0]["step"]
    there = [m for m in view.individuals if m["left_step"] is None or m["left_step"] >= first]
    names = {member["id"] for member in there}
    kept = [(row, [p for p in parents if p in names]) for row, parents in latest]
    figure = lineage_figure(replace(view, individuals=there, births=kept))
    if figure is None:
        return None
    text = "Every member from birth to replacement, from left to right in its slot; thin lines come from the parents."
    if len(latest) < len(view.births):
        text += f" Of {len(view.births):,} births the latest {len(latest)} are drawn."
    return Section("lineage", "Lives", text, (replace(figure, text="Steps from left to right, slots downward."),))


def operator_table(view: RunView) -> list[list[str]]:
    """Return one row for each operator: its name, births, how many last, and how far its children were moved."""
    living = [member["id"] for member in view.individuals if member["left_step"] is None]
    records = operator_records(births_of(view), living)
    return [
        [name, str(record.num_births), str(record.num_lasting), f"{100 * record.mean_relative_change:.1f} %"]
        for name, record in records.items()
    ]


def founder_table(view: RunView) -> list[list[str]]:
    """Return one row for each role and founder with descendants: its share in the ancestry of that role.

    Of a role's founders those with the ``MAX_FOUNDERS`` largest shares, and a row for the others together.
    """
    births = births_of(view)
    depths, slots = generations(births), {m["id"]: m["slot"] for m in view.individuals}
    rows = []
    for role in ("teacher", "student", "both"):
        living = [m["id"] for m in view.individuals if m["left_step"] is None and m["role"] == role]
        shares = founder_shares(births, living) if living else {}
        depth = number(max((depths.get(name, 0) for name in living), default=0))
        ranked = sorted(shares.items(), key=lambda item: (-item[1], slots.get(item[0], -1)))
        rows += [[founder, role, f"{100 * share:.0f} %", depth] for founder, share in ranked[:MAX_FOUNDERS]]
        rest = ranked[MAX_FOUNDERS:]
        if rest:
            together = sum(share for _, share in rest)
            rows.append([f"{len(rest)} others together", role, f"{100 * together:.0f} %", depth])
    return rows
