"""Runs that stand in an experiment's tables: read back, so that an experiment may spread over days and machines.

The tables hold all that the comparison needs of a run: its numbers, its curves, its scores, how often each kind of
behaviour occurred, and a fingerprint of its settings. The run's folder may be gone.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.config import ProposeConfig
from redqueen.domains.registry import open_domain
from redqueen.errors import UserError
from redqueen.experiment.measures import RunMeasures
from redqueen.experiment.plan import Experiment, Planned
from redqueen.experiment.runner import IGNORED

RESULTS, CURVES, FITNESS, COUNTS = "results.csv", "curves.csv", "fitness.csv", "counts.csv"
RUN_COLUMNS = ("arm", "seed", "match", "settings", "product")
"""The columns of ``results.csv`` before its numbers. Older tables have no ``product``."""

COMPARED = "_rarefied"
"""Ends the names of numbers that depend on the other runs of a table; with them goes ``semantic/rarefied_to``."""

THINGS = ("behaviours", "operations", "io_classes")
"""What ``counts.csv`` counts: the fields of ``RunMeasures`` of these names."""

UNNAMED = (*IGNORED, "max_tokens", "max_seconds", "product", "product_tasks")
"""Fields of ``run`` that leave a run what it is: two are the limit that a reference gives a matched run, and the
product, which is chosen when all is over, has a column of its own."""

LATER: dict[str, dict[str, object]] = {
    "run": {
        "product_candidates": 32,
    },
    "propose": {
        "num_check_proposals": 8,
        "buffer_per_teacher": False,
        "complete_at_last_input": False,
        "references_over": "tasks",
    },
    "verify": {
        "refuse_constant": False,
    },
    "match": {
        "ratings": "common",
    },
    "learn": {
        "old_logprobs": "recompute",
        "proposal_weight": 1.0,
        "warmup_steps": 0,
        "decay": "constant",
        "decay_from_step": 0,
        "decay_to_step": 0,
        "decay_floor_frac": 0.05,
        "teacher_rate_factor": 1.0,
        "student_rate_factor": 1.0,
        "kl_weight": 0.0,
        "teacher_baseline": "group",
        "baseline_decay_frac": 0.9,
    },
    "evolve": {
        "probe_tasks": 64,
        "probe_attempts": 2,
        "archive_capacity": 512,
        "genes": [],
        "gene_factor": 1.25,
    },
    "cluster": {
        "num_shards": 1,
        "silence_s": 120.0,
        "verify": "driver",
    },
    "sampler": {
        "kind": "torch",
        "urls": ["http://127.0.0.1:8000"],
        "adapter_folder": "",
        "max_requests": 128,
        "answer_s": 600.0,
        "load_s": 60.0,
        "reconnect_s": 600.0,
        "importance_cap": 2.0,
        "canary_tolerance": 0.2,
    },
    "distill": {
        "num_epochs": 2,
        "batch_size": 48,
        "learning_rate": 2e-3,
        "warmup_updates": 20,
        "restart_every_steps": 0,
    },
    "evaluate": {
        "part": "all",
        "control": True,
        "max_members": 0,
        "students": True,
    },
}
"""Fields that came after runs had been recorded, by section, and the value that those runs had (or would have had the
same results with): their fingerprints stay. A default that changes later does not change this."""


@dataclass(frozen=True)
class Measured:
    """A finished run and what was measured of it. ``scores``: its rows of ``fitness.csv``, from ``step`` on."""

    planned: Planned
    measures: RunMeasures
    scores: tuple[tuple[str, ...], ...]


def fingerprint(planned: Planned) -> str:
    """Return 12 hexadecimal digits that differ between runs with different settings (threads and limits excepted).

    A precision of ``auto`` counts as bf16, whatever the processor made of it: such a run in float32 has the same one.
    """
    plain = planned.config.model_dump(mode="json")
    plain["run"] = {name: value for name, value in plain["run"].items() if name not in UNNAMED}
    for section, later in LATER.items():
        for name, value in later.items():
            if plain[section][name] == value:
                del plain[section][name]
    plain["propose"] = _one_number_a_kind(plain["propose"])
    if plain["model"]["precision"] == "auto":
        plain["model"]["precision"] = "bf16"  # as it was recorded before it could follow the processor
    plain = {section: fields for section, fields in plain.items() if fields}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


def how_chosen(planned: Planned) -> str:
    """Return how the run's product is made, and how many tasks choose it."""
    run = planned.config.run
    return run.product if run.product == "none" else f"{run.product} by {run.product_tasks}"


