"""A config fitted to its base: fields that the user did not set get values for the base's size and prompt format.

The defaults of the config's sections are for the paper's seven billion parameters on GPUs. Values that a file or the
command line sets are kept, except a file's numbers for kinds that are not in the domains set on the command line. A
run's config.json has every field, so resuming a run changes nothing. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redqueen.adapters.base_shape import base_shape, has_chat_template, is_embedded_copy
from redqueen.config import EMBEDDED, Config, parse_config
from redqueen.domains.registry import kinds, num_proposals, written_kinds

CHAT_PARAMETERS = 1_000_000_000
"""Smaller models get few-shot prompts even if they are chat models: of 48 proposals of a model with 135 million
parameters, none was valid in the chat format and half were in the few-shot format (measured)."""

Defaults = Mapping[str, Mapping[str, Any]]

EMBEDDED_DEFAULTS: Defaults = {
    "population": {"lora_rank": 8, "lora_alpha": 16.0},
    "propose": {"num_references": 2, "num_per_prompt": 2, "max_new_tokens": 224},
    "solve": {"max_new_tokens": 320},
    "verify": {"num_inputs": 8},
    "learn": {"learning_rate": 2e-3},
}
"""The values of ``configs/population.toml``."""

BY_PARAMETERS: tuple[tuple[float, Defaults], ...] = (
    (
        4e8,
        {
            "population": {"lora_rank": 16, "lora_alpha": 32.0},
            "solve": {"max_rows": 64},
            "learn": {"learning_rate": 3e-4, "micro_batch_tokens": 2048},
        },
    ),
    (
        3e9,
        {
            "population": {"lora_rank": 16, "lora_alpha": 32.0},
            "solve": {"max_rows": 128},
            "learn": {"learning_rate": 1e-4, "micro_batch_tokens": 8192, "gradient_checkpointing": True},
        },
    ),
    (
        float("inf"),
        {
            "solve": {"max_rows": 256},
            "learn": {"learning_rate": 2e-5, "micro_batch_tokens": 16384, "gradient_checkpointing": True},
        },
    ),
)
"""Up to so many parameters: LoRA scale and learning rate (small models tolerate more), and sizes for usual machines."""

SMALL_ON_A_GPU: Defaults = {"solve": {"max_rows": 512}}
"""For the smallest bases without the chat format: decoding 342 short answers at a time took half as long as 128 at a
time (bench/results/one_gpu.md)."""

BY_FORMAT: Mapping[str, Defaults] = {
    "fewshot": {
        "propose": {"num_references": 4, "max_new_tokens": 160, "max_prompt_tokens": 1024},
        "solve": {"max_new_tokens": 96, "max_prompt_tokens": 1024},
    },
    **{
        name: {key: {"max_new_tokens": 2048, "max_prompt_tokens": 4096} for key in ("propose", "solve")}
        for name in ("chat", "plain", "r1")
    },
}
"""Lengths by prompt format: few-shot texts are short; the other formats think first."""

SMALL_TEMPERATURE = 0.7
"""For models below ``CHAT_PARAMETERS`` in the few-shot format: 30 of 64 proposals were valid, but only 4 at 1.0."""


@dataclass(frozen=True)
class Fitted:
    """A fitted config, with sentences on each choice and its reason, and on settings without effect."""

    config: Config
    reasons: tuple[str, ...]


def fit_to_base(config: Config, overrides: Iterable[str] = ()) -> Fitted:
    """Return the config with all fields that depend on the base and were not set chosen to suit it.

    ``overrides``: the user's ``section.field=value``, see ``_with_own_kinds``. Raises UserError when the base does not
    exist or cannot be read.
    """
    config, left_out = _with_own_kinds(config, overrides)
    name = config.model.base
    copy = is_embedded_copy(name)  # such as a merged product
    if name == EMBEDDED or copy:
        changed = {name for name in config.model_fields_set if getattr(config, name).model_fields_set}
        wanted: list[Defaults] = [] if changed - {"run", "model"} else [EMBEDDED_DEFAULTS]
        chosen, size, reasons = str(config.model.prompt_format), "", []
        if copy and chosen == "auto":
            chosen, reasons = "compact", ["prompt format compact: the base has the embedded base's vocabulary"]
        if not wanted and not config.solve.model_fields_set & {"max_new_tokens"}:
            reasons.append(
                "fields that are not set have the paper's values, which suit bases of billions: begin with a config "
                "for the embedded base (smoke, population, maths) and change that"
            )
    else:
        parameters = _num_parameters(name)
        size = f"{parameters / 1e6:,.0f} million parameters" if parameters else "not on this machine yet"
        chosen, why = _choose_format(config, parameters)
        reasons = [why]
        by_size = next(defaults for most, defaults in BY_PARAMETERS if (parameters or 7e9) <= most)
        wanted = [by_size, BY_FORMAT.get(chosen, {}), _temperature(config, chosen, parameters)]
        # In the chat format texts are long, and the cache of so many rows would be large.
        if by_size is BY_PARAMETERS[0][1] and chosen != "chat" and _is_on_a_gpu(config):
            wanted.insert(0, SMALL_ON_A_GPU)  # earlier entries have priority
        if config.slots.distilled:
            wanted.append({"distill": {"learning_rate": by_size["learn"]["learning_rate"]}})
        if "lora_rank" in config.population.model_fields_set:
            wanted.insert(0, {"population": {"lora_alpha": 2.0 * config.population.lora_rank}})  # the paper's scale
    data = config.model_dump(mode="json", exclude_unset=True)
    if chosen != config.model.prompt_format:
        data.setdefault("model", {})["prompt_format"] = chosen
    filled = [line for defaults in wanted for line in _fill(data, defaults)]
    if filled:
        reasons.append(f"left open and fitted to the base ({size or name}): {', '.join(filled)}")
    fitted = parse_config(data, "the config fitted to its base")
    return Fitted(fitted, (*left_out, *reasons, *_idle(fitted)))


def _with_own_kinds(config: Config, overrides: Iterable[str]) -> tuple[Config, list[str]]:
    """Drop a file's numbers for kinds that are not in the domains of ``overrides``; also return a sentence on this."""
    asked, numbers = {text.partition("=")[0].strip() for text in overrides}, config.propose.num_proposals
    if "propose.num_proposals" in asked or not any(f"{name}.".startswith("propose.domains.") for name in asked):
        return config, []
    own = {kind for listed in written_kinds(config.propose).values() for kind in listed}
    own |= {name.rpartition(".")[2].removeprefix("num_") for name in asked}
    kept = {kind: number for kind, number in numbers.items() if kind in own}
    if kept == numbers:
        return config, []
    propose = config.propose.model_copy(update={"num_proposals": kept})
    return config.model_copy(update={"propose": propose}), [
        f"propose.num_proposals: left out {', '.join(sorted(numbers.keys() - own))}, not kinds of "
        f"{', '.join(propose.domains)}; a kind without a number has {propose.num_of_each_kind} proposals of a teacher "
        "a step (propose.num_of_each_kind)"
    ]


