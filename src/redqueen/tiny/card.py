"""The embedded base's model card: recipe, tokens seen, loss curve and measured capabilities, written from the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redqueen.errors import UserError
from redqueen.tiny.worlds import BASIC, WORLDS

CURVE_POINTS = 16


def read_training(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the recipe and the progress of a training that ended. Raises UserError where ``folder`` holds none."""
    try:
        recipe, progress = (json.loads((folder / name).read_text()) for name in ("recipe.json", "progress.json"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"--card {folder} is no folder of a training ({error}): name the --out of `tiny train`"
        ) from None
    if not (folder / "base").is_dir():
        raise UserError(f"--card {folder}: its training has not ended, for it has no base/ yet")
    return recipe, progress


def write_card(folder: Path, recipe: dict[str, Any], progress: dict[str, Any], figures: dict[str, Any]) -> Path:
    """Write ``README.md`` into a model folder; ``figures`` come from ``measure.measure_base``."""
    path = folder / "README.md"
    path.write_text("\n".join([_head(recipe, progress), _recipe(recipe), _curve(progress), _figures(figures)]))
    return path


def _head(recipe: dict[str, Any], progress: dict[str, Any]) -> str:
    earlier = recipe.get("continues")
    origin = f"from the finished weights of the recipe `{earlier}`" if earlier else "from nothing"
    return f"""# The embedded base

A causal language model of 2.9 million parameters (Qwen3 architecture, fp16 on disk) that writes and runs small Python
programs. It was trained {origin} by `redqueen tiny train` on what redqueen's own generators write, and on nothing
else: {progress["tokens_seen"] / 1e6:.1f} million tokens in {progress["step"]:,} steps. The programs of the
held-out suite were kept out of its corpus, up to renaming. Licence: MIT.

It is meant for self-play on a laptop. A solver may write a trace of the execution before it answers; how often it does
so by habit stands below. It knows only the compact prompt format (`src/redqueen/domains/code/prompts_compact.py`) and
speaks no natural language.
"""


def _recipe(recipe: dict[str, Any]) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in recipe.items())
    command = "`redqueen tiny train --out DIR` (with `--recipe NAME` for the bases that it goes on from)"
    return f"## Recipe\n\n{command}\n\n| field | value |\n|---|---|\n{rows}\n"


def _curve(progress: dict[str, Any]) -> str:
    curve = progress["curve"]
    shown = curve[:: max(1, len(curve) // CURVE_POINTS)]
    if shown[-1] != curve[-1]:
        shown.append(curve[-1])
    rows = "\n".join(f"| {tokens / 1e6:.1f} | {loss:.3f} |" for tokens, loss in shown)
    head = "## Loss\n\nWeighted cross-entropy on the running batches.\n\n"
    return f"{head}| tokens, millions | loss, nats a token |\n|---|---|\n{rows}\n"


def _figures(figures: dict[str, Any]) -> str:
    lines = [
        "## What it can do",
        "",
        f"`redqueen tiny measure --problems {figures['problems']}`: fresh generator problems, "
        f"{figures['attempts']} attempts each at temperature 1 (greedy: one); 95 % intervals from a bootstrap over "
        "problems.",
        "",
        *_world(figures),
    ]
    for world in WORLDS.values():
        if world is not BASIC and world.name in figures:
            lines += [f"### On problems of the {world.name} world", "", *_world(figures[world.name])]
    return "\n".join(lines)


def _world(figures: dict[str, Any]) -> list[str]:
    """Return the tables of one world."""
    lines = [
        "| | valid | distinct programs | proposals |",
        "|---|---|---|---|",
    ]
    for kind in ("code_o", "code_i", "code_f"):
        row = figures["propose"][kind]
        lines.append(f"| propose {kind} | {row['valid_frac']:.1%} | {row['distinct_programs']} | {row['proposals']} |")
    lines += ["", "| solving | code_o | code_i | code_f |", "|---|---|---|---|"]
    for name in ("habit", "habit greedy", "direct", "forced thought", "forced thought greedy"):
        cells = [_interval(figures[kind].get(name)) for kind in ("code_o", "code_i", "code_f")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    thoughts = " | ".join(f"{figures[kind]['thought_frac']:.1%}" for kind in ("code_o", "code_i", "code_f"))
    lines.append(f"| share that thinks by habit | {thoughts} |")
    lines += ["", "| pass@1, @4, @8 | code_o | code_i | code_f |", "|---|---|---|---|"]
    for name in ("habit", "forced thought"):
        cells = [_passes(figures[kind].get(f"{name} pass@k")) for kind in ("code_o", "code_i", "code_f")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for level in sorted(figures["code_o"]["habit by level"]):
        cells = [_passes(figures[kind]["habit by level"].get(level)) for kind in ("code_o", "code_i", "code_f")]
        lines.append(f"| habit, level {level} | {' | '.join(cells)} |")
    constructs = ", ".join(f"{name} {count}" for name, count in figures["propose"]["constructs"].items())
    return [*lines, "", f"Valid code_o and code_i proposals that use each construct: {constructs}.", ""]


def _passes(cell: dict[str, float] | None) -> str:
    return "-" if cell is None else ", ".join(f"{share:.1%}" for share in cell.values())


def _interval(cell: dict[str, float] | None) -> str:
    return "-" if cell is None else f"{cell['mean']:.1%} ({cell['low']:.1%} to {cell['high']:.1%})"
