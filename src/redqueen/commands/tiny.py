"""`redqueen tiny`: its commands, each of which imports what it needs, as those of ``redqueen.cli`` do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from redqueen.files import naming_another_file, write_whole

tiny = typer.Typer(help="The embedded base model: train it again, measure what it can do.", no_args_is_help=True)


@tiny.command("train")
def tiny_train(
    out: Annotated[Path, typer.Option(help="Folder for weights, tokenizer and checkpoints; goes on where it was.")],
    recipe: Annotated[
        str,
        typer.Option(
            help="basic; everyday: goes on from basic in a wider world; broad: goes on from everyday with more "
            "mathematics, logic and proofs; search: goes on from broad with thoughts that try several programs or "
            "inputs; young: from nothing, ends early; maths: goes on from broad with mathematics alone."
        ),
    ] = "broad",
    steps: Annotated[int | None, typer.Option(help="Optimiser steps, if not the recipe's.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    compiled: Annotated[bool, typer.Option(help="Use torch.compile (needs a C++ compiler): faster.")] = False,
    start: Annotated[
        Path | None,
        typer.Option(
            help="For a recipe that continues another: a folder with a finished base of that one. "
            "Default: the other is trained first, in a folder of its name inside --out."
        ),
    ] = None,
) -> None:
    """Train the embedded base, or that of an earlier recipe; goes on where a training in the folder was."""
    from redqueen.run.activity import showing
    from redqueen.tiny.train import train_base

    with showing("training the base") as activity:
        train_base(out, recipe, steps, device, compiled, lambda line: print(line, flush=True), start, activity)


@tiny.command("measure")
def tiny_measure(
    base: Annotated[
        Path | None, typer.Option(help="A folder that `tiny train` made; default: the shipped base.")
    ] = None,
    problems: Annotated[int, typer.Option(help="Number of fresh generator problems.")] = 200,
    out: Annotated[Path | None, typer.Option(help="Write the figures here as JSON too.")] = None,
    card: Annotated[Path | None, typer.Option(help="Training folder: write the model card into its base/.")] = None,
) -> None:
    """Measure what the base can do on fresh generator problems: the figures of its model card."""
    from redqueen.run.activity import showing
    from redqueen.tiny.card import read_training, write_card
    from redqueen.tiny.measure import measure_base

    training = read_training(card) if card else None
    with showing("measuring the base") as activity:
        figures = measure_base(base, problems, lambda line: print(line, flush=True), activity)
    if out:
        with naming_another_file(str(out)):
            write_whole(out, json.dumps(figures, indent=2) + "\n")
    if card and training:
        print(write_card(card / "base", *training, figures))


@tiny.command("suite")
def tiny_suite(
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("generated.jsonl"),
) -> None:
    """Write the generated half of the frozen suite again; the corpus is read as a whole, for what it considered."""
    from redqueen.domains.code.suite import SUITES
    from redqueen.run.activity import showing
    from redqueen.tiny.held_out import held_out_skeletons, write_suite
    from redqueen.tiny.recipe import Recipe

    with showing("reading the corpus"):
        number = write_suite(out, Recipe(), held_out_skeletons(SUITES), lambda line: print(line, flush=True))
    print(f"{number} programs in {out}")
