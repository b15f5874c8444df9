"""The lineage of a run as a figure and tables, computed from its births.

Ids are unique in a run, so the child's id identifies a birth; a member without a birth is a founder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from redqueen.display import NOTHING, counted
from redqueen.journal.untrusted import Row, json_of
from redqueen.report.figure import Figure, Section
from redqueen.report.view import RunView

Births = Sequence[tuple[Row, list[str]]]
"""Rows of the table ``birth`` in their order, each with its parents; a child without parents was reset to the base."""

MAX_BIRTHS = 240
"""The figure and the table of births show at most this many, the latest."""

MAX_FOUNDERS = 12
"""At most this many founders of a role are named."""

MAX_SHARES = 20_000_000
"""Maximum number of founders' shares to compute: a run of 10,000 births has some 200,000."""

FEW_ROWS, MAX_ROWS = 12, 40
"""Up to ``FEW_ROWS`` slots each have a row in the figure; of more slots, at most ``MAX_ROWS`` have one."""


@dataclass(frozen=True)
class Lineage:
    """The content of the lineage page: a figure, and the rows of three tables (their heads are below)."""

    section: Section
    operators: list[list[str]]
    founders: list[list[str]]
    births: list[list[str]]
    num_births: int


OPERATORS_HEAD = ("operator", "births", "lasting", "mean change")
FOUNDERS_HEAD = ("founder", "role", "share")
BIRTHS_HEAD = ("child", "step", "replaced", "operator", "parents", "change", "constants")


def lineage_of(view: RunView) -> Lineage | None:
    """Return the lineage of a run, None when nothing was born."""
    if not view.births:
        return None
    text = (
        "Every member from birth to replacement, from left to right, in its slot of the population. A circle is a "
        "child of mutation, a diamond one of crossover, a triangle a plain copy; thin lines come from its parents."
    )
    return Lineage(
        section=Section("evolution", "Who descends from whom", text, (lineage_figure(view),)),
        operators=_operator_table(view),
        founders=_founder_table(view),
        births=[_birth_row(*birth) for birth in view.births[-MAX_BIRTHS:][::-1]],
        num_births=len(view.births),
    )


def lineage_figure(view: RunView) -> Figure:
    """Return the members alive during the latest births, each in its slot, and lines from parents to children.

    With many slots, only the ``MAX_ROWS`` slots with the latest births have their own row; all others share one.
    """
    births = view.births[-MAX_BIRTHS:]
    first = births[0][0]["step"] if len(births) < len(view.births) else 0
    there = [m for m in view.individuals if m["left_step"] is None or m["left_step"] >= first]
    slot_of, names = {member["id"]: member["slot"] for member in there}, view.slot_names
    shown = set(slot_of.values())  # the slots that have their own row
    if len(shown) > FEW_ROWS:
        shown = set(list(dict.fromkeys(slot_of[row["child"]] for row, _ in reversed(births)))[:MAX_ROWS])
    rows = [name for slot, name in sorted(names.items()) if slot in shown]
    num_others = len(names) - len(rows)
    if num_others:
        rows.append(f"{num_others} more")
    row_of = {name: rows.index(names[slot]) if slot in shown else len(shown) for name, slot in slot_of.items()}
    parents_of = {row["child"]: parents for row, parents in births}
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
        for member in there
        if member["slot"] in shown
    ]
    if num_others:
        whole = {"id": rows[-1], "row": len(shown), "start": 0, "end": view.last_step, "alive": True}
        lives.append({**whole, "operator": "founder", "parents": []})
    links = [
        {"step": row["step"], "start": row_of[parent], "end": row_of[row["child"]]}
        for row, parents in births
        for parent in parents
        if parent in row_of and row_of[row["child"]] < len(shown)
    ]
    text = "Steps from left to right, slots of the population from top to bottom."
    if len(births) < len(view.births):
        text += f" Of {len(view.births):,} births the latest {len(births)} are drawn."
    if num_others:
        text += f" The last row represents {counted(num_others, 'slot')}, most or all of them without births."
    chart = {"type": "lineage", "rows": rows, "lives": lives, "links": links}
    return Figure("lineage", "Lineage", "step", text, chart, tall=len(rows) > 6, wide=True)


