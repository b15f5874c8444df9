"""The config of a run: all sections, and how a file is read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from redqueen.config.episodes import (
    EMBEDDED,
    FILE_PREFIX,
    MatchConfig,
    ModelConfig,
    PopulationConfig,
    ProposeConfig,
    RunConfig,
    Section,
    SolveConfig,
    VerifyConfig,
)
from redqueen.config.removed import why_removed, without_removed
from redqueen.config.training import (
    ClusterConfig,
    DistillConfig,
    EvaluateConfig,
    EvolveConfig,
    LearnConfig,
    SamplerConfig,
)
from redqueen.errors import UserError, command
from redqueen.files import apply_override, read_toml

NO_SECTION = "there is no section"
MOST_SCORED = 32
"""Students scored at an evaluation, drawn again each time: a few estimate the mean of five hundred (ours)."""


def shipped(installed: str, cloned: str) -> Path:
    """Return a folder that is shipped with redqueen, by its name in an installed package and in a clone."""
    folder = Path(__file__).parents[1] / installed
    return folder if folder.is_dir() else Path(__file__).parents[3] / cloned


ORDER = ("maths", "smoke", "logic", "population", "mixture", "single", "smollm2", "smollm2-plain", "qwen-coder")
"""The presets that are listed first, in a helpful order for newcomers; the others follow by name."""


def presets() -> dict[str, Path]:
    """Return the files of the presets by name, in the order in which they are listed."""
    found = {path.stem: path for path in shipped("presets", "configs").glob("*.toml")}
    return {name: found[name] for name in (*ORDER, *sorted(found)) if name in found}


def find_config(config: Path) -> Path:
    """Return the config file for a path or a preset's name; an existing file has priority.

    Raises UserError, naming the presets, when there is neither.
    """
    if config.is_file():
        return config
    known = presets()
    if str(config) in known:
        return known[str(config)]
    if config.is_dir():
        raise UserError(f"{config} is a folder: give a TOML file, or continue a run: `{command('resume', config)}`")
    meant = did_you_mean(config.stem, list(known))
    raise UserError(
        f"no config file at {config}, and no preset of that name{meant}: the presets are {', '.join(known) or 'none'}, "
        "and `redqueen init > my.toml` writes a file of your own"
    )


def did_you_mean(word: str, known: list[str]) -> str:
    """Return " (did you mean ...?)" with the known word that is nearest, or ""."""
    near = get_close_matches(word, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""


@dataclass(frozen=True)
class Slots:
    """The slots of the bank: members first, so that they are the same in every run, then the config's additions.

    ``hall``: frozen past members, teachers' first, then students'. ``distilled``: the slot of the distilled adapter.
    Both may be empty.
    """

    members: range
    hall: range
    distilled: range

    @staticmethod
    def of(num_members: int, num_hall: int, distilled: bool) -> Slots:
        """Assign the slots one after the other."""
        start = num_members + num_hall
        return Slots(range(num_members), range(num_members, start), range(start, start + int(distilled)))

    def shard_of(self, slot: int, num_shards: int) -> int:
        """Return the shard of a slot: members, hall and distilled adapter are each dealt to ``num_shards`` in turn."""
        for whole in (self.members, self.hall, self.distilled):
            if slot in whole:
                return whole.index(slot) % num_shards
        raise IndexError(f"there is no slot {slot}")

    @property
    def num_adapters(self) -> int:
        """Adapters in the bank."""
        return self.distilled.stop


class Config(Section):
    """A whole run."""

    run: RunConfig = RunConfig()
    model: ModelConfig = ModelConfig()
    population: PopulationConfig = PopulationConfig()
    match: MatchConfig = MatchConfig()
    propose: ProposeConfig = ProposeConfig()
    verify: VerifyConfig = VerifyConfig()
    solve: SolveConfig = SolveConfig()
    learn: LearnConfig = LearnConfig()
    evolve: EvolveConfig = EvolveConfig()
    distill: DistillConfig = DistillConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    cluster: ClusterConfig = ClusterConfig()
    sampler: SamplerConfig = SamplerConfig()

    @model_validator(mode="after")
    def _sections_fit_each_other(self) -> Config:
        if self.population.single and self.match.hall_of_fame_frac > 0:
            raise ValueError("match.hall_of_fame_frac needs two roles: the single agent has no opponents, set it to 0")
        if self.cluster.num_shards > self.population.num_members:
            raise ValueError(
                f"cluster.num_shards is {self.cluster.num_shards}, and there are {self.population.num_members} members "
                "to divide: lower it"
            )
        if self.population.single and self.propose_temperature != self.solve.temperature:
            raise ValueError(
                "propose.temperature needs two roles: the learner has only one temperature per adapter, set it to 0"
            )
        if self.distill.every_steps and self.run.product != "distilled":
            raise ValueError('distill.every_steps needs run.product = "distilled": set that, or it to 0')
        if self.distill.every_steps and self.population.single:
            raise ValueError(
                "distill.every_steps needs two roles: a single agent would forget how to propose, set it to 0"
            )
        if self.sampler.kind == "vllm" and self.cluster.num_shards > 1:
            raise ValueError("sampler.kind = vllm needs cluster.num_shards 1: a shard samples where it learns")
        return self

    @property
    def propose_temperature(self) -> float:
        """The sampling temperature of proposals."""
        return self.propose.temperature or self.solve.temperature

    @property
    def num_hall_places(self) -> int:
        """Adapter slots of the hall of fame behind those of the members: teachers' first, then students'."""
        return 2 * self.match.hall_of_fame_size if self.match.hall_of_fame_frac > 0 else 0

    @property
    def archive_places(self) -> int:
        """Capacity of the archive of tasks; 0 if it is not used."""
        evolve = self.evolve
        probed = evolve.fitness == "probe"
        read = probed or self.run.product in ("probe", "distilled")
        return 4 * self.run.product_tasks if read else 0  # at most a quarter of it chooses a distilled product

    @property
    def keeps_answers(self) -> bool:
        """Whether verified answers are kept for distillation."""
        return self.run.product == "distilled"

    @property
    def students_are_clones(self) -> bool:
        """Whether all students are always one adapter: reset to the distilled one, and not trained in between."""
        is_alike = len(set(self.population.founders)) < 2 and "temperature" not in self.evolve.genes
        return self.distill.every_steps > 0 and is_alike and not self.learn.train_students

    @property
    def slots(self) -> Slots:
        """The slots of the bank."""
        return Slots.of(self.population.num_members, self.num_hall_places, self.keeps_answers)

    @property
    def num_adapters(self) -> int:
        """Adapters in the bank: the population, the hall of fame, and the distilled one."""
        return self.slots.num_adapters

    @property
    def num_scored_students(self) -> int:
        """Students that are scored at an evaluation."""
        if not self.evaluate.students:
            return 0
        return 1 if self.students_are_clones else min(self.population.num_students, MOST_SCORED)


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file or a preset by its name (None: all defaults) and apply ``section.field=value`` overrides.

    Raises UserError naming the file and field, with what is wrong and what would be right.
    """
    data = {} if path is None else read_toml(find_config(path), "config", "my.toml")
    if path is not None and {"experiment", "arm"} <= data.keys():
        remedy = f"start it with `{command('experiment', path)}`"
        raise UserError(f"{path} holds an experiment, not the config of a run: {remedy}")
    for override in overrides:
        apply_override(data, override)
    model = data.get("model")
    if isinstance(model, dict) and isinstance(base := model.get("base"), str) and base != EMBEDDED:
        whole = os.path.abspath(os.path.expanduser(base))
        data["model"] = {**model, "base": whole if os.path.exists(whole) else base}  # a run finds it from any folder
    return parse_config(data, "the defaults" if path is None else str(path))


