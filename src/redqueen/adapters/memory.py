"""The memory that a population needs, estimated before anything is loaded; a config that cannot fit is refused.

Weights, factors, moments and the key-value cache are counted exactly from the model's shape. Activations are counted
from the tensors that a decoder layer keeps for its backward pass (attention and MLP inputs and outputs, norms in fp32,
and on a CPU the attention's weights, taken for prompts of the greatest length), which holds within about a third. While
there is enough, the allocator keeps freed memory (``give_back_if_scarce``): ``MemoryPlan.held_bytes``. Source: ours.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from redqueen.adapters.attention import kv_shape
from redqueen.adapters.bank import find_targets
from redqueen.adapters.base import device_type, settle_precision
from redqueen.adapters.base_shape import base_shape, positions_of
from redqueen.adapters.fused_decode import is_known, side_by_side_weights
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.tree_attention import MOST_SCORES
from redqueen.config import Config
from redqueen.display import size
from redqueen.errors import UserError, first_line

GROUPS_KEPT = 2
"""Prompts that are kept while texts are written, for each whole group that fits the rows: a new group need not
wait for the last text of an old one (ours)."""


@dataclass(frozen=True)
class TextLimits:
    """Longest prompts and completions, in tokens, of teachers (propose) and students (solve), and of both together."""

    propose_prompt_tokens: int
    propose_new_tokens: int
    solve_prompt_tokens: int
    solve_new_tokens: int
    max_positions: int

    @property
    def planned_prompt_tokens(self) -> int:
        """Tokens of a prompt as memory is planned for it: as long as it may be, at most 1024."""
        return min(1024, max(self.propose_prompt_tokens, self.solve_prompt_tokens))

    @property
    def longest(self) -> int:
        """Tokens of the longest text: a prompt and its completion."""
        return max(
            self.propose_prompt_tokens + self.propose_new_tokens, self.solve_prompt_tokens + self.solve_new_tokens
        )


def prompt_cache_tokens(config: Config, limits: TextLimits) -> int:
    """Return how many tokens of prompts are kept at a time while texts are written: ``GROUPS_KEPT`` times the prompts
    of whole groups that fill all rows, as long as they are planned. Of longer ones fewer are kept, and fewer rows run.
    """
    groups = (config.propose.num_per_prompt, config.solve.num_attempts)
    return GROUPS_KEPT * -(-config.solve.max_rows // min(groups)) * limits.planned_prompt_tokens


def fit_limits(config: Config, max_positions: int) -> TextLimits:
    """Return the limits: a completion gets at most half of the positions, a prompt at most what is left (ours)."""
    propose_new = min(config.propose.max_new_tokens, max_positions // 2)
    solve_new = min(config.solve.max_new_tokens, max_positions // 2)
    return TextLimits(
        propose_prompt_tokens=min(config.propose.max_prompt_tokens, max_positions - propose_new),
        propose_new_tokens=propose_new,
        solve_prompt_tokens=min(config.solve.max_prompt_tokens, max_positions - solve_new),
        solve_new_tokens=solve_new,
        max_positions=max_positions,
    )


TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Parameters of glibc's ``mallopt``, as its malloc.h numbers them."""

SMALLER_THAN = 64 * 2**20
"""Blocks below this, in bytes, come from the heap; larger ones have pages of their own (ours)."""

KEPT = 2**31 - 1
"""How much of the heap may be free at its end before it shrinks, in bytes: the largest value that ``mallopt`` takes."""


_library: ctypes.CDLL | None = None
"""The C library whose allocator is set to keep freed memory."""


def keep_freed_memory() -> bool:
    """Let this process keep the blocks below ``SMALLER_THAN`` that it frees; return whether the C library took it.

    All threads share one heap, for those of other threads are too small for tensors. Nothing is done where the
    environment has settings of its own (``MALLOC_...`` or ``GLIBC_TUNABLES``) or the library is not glibc.
    """
    global _library
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  others have a mallopt that numbers its parameters differently
        mallopt = library.mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of the process itself
        return False
    settings = {MMAP_THRESHOLD: SMALLER_THAN, TRIM_THRESHOLD: KEPT, ARENA_MAX: 1}
    kept = all([mallopt(parameter, value) == 1 for parameter, value in settings.items()])
    _library = library if kept else None
    return kept