def founder_shares(births: Births, living: Iterable[str]) -> dict[str, float]:
    """Return each founder's share in the ancestry of present members, adding up to 1; two parents count half each.

    One founder at 1.0 means that the whole population descends from a single individual. Raises ValueError for births
    whose shares would take hours to compute; only a manipulated file has so many.
    """
    born = {row["child"] for row, _ in births}
    named = {parent for _, parents in births for parent in parents}
    if len(named - born) * sum(len(parents) for _, parents in births) > MAX_SHARES:
        raise ValueError("more founders and births than any run has")
    shares: dict[str, dict[str, float]] = {}
    for row, parents in births:
        mixed: dict[str, float] = {}
        for parent in parents:
            for founder, share in shares.get(parent, {parent: 1.0}).items():
                mixed[founder] = mixed.get(founder, 0.0) + share / len(parents)
        shares[row["child"]] = mixed or {row["child"]: 1.0}
    total: dict[str, float] = {}
    names = list(living)
    for name in names:
        for founder, share in shares.get(name, {name: 1.0}).items():
            total[founder] = total.get(founder, 0.0) + share / len(names)
    return total


def num_lasting(births: Births, living: Iterable[str]) -> dict[str, int]:
    """Return, by operator, how many of its children are present or have a present descendant."""
    parents_of = {row["child"]: parents for row, parents in births}
    lasting, waiting = set[str](), list(living)
    while waiting:
        name = waiting.pop()
        if name not in lasting:
            lasting.add(name)
            waiting.extend(parents_of.get(name, ()))
    counts = dict.fromkeys(sorted({row["operator"] for row, _ in births}), 0)
    for row, _ in births:
        counts[row["operator"]] += row["child"] in lasting
    return counts


def _operator_table(view: RunView) -> list[list[str]]:
    """Return one row for each operator: its name, number of births, lasting children, and mean change."""
    rows = []
    for operator, lasting in num_lasting(view.births, view.living).items():
        changes = [row["relative_change"] or 0.0 for row, _ in view.births if row["operator"] == operator]
        rows.append([operator, str(len(changes)), str(lasting), f"{100 * fmean(changes):.1f} %"])
    return rows


def _founder_table(view: RunView) -> list[list[str]]:
    """Return each founder's share in the ancestry of its role: the ``MAX_FOUNDERS`` largest shares of each role, and a
    row for the sum of the others."""
    slots, rows = {m["id"]: m["slot"] for m in view.individuals}, []
    for role in ("teacher", "student", "both"):
        living = [m["id"] for m in view.individuals if m["left_step"] is None and m["role"] == role]
        shares = founder_shares(view.births, living) if living else {}
        ranked = sorted(shares.items(), key=lambda item: (-item[1], slots.get(item[0], -1)))
        rows += [[founder, role, f"{100 * share:.0f} %"] for founder, share in ranked[:MAX_FOUNDERS]]
        rest = [share for _, share in ranked[MAX_FOUNDERS:]]
        if rest:
            rows.append([f"{counted(len(rest), 'other')} together", role, f"{100 * sum(rest):.0f} %"])
    return rows


def _birth_row(row: Row, parents: list[str]) -> list[str]:
    constants = ", ".join(f"{name} {value:.3g}" for name, value in json_of(row, "constants").items())
    change, layers = NOTHING, json_of(row, "layer_changes").values()
    if row["relative_change"] is not None:
        span = f" (layers {100 * min(layers):.0f} to {100 * max(layers):.0f} %)" if layers else ""
        change = f"{100 * row['relative_change']:.1f} %{span}"
    names = " and ".join(parents)
    return [row["child"], str(row["step"]), row["replaced"], row["operator"], names, change, constants or NOTHING]
