"""The end report in short, as markdown: what happened, the numbers at a glance, members and births."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from redqueen.display import visible
from redqueen.files import naming_another_file, write_whole
from redqueen.report.card import report_card
from redqueen.report.fitness import MODES
from redqueen.report.html import read_runs
from redqueen.report.side_by_side import arm_rows
from redqueen.report.story import tell
from redqueen.report.tables import arm_cells, birth_rows, family_tree, member_head, member_rows, tiles
from redqueen.report.timeline import HEAD, health_of
from redqueen.report.view import RunView
from redqueen.run.store import refuse_own_file

SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def write_markdown(run_dirs: Sequence[Path], out: Path) -> Path:
    """Write the summary of one run, or of several, to ``out`` (an .md file) and return its path.

    Raises UserError when a directory holds no run, when ``out`` cannot be written, or is a file that a run needs.
    """
    refuse_own_file(out)
    text = report_markdown(read_runs(run_dirs))
    with naming_another_file(f"the summary to {out}"):
        write_whole(Path(out), text)
    return Path(out)


def report_markdown(views: Sequence[RunView]) -> str:
    """Return the summary as markdown."""
    parts = ["# Red Queen: what happened"]
    if len(views) > 1:
        head = ["measure", "arm", "runs", "mean of runs", "lowest run", "highest run"]
        parts += ["## Side by side", table(head, arm_cells(arm_rows(views)))]
    parts += [part for view in views for part in _run_parts(view)]
    return "\n\n".join(parts) + "\n"


def _run_parts(view: RunView) -> list[str]:
    story, card = tell(view), report_card(view)
    label, arm = literal(view.label), literal(view.run.arm)
    parts = [
        f"## {label} ({arm}, {view.last_step} steps, seed {view.run.rng_seed})",
        f"{card.mark} **{literal(card.sentence)}**",
        *([table(["", *MODES], card.rows())] if card.entries else []),
        " ".join(literal(sentence) for sentence in story.sentences),
        table(["", "value", ""], [[tile.name, tile.value, tile.note] for tile in tiles(view)]),
        "### Members at the end",
        table(member_head(view), member_rows(view)),
    ]
    births = birth_rows(view)
    if births:
        head = ["child", "step", "replaced", "operator", "parents", "change", "constants"]
        parts += ["### Births", table(head, births)]
        parts += ["### Family tree", f"```text\n{_fenced(family_tree(view))}\n```"]
    warned = health_of(view).rows
    if warned:
        parts += ["### Warnings", table(HEAD, warned)]
    return parts


def _fenced(text: str) -> str:
    """Return text that stands in a fence without ending it."""
    return visible(text).replace("```", "` ` `")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([literal(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def literal(text: str) -> str:
    """Return text that markdown shows as it stands."""
    return SPECIAL.sub(r"\\\1", visible(text, one_line=True))
