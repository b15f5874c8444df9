"""The plan of a run, made without loading a model, and the checks that a run makes before its first step."""

from __future__ import annotations

import json

from redqueen.adapters.base_shape import base_shape, positions_of, pretrained
from redqueen.config import Config
from redqueen.display import counted
from redqueen.domains.registry import texts_of_a_step
from redqueen.fitting import Fitted
from redqueen.run.trackers import require_tracker
from redqueen.verifying import open_sandbox


def plan_text(fitted: Fitted) -> str:
    """Return the plan as text. Raises UserError when the base is a folder that is not there."""
    config = fitted.config
    reasons = [f"# {reason}" for reason in fitted.reasons]
    memory = [f"# {line}" for line in memory_lines(config)]
    return "\n".join([*_resolved(config), "", *reasons, *_work(config), "", *memory, *_servers(config)])


def refuse_what_cannot_start(config: Config) -> None:
    """Raise UserError for whatever would stop a run before step 1, as far as the base is on this machine."""
    from redqueen.domains.prompt_format import choose_format
    from redqueen.propose.filters import load_content_filter

    if config.evolve.model_fields_set & {"constants", "operators", "fitness"}:
        from redqueen.evolve.generation import check_rules  # imports torch

        check_rules(config)
    choose_format(config)
    load_content_filter(config.propose)
    require_tracker(config)
    shape = base_shape(config.model.base)
    if shape is None:
        pretrained(config.model.base)
        return
    from redqueen.adapters.memory import fit_limits, fresh_adapter, refuse_what_cannot_fit  # imports torch
    from redqueen.adapters.peft import founder_like
    from redqueen.engine import choose_device, load_tokenizer
    from redqueen.run.cold_start import check_prompts, founders_of, own_tasks

    refuse_what_cannot_fit(config, choose_device(config.run.device))
    check_prompts(config, load_tokenizer(config.model.base), fit_limits(config, positions_of(shape)))
    own_tasks(config)
    for founder in founders_of(config):
        founder_like(founder, fresh_adapter(config, shape))
    if config.cluster.verify != "shard":  # shards may be on other machines
        open_sandbox(config, num_workers=1).close()


def _resolved(config: Config) -> list[str]:
    lines = ["# resolved config"]
    for section, values in config.model_dump(mode="json").items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return lines


def _work(config: Config) -> list[str]:
    """Return lines on the number of generations and on the maximum work of a step."""
    propose, solve, population = config.propose, config.solve, config.population
    proposals, attempts = texts_of_a_step(config)
    each = proposals // population.num_teachers
    tokens = proposals * propose.max_new_tokens + attempts * solve.max_new_tokens
    evolves = config.evolve.enabled and not population.single  # a single member is replaced only when it is broken
    births = (config.run.num_steps - 1) // config.evolve.every_steps if evolves else 0
    return [
        f"# {config.population.arm}: {counted(config.run.num_steps, 'step')}, {counted(births, 'generation')}",
        f"# a step: {counted(proposals, 'proposal')} ({each} a teacher), at most {counted(attempts, 'attempt')}",
        f"# a step: at most {tokens:,} new tokens if every text ran to its limit",
        f"# temperature: proposals {config.propose_temperature:g}, attempts {solve.temperature:g}",
    ]


def _servers(config: Config) -> list[str]:
    """Return lines on how to start the sampling servers, if the run uses any."""
    if config.sampler.kind != "vllm":
        return []
    from redqueen.remote.server import serve_command  # imports torch

    shape = base_shape(config.model.base)
    positions = None if shape is None else positions_of(shape)
    return [
        "",
        f"# sampling is done by vLLM at {', '.join(config.sampler.urls)}; there start, before the run:",
        f"# {serve_command(config, positions)}",
    ]


def memory_lines(config: Config, parts: bool = True) -> list[str]:
    """Return lines on the memory that is needed and free, if the base's shape can be read without a download."""
    shape = base_shape(config.model.base)
    if shape is None:
        return [f"memory: unknown until {config.model.base} is fetched, when the run starts"]
    from redqueen.adapters.memory import plan_memory  # imports torch

    return [f"memory, {line}" for line in plan_memory(config, shape, parts)]