def _idle(config: Config) -> list[str]:
    """Return sentences on settings without effect in this run, as when a preset is tried for a few steps."""
    learn, num_steps, found = config.learn, config.run.num_steps, []
    if learn.decay != "constant" and learn.decay_from_step >= num_steps:
        found.append(
            f"learn.decay = {learn.decay} does nothing here: the rate falls after step {learn.decay_from_step} "
            f"(learn.decay_from_step), and the run ends with step {num_steps}"
        )
    if learn.train_students and config.solve.num_attempts == 1 and learn.estimator != "trr_pp":
        found.append(
            "with solve.num_attempts = 1 students learn nothing: learn.estimator = "
            f"{learn.estimator} compares attempts at the same task; set it to 2 or more, or take trr_pp"
        )
    return found


def _is_on_a_gpu(config: Config) -> bool:
    from redqueen.adapters.base import device_type  # imports torch, which a plan does not need

    return device_type(config.run.device) == "cuda"


def _fill(data: dict[str, Any], defaults: Defaults) -> list[str]:
    """Set the fields that ``data``, a config, does not set; return ``section.field = value`` for each."""
    filled = []
    for section, values in defaults.items():
        for field, value in values.items():
            if field not in data.get(section, {}):
                data.setdefault(section, {})[field] = value
                filled.append(f"{section}.{field} = {value}")
    return filled


def _choose_format(config: Config, parameters: int | None) -> tuple[str, str]:
    """Return the prompt format and the sentence that gives the reason."""
    asked = config.model.prompt_format
    if asked != "auto":
        return asked, f"prompt format {asked}, as the config sets"
    without = [name for name in num_proposals(config.propose) if "fewshot" not in kinds()[name].words]
    if without:
        return "chat", f"prompt format chat: tasks of the kind {without[0]} have no prompts as examples"
    if parameters is None:
        return "chat", "prompt format chat: the base is not on this machine yet, so its size is not known"
    if parameters < CHAT_PARAMETERS:
        return "fewshot", (
            f"prompt format fewshot: a base of {parameters / 1e6:,.0f} million parameters continues examples better "
            "than it follows rules"
        )
    if not has_chat_template(config.model.base):
        return "fewshot", "prompt format fewshot: the base has no chat template, so it was not trained to chat"
    return "chat", "prompt format chat: the base has a chat template"


def _temperature(config: Config, prompt_format: str, parameters: int | None) -> Defaults:
    """Return the temperature for a small base, unless it is set."""
    small = parameters is not None and parameters < CHAT_PARAMETERS and prompt_format == "fewshot"
    if not small or "temperature" in config.solve.model_fields_set:
        return {}
    return {"solve": {"temperature": SMALL_TEMPERATURE}}


def _num_parameters(name: str) -> int | None:
    """Return how many parameters the base has, None when its shape is not on this machine."""
    shape = base_shape(name)
    if shape is None:
        return None
    from redqueen.adapters.memory import num_parameters  # imports torch

    return num_parameters(shape)
