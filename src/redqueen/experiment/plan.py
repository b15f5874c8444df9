"""The experiment file: arms times seeds, each with its config, and what is equal between arms.

    [experiment]
    name = "first-look"
    base = "../configs/population.toml"     # a config, relative to this file; without it the defaults
    steps = 100
    seeds = [0, 1]
    match = "per_adapter"                   # or "tokens"
    reference = "4T+4S"                     # the arm that others are compared with, and matched to
    set = {"propose.num_of_each_kind" = 4}        # for all arms

    [[arm]]
    name = "4T+4S"

    [[arm]]
    name = "single"
    base = "../configs/single.toml"         # instead of the experiment's
    set = {"learn.learning_rate" = 1e-3}    # in addition to the experiment's, and before them
    seeds = [0]                             # instead of the experiment's
    match = "tokens"                        # instead of the experiment's

``per_adapter``: all run ``steps`` steps, with the same work for every adapter (as in the paper). ``tokens``: the
reference runs ``steps`` steps, and a matched run of the same seed runs until it has sampled as many tokens, but at most
``max_steps``. If its learning rate decays, it must set the last step of the decay (``learn.decay_to_step``).

With ``tokens_per_text`` and ``tokens_per_gpu_second`` (sampled and learned from) ``--dry-run`` estimates the price in
GPU hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from redqueen.config import Config, LearnConfig, load_config
from redqueen.config.load import presets, shipped
from redqueen.domains.registry import texts_of_a_step
from redqueen.errors import UserError, command
from redqueen.files import as_toml, read_toml

Match = Literal["per_adapter", "tokens"]
Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^\w[\w .+-]*$")]
Seed = Annotated[int, Field(ge=0, lt=2**31)]

MAX_STEPS_FACTOR = 20
"""A matched run whose steps are cheap ends after this many times ``steps``, unless ``max_steps`` is set."""

SET_BY_EXPERIMENT = {
    "run.name": "the experiment names its runs itself",
    "run.rng_seed": "list the seeds in experiment.seeds",
    "run.num_steps": "use experiment.steps",
    "run.max_tokens": 'use match = "tokens"',
}
"""Fields that the experiment sets in every run, and what to write instead."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Header(_Table):
    name: Name
    steps: int = Field(ge=1)
    seeds: tuple[Seed, ...] = Field(min_length=1)
    match: Match = "per_adapter"
    base: str = ""
    reference: str = ""
    max_steps: int = Field(default=0, ge=0)
    tokens_per_text: float = Field(default=0.0, ge=0)
    tokens_per_gpu_second: float = Field(default=0.0, ge=0)
    set: dict[str, Any] = Field(default_factory=dict)


class _Arm(_Table):
    name: Name
    base: str = ""
    match: Match | None = None
    seeds: tuple[Seed, ...] | None = Field(default=None, min_length=1)
    set: dict[str, Any] = Field(default_factory=dict)