def without_folders(plain: Any) -> Any:
    """Return plain data with each absolute path replaced by its last component, or by OWNER/NAME if it is in the hub's
    cache."""
    if isinstance(plain, Mapping):
        return {name: without_folders(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [without_folders(value) for value in plain]
    prefix = FILE_PREFIX if isinstance(plain, str) and plain.startswith(FILE_PREFIX) else ""
    whole = plain.removeprefix(prefix) if isinstance(plain, str) else ""
    if not os.path.isabs(whole):
        return plain
    cached = re.search(r"/models--([^/]+)--([^/]+)/snapshots/\w+/?$", whole)
    return prefix + ("/".join(cached.groups()) if cached else os.path.basename(os.path.normpath(whole)))


def parse_config(data: dict[str, Any], source: str) -> Config:
    """Validate plain data. Raises UserError with one line for each fault."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        faults = list(dict.fromkeys(_explain(fault, data) for fault in error.errors()[:20]))
        if any(fault.startswith(NO_SECTION) for fault in faults):
            faults.append(f"the sections are {', '.join(Config.model_fields)}")
        raise UserError(f"{source}: {'; '.join(faults)}") from None


def parse_recorded(data: dict[str, Any], source: str, to_resume: bool = False) -> Config:
    """Validate the config that an earlier run recorded, without the fields that have since been removed.

    Raises UserError as ``parse_config`` does, and, with ``to_resume``, when a removed field had an effect on the run.
    """
    kept, effects = without_removed(data) if isinstance(data, dict) else (data, [])
    if to_resume and effects:
        raise UserError(
            f"{source} sets fields that this version of redqueen no longer has, {'; '.join(effects)}: resume the run "
            "with the version that began it, or begin a new run"
        )
    return parse_config(kept, source)


def _explain(fault: Any, data: Any) -> str:
    """Return a clause on what is wrong with a field of ``data`` and what would be right."""
    place = ".".join(f"{p:.100}" if isinstance(p, str) else str(p) for p in fault["loc"])
    if removed := why_removed(".".join(str(p) for p in fault["loc"][:2])):
        return removed
    if fault["type"] == "extra_forbidden":
        section = Config.model_fields.get(str(fault["loc"][0]))
        if len(fault["loc"]) == 1 or section is None:
            meant = did_you_mean(place, list(Config.model_fields))
            return f"{NO_SECTION} {place}{meant}"
        known = section.annotation.model_fields if section.annotation else {}
        meant = did_you_mean(str(fault["loc"][1]), list(known))
        return f"there is no field {place}{meant}; {fault['loc'][0]} has {', '.join(known)}"
    if fault["type"] == "value_error":
        return f"{place}: ".removeprefix(": ") + fault["msg"].removeprefix("Value error, ")
    if len(fault["loc"]) < 2:
        return f"{place or 'the config'} must be a table of fields (got {fault['input']!r:.200})"
    section_name, name = str(fault["loc"][0]), str(fault["loc"][1])
    model: Any = Config.model_fields[section_name].annotation
    schema = model.model_json_schema()["properties"][name]
    return f"{section_name}.{name} must be {_meaning(schema)} (got {data[section_name].get(name)!r:.200})"


_TYPES = {"integer": "a whole number", "number": "a finite number", "boolean": "true or false", "string": "a text"}
_BOUNDS = {
    "minimum": " of at least {}",
    "exclusiveMinimum": " above {}",
    "maximum": " and at most {}",
    "exclusiveMaximum": " and below {}",
    "maxLength": " of at most {} characters",
    "pattern": " that matches {}",
}


def _meaning(schema: dict[str, Any]) -> str:
    """Return in words which values the JSON schema of a field allows."""
    if "anyOf" in schema:
        return ", or ".join(map(_meaning, schema["anyOf"]))
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "array":
        least = f" of at least {schema['minItems']}" if "minItems" in schema else ""
        return f"a list{least} in which each entry is {_meaning(schema['items'])}"
    if schema["type"] == "object":
        return f"a table in which each value is {_meaning(schema['additionalProperties'])}"
    return _TYPES[schema["type"]] + "".join(text.format(schema[k]) for k, text in _BOUNDS.items() if k in schema)
