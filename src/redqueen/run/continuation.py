"""Going on with a run beyond the end that it was given: how long it is may change, and where its servers are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redqueen.config import Config, parse_config
from redqueen.errors import UserError, command
from redqueen.files import apply_override, write_whole
from redqueen.journal import Journal, read
from redqueen.run.store import CONFIG

LENGTHS = ("num_steps", "max_tokens", "max_seconds")
"""The fields of ``run`` that a continuation may change."""
PLACES = ("sampler.urls", "sampler.adapter_folder", "population.resting_folder")
"""The fields that say where something is, which a continuation may change."""
CHANGEABLE = (*(f"run.{field}" for field in LENGTHS), *PLACES)


def lengthened(config: Config, overrides: Sequence[str]) -> Config:
    """Return a run's config with ``run.num_steps=...`` and the like. Raises UserError for others than CHANGEABLE."""
    asked: dict[str, Any] = {}
    for override in overrides:
        apply_override(asked, override)
        name = override.partition("=")[0].strip()
        if name not in CHANGEABLE:
            raise UserError(
                f"--set {override}: a run goes on with the config it was begun with, only "
                f"{', '.join(CHANGEABLE)} may change; begin another run for anything else"
            )
    data = config.model_dump(mode="json")
    for section in asked:
        data[section] |= asked[section]
    return parse_config(data, "--set")


def write_lengths(folder: Path, config: Config, step: int) -> None:
    """Write the lengthened config of a run whose newest checkpoint is of ``step``.

    Raises UserError when that lies beyond the new end.
    """
    if config.run.num_steps < step:
        raise UserError(f"--set run.num_steps={config.run.num_steps}: {folder} has played {step} steps: give more")
    write_whole(folder / CONFIG, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")


def record_lengths(journal: Journal, config: Config, step: int) -> None:
    """Note in the journal, at ``step``, every length in which the config is no longer the one it tells.

    Each becomes a metric of that step (``run/num_steps``), and the run's record tells the new config. Done at every
    resume, so that nothing is lost when a process dies between writing the config and this.
    """
    told = read.run_record(journal).config
    before, now = dict(told.get("run", {})), config.run.model_dump(mode="json")  # type: ignore[call-overload]
    changed = {f"run/{name}": float(now[name]) for name in LENGTHS if before.get(name, now[name]) != now[name]}
    if changed:
        journal.lengthen({**told, "run": before | {name: now[name] for name in LENGTHS}}, changed, step)


def how_to_go_on(folder: Path, config: Config) -> str:
    """Say how a run that is over is made to go on."""
    return f"{folder} is over after its {config.run.num_steps} steps; it goes on with: " + command(
        "resume", folder, "--set", f"run.num_steps={2 * config.run.num_steps}"
    )