def _one_number_a_kind(propose: dict[str, Any]) -> dict[str, Any]:
    """Return the section as it was recorded before domains could be chosen: a number of proposals for each kind."""
    wanted, each = propose.pop("num_proposals"), propose.pop("num_of_each_kind")
    kinds = [kind.name for name in propose["domains"] for kind in open_domain(name).kinds]
    if propose["domains"] == list(ProposeConfig().domains):
        del propose["domains"]
    return propose | {f"num_{kind}": wanted.get(kind, each) for kind in kinds}


def recorded_runs(plan: Experiment, tables: Path) -> list[Measured]:
    """Return the runs of ``plan`` that stand in ``tables``, in the order of the plan; none where no tables are.

    Raises UserError, naming the file and the run, for tables that are damaged, that hold a run that the plan does not
    have, or one that was played with other settings.
    """
    if not (tables / RESULTS).is_file():
        return []
    try:
        return _read(plan, tables)
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise UserError(
            f"{tables}: its tables cannot be read back ({error}): restore them, or leave out --add to write them anew"
        ) from None


def _read(plan: Experiment, tables: Path) -> list[Measured]:
    planned = {(run.arm, str(run.seed)): run for run in plan.runs}
    curves: dict[tuple[str, str], dict[str, list[tuple[int, float | None]]]] = {}
    counts: dict[tuple[str, str], dict[str, list[int]]] = {}
    scores: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in _rows(tables / CURVES):
        point = (int(row["step"]), float(row["value"]) if row["value"] else None)
        curves.setdefault(_key(row), {}).setdefault(row["measure"], []).append(point)
    for row in _rows(tables / COUNTS):
        times = [int(row["num_tasks"])] * int(row["num_things"])
        counts.setdefault(_key(row), {}).setdefault(row["things"], []).extend(times)
    for row in _rows(tables / FITNESS):
        scores.setdefault(_key(row), []).append(tuple(row.values())[2:])
    found = {}
    for row in _rows(tables / RESULTS):
        key = _key(row)
        run = planned.get(key)
        if run is None:
            raise UserError(f"{tables / RESULTS} has {key[0]!r}, seed {key[1]}, which {plan.name!r} has not")
        now = {"settings": fingerprint(run), "match": run.match, "product": how_chosen(run)}
        if other := [name for name, value in now.items() if row.get(name, value) != value]:
            raise UserError(
                f"{tables / RESULTS}: {key[0]!r}, seed {key[1]} was played with other settings than the experiment has "
                f"now (column {other[0]}): choose another --tables, or leave out --add to write these anew"
            )
        names = [name for name in row if name not in (*RUN_COLUMNS, "semantic/rarefied_to")]
        numbers = {name: float(row[name]) for name in names if row[name] and not name.endswith(COMPARED)}
        own = counts.get(key, {})
        things = (tuple(own.get(name, ())) for name in THINGS)
        measures = RunMeasures(curves[key], numbers, sum(own.get("behaviours", ())), *things)
        found[key] = Measured(run, measures, tuple(scores.get(key, ())))
    return [found[key] for key in planned if key in found]


def _rows(path: Path) -> Sequence[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"row {number} of {path.name} has not as many fields as its first")
    return rows


def _key(row: dict[str, str]) -> tuple[str, str]:
    return row["arm"], row["seed"]
