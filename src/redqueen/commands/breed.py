"""Breeding outside a run: operators on any PEFT adapters, and the table of operators."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from redqueen.adapters.peft import Adapter, read_adapter, write_adapter
from redqueen.commands.adapter_base import base_name, base_sha256, same_base
from redqueen.config import EvolveConfig
from redqueen.display import counted
from redqueen.errors import UserError
from redqueen.evolve.generation import draw_operator
from redqueen.evolve.operators import OPERATORS, Operator, apply, find
from redqueen.evolve.selection import finite_by, select_parents
from redqueen.files import making_folder, naming_remedy

_MUST_AGREE = ("r", "lora_alpha")


def breed_folders(
    operator: str, parents: Sequence[Path], seed: int, fitness: Sequence[float] | None, out: Path
) -> dict[str, Any]:
    """Make one child from PEFT folders and write it to ``out`` as a PEFT folder.

    Returns, ready for JSON, ``operator``, ``seed``, ``parents``, ``fitness``, ``constants``, ``relative_change``
    (``overall`` and each module, relative to the first parent) and ``seconds`` (of the operator, without file access).
    The same is written to the child's folder as ``breeding.json``. ``fitness`` is one number per parent; without it all
    are equal. Raises UserError, with nothing written, for invalid arguments or parents that cannot be combined.
    """
    chosen = find(operator)
    _check_arguments(chosen, parents, seed, fitness, out)
    adapters = [read_adapter(Path(folder)) for folder in parents]
    for other in adapters[1:]:
        _check_compatible(adapters[0], other)
    start = time.perf_counter()
    child = apply(chosen, [a.genotype for a in adapters], fitness or [0.0] * len(adapters), seed)
    seconds = time.perf_counter() - start
    record = {
        "operator": operator,
        "seed": seed,
        "parents": [str(folder) for folder in parents],
        "fitness": list(fitness) if fitness else None,
        "constants": child.constants,
        "relative_change": {"overall": child.change.overall, **child.change.per_layer},
        "seconds": round(seconds, 4),
    }
    with naming_remedy(f"--out {out} cannot be written"), making_folder(out) as temporary:
        write_adapter(temporary, adapters[0].config, child.genotype, base_sha256(adapters[0]))
        (temporary / "breeding.json").write_text(json.dumps(record, indent=2) + "\n")
    return record


def evolve_folders(
    adapters: Sequence[Path],
    fitness: Callable[[Path], float],
    out: Path,
    generations: int,
    operators: Sequence[str],
    seed: int,
) -> list[dict[str, Any]]:
    """Evolve PEFT folders in ``out``: each generation breeds as many children as there are adapters; the fittest stay.

    Children are bred as in a run: crossover or mutation at random, parents by rank. Returns the survivors, the fittest
    first: ``folder``, ``fitness``, ``generation``, ``operator`` and ``parents``. Children that do not survive are
    deleted; the given folders are not changed. Raises UserError for invalid arguments before anything is written.
    """
    rules = EvolveConfig(operators=tuple(operators), selection="rank")
    for name in rules.operators:
        find(name)
    if generations < 1 or not adapters:
        raise UserError("adapters, generations: give at least one of each")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"out: {out} exists already: choose a new folder")
    first = read_adapter(adapters[0])
    for folder in adapters[1:]:
        _check_compatible(first, read_adapter(folder))
    rng = np.random.default_rng(seed)
    alive = [_entry(Path(folder), fitness, 0, "founder", []) for folder in adapters]
    for generation in range(1, generations + 1):
        children = []
        for number in range(len(adapters)):
            drawn = draw_operator(rules, len(alive), rng)
            operator = find(drawn)
            chosen = select_parents(rules.selection, [one["fitness"] for one in alive], operator.num_parents, rng)
            parents = [alive[at] for at in chosen]
            genotypes = [read_adapter(Path(parent["folder"])).genotype for parent in parents]
            child = apply(operator, genotypes, [one["fitness"] for one in parents], int(rng.integers(2**31)))
            folder = out / f"generation-{generation}-{number + 1}"
            write_adapter(folder, first.config, child.genotype, base_sha256(first))
            names = [one["folder"] for one in parents]
            children.append(_entry(folder, fitness, generation, drawn, names))
        ranked = sorted([*alive, *children], key=lambda one: -one["fitness"])
        alive = ranked[: len(adapters)]
        for one in ranked[len(adapters) :]:
            if one["generation"]:
                shutil.rmtree(one["folder"])
    return alive


def _entry(
    folder: Path, fitness: Callable[[Path], float], generation: int, operator: str, parents: list[str]
) -> dict[str, Any]:
    value = finite_by({str(folder): fitness(folder)}, "fitness")[str(folder)]
    return {"folder": str(folder), "fitness": value, "generation": generation, "operator": operator, "parents": parents}


def operators_table() -> str:
    """Return all operators as text, one block each: name, parents, formula, constants and source."""
    lines = []
    for operator in OPERATORS.values():
        constants = ", ".join(f"{name} {value:g}" for name, value in asdict(operator.constants).items())
        parents = counted(operator.num_parents, "parent")
        lines += [f"{operator.id:12} {operator.name} ({operator.family}, {parents})", f"{'':12} {operator.formula}"]
        lines.append(f"{'':12} {f'constants: {constants}; ' if constants else ''}source: {operator.source}")
    return "\n".join(lines)


def operator_rows() -> list[dict[str, Any]]:
    """Return the content of ``operators_table`` as plain values, ready for JSON."""
    names = ("id", "name", "family", "num_parents", "formula", "source")
    return [
        {name: getattr(operator, name) for name in names} | {"constants": asdict(operator.constants)}
        for operator in OPERATORS.values()
    ]


def _check_arguments(
    operator: Operator, parents: Sequence[Path], seed: int, fitness: Sequence[float] | None, out: Path
) -> None:
    """Check the arguments before any file is read."""
    if len(parents) != operator.num_parents:
        raise UserError(f"--parents: {operator.id} takes {operator.num_parents} folder(s), {len(parents)} given")
    if fitness and len(fitness) != len(parents):
        raise UserError(f"--fitness: give one number per parent, {len(parents)} in all; {len(fitness)} given")
    if fitness and not all(map(math.isfinite, fitness)):
        raise UserError("--fitness: NaN and infinity are not valid; give a finite number")
    if not 0 <= seed < 2**63:
        raise UserError(f"--seed {seed} is out of range: give a whole number from 0 to 2^63 - 1")
    resolved = [Path(folder).resolve() for folder in parents]
    if len(set(resolved)) < len(resolved):
        raise UserError(f"--parents: {parents[0]} is given twice; a crossover needs two different adapters")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} exists already: choose a new folder")


def _check_compatible(one: Adapter, other: Adapter) -> None:
    """Refuse parents with different rank, alpha, target modules or base."""
    for name in _MUST_AGREE:
        first, second = one.config.get(name), other.config.get(name)
        if (first or None) != (second or None):
            raise UserError(
                f"--parents: {name} is {first!r} in {one.folder} and {second!r} in {other.folder}; "
                "only adapters of the same rank and alpha can be crossed"
            )
    if not same_base(one, other):
        raise UserError(
            f"--parents: {one.folder} was trained on the base {_shown_base(one)} and {other.folder} on "
            f"{_shown_base(other)}; only adapters of one base can be crossed"
        )
    differ = sorted(one.genotype.factors.keys() ^ other.genotype.factors.keys())
    if differ:
        raise UserError(
            f"--parents: only one of {one.folder} and {other.folder} adapts {differ[0]}; targets must agree"
        )
    for name, pair in one.genotype.factors.items():
        if any(x.shape != y.shape for x, y in zip(pair, other.genotype.factors[name], strict=True)):
            raise UserError(f"--parents: {name} has different shapes in {one.folder} and {other.folder}: use one base")


def _shown_base(adapter: Adapter) -> str:
    sha256 = base_sha256(adapter)
    return f"{base_name(adapter)!r}" + (f" (weights {sha256[:12]})" if sha256 else "")