def give_back_if_scarce(free_bytes: int) -> bool:
    """Give the kernel what is kept if this process holds more than ``free_bytes``, what the machine has free.

    To be called where few tensors are alive: what is kept is then most of what the process holds, and the next tensors
    may take as much again where they do not fit into it. Returns whether it was given back.
    """
    if _library is None or _held_bytes() <= free_bytes:
        return False
    _library.malloc_trim(0)
    return True


def _held_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


FP32_BYTES = 4

LIBRARIES_BYTES = 4 * 10**8
"""Memory of the interpreter with torch and transformers, before a base is loaded, on a CPU (measured)."""


def logits_at_once(vocabulary: int, on_cuda: bool, most_tokens: int = 4096) -> int:
    """Return of how many tokens the learner makes logits at a time, on a CPU at most 64 MB of them: larger tensors are
    not kept by the allocator, and no product becomes faster (ours)."""
    return most_tokens if on_cuda else max(1, min(most_tokens, SMALLER_THAN // (FP32_BYTES * vocabulary)))


@dataclass(frozen=True)
class Work:
    """The sizes that memory depends on.

    ``sample_rows`` sequences are decoded at a time (0: another process does), each up to ``new_tokens`` long, behind
    ``prompt_cache_tokens`` of prompts in all, of at most ``prompt_tokens`` each; the learner runs
    ``micro_batch_tokens`` at a time and holds the gradients of ``num_learning`` members (0: all) in each of
    ``num_lanes``, among which rows and tokens are divided.
    """

    num_members: int
    lora_rank: int
    lora_targets: str | Sequence[str]
    bf16: bool
    on_cuda: bool
    sample_rows: int
    prompt_tokens: int
    prompt_cache_tokens: int
    new_tokens: int
    micro_batch_tokens: int
    checkpointing: bool = False
    num_learning: int = 0
    num_lanes: int = 1


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by what they hold. Sampling and learning take turns: ``cache`` and the learner's parts are not added up."""

    base_bytes: int
    factors_bytes: int
    moments_bytes: int
    gradients_bytes: int
    activations_bytes: int
    cache_bytes: int
    libraries_bytes: int

    @property
    def resident_bytes(self) -> int:
        """What is held all the time: libraries, weights, factors and moments."""
        return self.libraries_bytes + self.base_bytes + self.factors_bytes + self.moments_bytes

    @property
    def peak_bytes(self) -> int:
        """What is held at once at worst: what is resident, with either the learner's parts or the cache."""
        return self.resident_bytes + max(self.gradients_bytes + self.activations_bytes, self.cache_bytes)

    @property
    def held_bytes(self) -> int:
        """What a process on a CPU comes to hold where memory is not scarce: what sampling frees is kept, in pieces that
        learning can seldom use."""
        return self.resident_bytes + self.gradients_bytes + self.activations_bytes + self.cache_bytes

    def lines(self) -> list[str]:
        """Return one line for each part, one for the peak, and on a CPU one for what is held."""
        named = {f.name.removesuffix("_bytes"): getattr(self, f.name) for f in fields(self)}
        lines = [*(f"{name}: {size(part)}" for name, part in named.items()), f"peak: {size(self.peak_bytes)}"]
        if self.libraries_bytes:
            lines.append(f"held where memory is not scarce: up to {size(self.held_bytes)}")
        return lines


def plan(shape: dict[str, Any], work: Work) -> MemoryPlan:
    """Return the plan for a model of ``shape`` (the contents of its config.json). No weights are made.

    Raises UserError when the shape is of no known causal language model or the targets name none of its layers.
    """
    model, config = _skeleton(shape)
    targets = find_targets(model, work.lora_targets)
    per_member = sum(work.lora_rank * (m.in_features + m.out_features) for m in targets.values())
    compute_bytes = 2 if work.bf16 else FP32_BYTES
    base = 0
    head = model.get_output_embeddings()
    linears = {id(p) for m in model.modules() if isinstance(m, nn.Linear) and m is not head for p in m.parameters()}
    for parameter in model.parameters():
        small = work.bf16 and (work.on_cuda or id(parameter) in linears)
        base += parameter.numel() * (2 if small else FP32_BYTES)
    if work.bf16 and not work.on_cuda:
        base += head.weight.numel() * 2  # the rounded copy that gradients take
    if work.sample_rows and not work.on_cuda and is_known(config):
        base += side_by_side_weights(model) * compute_bytes
    gathered = work.num_learning or work.num_members
    kv_heads, head_dim = kv_shape(config)
    per_token = 2 * config.num_hidden_layers * kv_heads * head_dim * compute_bytes
    cache = per_token * (work.prompt_cache_tokens * (work.sample_rows > 0) + work.sample_rows * work.new_tokens)
    cache += work.sample_rows * work.new_tokens * 20  # tokens, log-probabilities, entropies and noise
    cache += work.sample_rows * int(config.vocab_size) * FP32_BYTES * 4  # logits, probabilities and their sums
    activations = work.micro_batch_tokens * _activation_bytes_per_token(config, work, compute_bytes)
    chunk = min(logits_at_once(int(config.vocab_size), work.on_cuda) * work.num_lanes, work.micro_batch_tokens)
    activations += chunk * int(config.vocab_size) * FP32_BYTES * 3
    # The factors in compute dtype and their gradients.
    activations += work.num_lanes * gathered * per_member * compute_bytes * 2
    return MemoryPlan(
        base_bytes=base,
        factors_bytes=work.num_members * per_member * FP32_BYTES,
        moments_bytes=2 * work.num_members * per_member * FP32_BYTES,
        gradients_bytes=work.num_lanes * gathered * per_member * FP32_BYTES,
        activations_bytes=activations,
        cache_bytes=cache,
        libraries_bytes=0 if work.on_cuda else LIBRARIES_BYTES,
    )


def num_parameters(shape: dict[str, Any]) -> int:
    """Return how many weights a model of ``shape`` has, tied ones once. No weights are made."""
    model, _ = _skeleton(shape)
    return sum(parameter.numel() for parameter in model.parameters())


def refuse_if_too_large(memory: MemoryPlan, available_bytes: int, where: str) -> None:
    """Raise UserError, with what to lower, when ``memory`` does not fit into ``available_bytes`` of ``where``."""
    if memory.peak_bytes <= available_bytes:
        return
    if memory.resident_bytes > available_bytes:
        remedy = "lower population.lora_rank or the number of members, or take a smaller base"
    elif memory.cache_bytes > memory.gradients_bytes + memory.activations_bytes:
        remedy = "lower solve.max_rows or max_new_tokens"
    else:
        remedy = "lower learn.micro_batch_tokens or set learn.gradient_checkpointing = true"
    raise UserError(f"the run needs {size(memory.peak_bytes)} and {where} has {size(available_bytes)} free: {remedy}")


def available_bytes(device: torch.device) -> int:
    """Return the memory that is free for a run on ``device``: of the GPU, or of the machine and its control group."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    with open("/proc/meminfo") as file:
        values = dict(line.split(":", 1) for line in file)
    free = int(values["MemAvailable"].split()[0]) * 1024
    group = Path("/sys/fs/cgroup")
    if (group / "memory.max").is_file() and (limit := (group / "memory.max").read_text().strip()) != "max":
        cached = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())["file"]
        free = min(free, int(limit) - int((group / "memory.current").read_text()) + int(cached))
    return free


def work_of(config: Config, shape: dict[str, Any]) -> Work:
    """Return the sizes of a configured run. Prompts are taken as long as they may be, at most 1024 tokens."""
    on_cuda = device_type(config.run.device) == "cuda"
    limits = fit_limits(config, positions_of(shape))
    population, solve, learn = config.population, config.solve, config.learn
    return Work(
        num_members=config.num_adapters,
        lora_rank=population.lora_rank,
        lora_targets=population.lora_targets,
        bf16=settle_precision(config).model.precision == "bf16",
        on_cuda=on_cuda,
        sample_rows=0 if config.sampler.kind == "vllm" else solve.max_rows,
        prompt_tokens=limits.planned_prompt_tokens,
        prompt_cache_tokens=prompt_cache_tokens(config, limits),
        new_tokens=max(limits.propose_new_tokens, limits.solve_new_tokens),
        micro_batch_tokens=learn.micro_batch_tokens,
        checkpointing=learn.gradient_checkpointing,
        num_learning=_num_learning(config),
        num_lanes=1 if on_cuda else config.run.num_lanes,
    )


def _num_learning(config: Config) -> int:
    """Members that learn in a step, at most: the teachers, each with a student, or with all."""
    population = config.population
    if population.single or config.match.rule == "all_pairs":
        return population.num_members
    return population.num_teachers + min(population.num_teachers, population.num_students)


def plan_memory(config: Config, shape: dict[str, Any]) -> list[str]:
    """Return the lines of the plan for a configured run on a base of ``shape``, and what is free for it here."""
    work = work_of(config, shape)
    where = "GPU" if work.on_cuda else "machine"
    if work.on_cuda and not torch.cuda.is_available():
        free = "free: unknown, this machine shows no CUDA device"
    else:
        free = f"free on this {where}: {size(available_bytes(torch.device('cuda' if work.on_cuda else 'cpu')))}"
    precision = "bf16" if work.bf16 else "fp32"
    return [f"matrix products in {precision}", *plan(shape, work).lines(), free]


def refuse_what_cannot_fit(config: Config, device: torch.device) -> None:
    """Raise UserError, with what to lower, before a run that ``device`` has no memory for loads anything.

    A base whose config.json is not on this machine yet is let through: its shape is not known.
    """
    shape = base_shape(config.model.base)
    if shape is not None:
        where = "the GPU" if device.type == "cuda" else "this machine"
        refuse_if_too_large(plan(shape, work_of(config, shape)), available_bytes(device), where)


MOST_LAYERS = 1_000
"""A base with more is none: to build it without weights already takes minutes (ours)."""


def _skeleton(shape: dict[str, Any]) -> tuple[Any, PretrainedConfig]:
    """Build the model without memory behind its weights."""
    if "model_type" not in shape:
        raise UserError("the base's config.json names no model_type; give a Hugging Face causal language model")
    options = {k: v for k, v in shape.items() if k not in ("model_type", "architectures")}
    try:
        config = AutoConfig.for_model(shape["model_type"], **options)
        if not 0 < config.num_hidden_layers <= MOST_LAYERS:
            raise ValueError(f"it has {config.num_hidden_layers} layers")
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, trust_remote_code=False), config
    except Exception as error:  # a damaged shape fails in many ways, each architecture's its own
        why = f"{first_line(error):.300}"
        raise UserError(f"the base's config.json is not of a supported causal language model: {why}") from None


def fresh_adapter(config: Config, shape: dict[str, Any]) -> Genotype:
    """Return the shapes of a member's factors on a base of ``shape``, without memory behind them.

    Raises UserError where ``population.lora_targets`` name nothing of it.
    """
    population, rank = config.population, config.population.lora_rank
    layers = find_targets(_skeleton(shape)[0], population.lora_targets).items()
    with torch.device("meta"):
        factors = {n: (torch.empty(rank, m.in_features), torch.empty(m.out_features, rank)) for n, m in layers}
    return Genotype(factors, population.lora_alpha)


def _activation_bytes_per_token(config: PretrainedConfig, work: Work, compute_bytes: int) -> int:
    """Bytes that the backward pass needs of one token, over all layers."""
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)  # where another name is used, the usual
    kv_heads, head_dim = kv_shape(config)
    queries, keys = int(config.num_attention_heads) * head_dim, kv_heads * head_dim
    # Two norms in fp32 with their inputs and outputs; the MLP's gate, up and products; attention's inputs and output.
    layer = 2 * hidden * (3 * FP32_BYTES + compute_bytes)
    layer += 4 * inner * compute_bytes
    layer += (4 * queries + 6 * keys) * compute_bytes + 2 * (queries + keys) * FP32_BYTES
    if not work.on_cuda:
        heads = int(config.num_attention_heads)
        layer += heads * min(work.prompt_tokens, math.isqrt(MOST_SCORES // heads)) * compute_bytes
    if work.checkpointing:  # the residual stream at each layer, and a layer that is computed again, with gradients
        return int(config.num_hidden_layers) * hidden * (compute_bytes if work.on_cuda else FP32_BYTES) + 2 * layer
    return int(config.num_hidden_layers) * layer