class _File(_Table):
    experiment: _Header
    arm: tuple[_Arm, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Planned:
    """One run. ``config`` is complete except for the limit of a matched run, which its reference run determines."""

    arm: str
    seed: int
    match: Match
    config: Config

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        return f"{self.arm}-seed{self.seed}"


@dataclass(frozen=True)
class Experiment:
    """The plan of an experiment. ``runs`` are in order: seed by seed, with the reference first for each seed."""

    name: str
    steps: int
    reference: str
    arms: tuple[str, ...]
    runs: tuple[Planned, ...]
    gpu_hours_per_text: float = 0.0

    def gpu_hours(self, run: Planned) -> float:
        """Return the price of a run of ``steps`` steps in GPU hours, if every proposal is valid; 0 if unknown."""
        return self.gpu_hours_per_text * self.steps * sum(texts_of_a_step(run.config))

    def reference_of(self, run: Planned) -> Planned | None:
        """Return the run that determines this one's limit, or None if it has no limit."""
        if run.match == "per_adapter" or run.arm == self.reference:
            return None
        return next(r for r in self.runs if (r.arm, r.seed) == (self.reference, run.seed))


def load_experiment(path: Path) -> Experiment:
    """Read an experiment file, or a shipped one by its name, and every config that it names.

    Raises UserError naming the file, the arm and the field, with what is wrong and what would be right.
    """
    if not path.is_file() and (named := shipped("experiments", "experiments") / f"{path}.toml").is_file():
        path = named
    data = read_toml(path, "experiment", "experiments/smoke.toml")
    if "experiment" not in data and data.keys() & Config.model_fields.keys():
        raise UserError(
            f"{path} holds the config of one run, not an experiment: start it with `{command('train', path)}`; an "
            "experiment names it as its base, next to the tables [experiment] and [[arm]]"
        )
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{path}: {'; '.join(_explain(fault) for fault in error.errors())}") from None
    header, names = file.experiment, [arm.name for arm in file.arm]
    reference = header.reference or names[0]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise UserError(f"{path}: two arms are called {double!r}: give each [[arm]] a name of its own")
    if reference not in names:
        raise UserError(
            f"{path}: experiment.reference is {reference!r}, which is not an arm; the arms are {', '.join(names)}"
        )
    runs = [run for arm in file.arm for run in _runs(path, header, arm, reference)]
    referred = {run.seed for run in runs if run.arm == reference}
    for run in runs:
        if run.match != "per_adapter" and run.seed not in referred:
            raise UserError(
                f"{path}: arm {run.arm!r} is matched by {run.match} and has seed {run.seed}, which the reference "
                f"{reference!r} does not have: give both the same seeds"
            )
    order = {seed: at for at, seed in enumerate(dict.fromkeys(run.seed for run in runs))}
    runs.sort(key=lambda run: (order[run.seed], run.arm != reference))
    hours = header.tokens_per_text / (header.tokens_per_gpu_second or float("inf")) / 3600
    return Experiment(header.name, header.steps, reference, tuple(names), tuple(runs), hours)


def _runs(path: Path, header: _Header, arm: _Arm, reference: str) -> list[Planned]:
    settings = _flat(path, header.set) | _flat(path, arm.set)
    match: Match = "per_adapter" if arm.name == reference else arm.match or header.match
    base = arm.base or header.base
    most_steps = header.steps
    if match != "per_adapter":
        most_steps = header.max_steps or MAX_STEPS_FACTOR * header.steps
    runs = []
    for seed in dict.fromkeys(arm.seeds or header.seeds):
        own = {"run.name": f"{arm.name} seed {seed}", "run.rng_seed": seed, "run.num_steps": most_steps}
        overrides = [f"{name}={as_toml(value)}" for name, value in (settings | own).items()]
        try:
            config = load_config(presets().get(base, path.parent / base) if base else None, overrides)
        except UserError as error:
            raise UserError(f"{path}, arm {arm.name!r}: {error}") from None
        if match != "per_adapter" and _falls_to_the_last_step(config.learn):
            raise UserError(
                f"{path}: arm {arm.name!r} ends by {match}, at a step not known in advance: set learn.decay_to_step, "
                f"the last step of its learning rate's decay (the reference's is {header.steps}); "
                f"otherwise the rate decays over the {most_steps} steps that the arm may take at most"
            )
        runs.append(Planned(arm.name, seed, match, config))
    return runs


def _falls_to_the_last_step(learn: LearnConfig) -> bool:
    learns = learn.train_teachers or learn.train_students
    return learns and learn.decay != "constant" and not learn.decay_to_step


def _flat(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by ``section.field``, also from sections written as tables. Raises UserError for fields that the
    experiment sets itself."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and "." not in name:
            flat |= {f"{name}.{field}": item for field, item in value.items()}
        else:
            flat[name] = value
    for name in flat:
        if name in SET_BY_EXPERIMENT:
            raise UserError(f"{path}: set names {name}, which a file may not set: {SET_BY_EXPERIMENT[name]}")
    return flat


def _explain(fault: Any) -> str:
    place = [str(part) for part in fault["loc"]]
    if place[:1] == ["arm"] and len(place) > 1 and place[1].isdigit():
        place[:2] = [f"arm {int(place[1]) + 1}"]
    where = ".".join(place)
    if fault["type"] == "missing" and where in ("experiment", "arm"):
        return "it has no [experiment] table" if where == "experiment" else "it has no arm: add [[arm]] tables"
    if fault["type"] == "missing":
        return f"{where} is missing"
    if fault["type"] == "extra_forbidden":
        known = _File if len(place) == 1 else _Header if place[0] == "experiment" else _Arm
        return f"there is no field {where}; known are {', '.join(known.model_fields)}"
    message = fault["msg"]
    return f"{where}: {message[0].lower()}{message[1:]} (got {fault['input']!r})"
