"""The memory that a population needs, estimated before anything is loaded; a config that cannot fit is refused.

Weights, factors, moments and the key-value cache are counted exactly from the model's shape. Activations are estimated,
within about a third, from the tensors that a decoder layer keeps for its backward pass (attention and MLP inputs and
outputs, norms in fp32, and on a CPU the attention weights for the longest prompts). While memory is not scarce, the
allocator keeps freed memory (``give_back_if_scarce``), see ``MemoryPlan.held_bytes``. Source: ours.
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
from redqueen.adapters.fused_decode import is_known, num_copied_weights
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.tree_attention import MOST_SCORES
from redqueen.config import Config
from redqueen.display import size
from redqueen.errors import UserError, first_line

GROUPS_KEPT = 2
"""Prompts cached during decoding for each group of samples that fits into the rows, so that a new group can start
before the last sample of an old one ends (ours)."""


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
        """Length of a prompt for which memory is planned: the longest possible, at most 1024 tokens."""
        return min(1024, max(self.propose_prompt_tokens, self.solve_prompt_tokens))

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt with its completion."""
        return max(
            self.propose_prompt_tokens + self.propose_new_tokens, self.solve_prompt_tokens + self.solve_new_tokens
        )


def prompt_cache_tokens(config: Config, limits: TextLimits) -> int:
    """Return the size of the prompt cache in tokens: ``GROUPS_KEPT`` times the groups that fill all rows, each with a
    prompt of the planned length. Of longer prompts fewer fit, and fewer rows are decoded."""
    groups = (config.propose.num_per_prompt, config.solve.num_attempts)
    return GROUPS_KEPT * -(-config.solve.max_rows // min(groups)) * limits.planned_prompt_tokens


def fit_limits(config: Config, max_positions: int) -> TextLimits:
    """Return the limits: a completion gets at most half of the positions, a prompt at most the rest (ours)."""
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
"""Parameters of glibc's ``mallopt``, with the numbers of its malloc.h."""

HEAP_BLOCK_BYTES = 64 * 2**20
"""Smaller blocks, in bytes, come from the heap; larger ones get their own pages (ours)."""

KEPT = 2**31 - 1
"""Free bytes at the end of the heap above which it shrinks: the largest value that ``mallopt`` accepts."""


_library: ctypes.CDLL | None = None
"""The C library, once its allocator keeps freed memory."""


def keep_freed_memory() -> bool:
    """Let this process keep freed blocks smaller than ``HEAP_BLOCK_BYTES``; return whether the C library accepted it.

    All threads share one heap, since the heaps of other threads are too small for tensors. Nothing is changed if the
    environment configures malloc (``MALLOC_...`` or ``GLIBC_TUNABLES``) or the library is not glibc.
    """
    global _library
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  other libraries number the parameters of mallopt differently
        mallopt = library.mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: on Windows
        return False
    settings = {MMAP_THRESHOLD: HEAP_BLOCK_BYTES, TRIM_THRESHOLD: KEPT, ARENA_MAX: 1}
    kept = all([mallopt(parameter, value) == 1 for parameter, value in settings.items()])
    _library = library if kept else None
    return kept


def give_back_if_scarce(free_bytes: int) -> bool:
    """Return freed memory to the kernel if this process holds more than ``free_bytes``, the machine's free memory.

    Call it when few tensors are alive: most of the process's memory is then freed blocks, and the next tensors may need
    as much again if they do not fit into these. Returns whether memory was returned.
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
"""Memory of the interpreter with torch and transformers on a CPU, before a base is loaded (measured)."""


def logits_at_once(vocabulary: int, on_cuda: bool, most_tokens: int = 4096) -> int:
    """Return for how many tokens the learner computes logits at a time; on a CPU at most 64 MB: the allocator does not
    keep larger tensors, and products do not become faster (ours)."""
    return most_tokens if on_cuda else max(1, min(most_tokens, HEAP_BLOCK_BYTES // (FP32_BYTES * vocabulary)))


@dataclass(frozen=True)
class Work:
    """The sizes on which memory depends.

    ``sample_rows`` sequences are decoded at a time (0: in another process), each up to ``new_tokens`` long. The prompt
    cache has ``prompt_cache_tokens`` in all; a prompt has at most ``prompt_tokens``. The learner runs
    ``micro_batch_tokens`` at a time and holds the gradients of ``num_learning`` members (0: all) in each of
    ``num_lanes``, which share rows and tokens.
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
    """Bytes by purpose. Sampling and learning take turns, so the peak does not add ``cache`` to the learner's parts."""

    base_bytes: int
    factors_bytes: int
    moments_bytes: int
    gradients_bytes: int
    activations_bytes: int
    cache_bytes: int
    libraries_bytes: int

    @property
    def resident_bytes(self) -> int:
        """Bytes in use all the time: libraries, weights, factors and moments."""
        return self.libraries_bytes + self.base_bytes + self.factors_bytes + self.moments_bytes

    @property
    def peak_bytes(self) -> int:
        """Bytes in use at the peak: the resident ones, and the larger of the learner's parts and the cache."""
        return self.resident_bytes + max(self.gradients_bytes + self.activations_bytes, self.cache_bytes)

    @property
    def held_bytes(self) -> int:
        """Bytes that a process on a CPU ends up holding if memory is not scarce: the allocator keeps what sampling
        frees, in blocks that learning can seldom use."""
        return self.resident_bytes + self.gradients_bytes + self.activations_bytes + self.cache_bytes

    def lines(self, parts: bool = True) -> list[str]:
        """Return one line for each of the ``parts``, one for the peak, and on a CPU one for what is held."""
        named = {f.name.removesuffix("_bytes"): getattr(self, f.name) for f in fields(self)} if parts else {}
        lines = [*(f"{name}: {size(part)}" for name, part in named.items()), f"peak: {size(self.peak_bytes)}"]
        if self.libraries_bytes:
            lines.append(f"held where memory is not scarce: up to {size(self.held_bytes)}")
        return lines


def plan(shape: dict[str, Any], work: Work) -> MemoryPlan:
    """Return the plan for a model of ``shape`` (the contents of its config.json), without allocating weights.

    Raises UserError when the shape is not that of a known causal language model, or a target names none of its layers.
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
        base += head.weight.numel() * 2  # the rounded copy for the backward pass
    if work.sample_rows and not work.on_cuda and is_known(config):
        base += num_copied_weights(model) * compute_bytes
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
    """Return how many weights a model of ``shape`` has, tied ones once, without allocating them."""
    model, _ = _skeleton(shape)
    return sum(parameter.numel() for parameter in model.parameters())


def refuse_if_too_large(memory: MemoryPlan, available_bytes: int, where: str) -> None:
    """Raise UserError, naming the field to lower, when ``memory`` exceeds the ``available_bytes`` of ``where``."""
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
    """Return the free memory for a run on ``device``: that of the GPU, or of the machine and its control group."""
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
    """Return the sizes of a configured run, with prompts of the planned length."""
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
    """Maximum number of members that learn in a step: all teachers and their students."""
    population = config.population
    if population.single or config.match.rule == "all_pairs":
        return population.num_members
    return population.num_teachers + min(population.num_teachers, population.num_students)


def plan_memory(config: Config, shape: dict[str, Any], parts: bool = True) -> list[str]:
    """Return the lines of the plan for a configured run on a base of ``shape``, with its ``parts`` or without, and of
    the free memory."""
    work = work_of(config, shape)
    where = "GPU" if work.on_cuda else "machine"
    if work.on_cuda and not torch.cuda.is_available():
        free = "free: unknown, this machine shows no CUDA device"
    else:
        free = f"free on this {where}: {size(available_bytes(torch.device('cuda' if work.on_cuda else 'cpu')))}"
    precision = [f"matrix products in {'bf16' if work.bf16 else 'fp32'}"] if parts else []
    return [*precision, *plan(shape, work).lines(parts), free]


def refuse_what_cannot_fit(config: Config, device: torch.device) -> None:
    """Raise UserError, naming the field to lower, when ``device`` does not have enough memory for the run.

    A base whose config.json is not on this machine yet is not checked: its shape is not known.
    """
    shape = base_shape(config.model.base)
    if shape is not None:
        where = "the GPU" if device.type == "cuda" else "this machine"
        refuse_if_too_large(plan(shape, work_of(config, shape)), available_bytes(device), where)


MOST_LAYERS = 1_000
"""A config.json with more layers is refused: building it without weights would already take minutes (ours)."""


def _skeleton(shape: dict[str, Any]) -> tuple[Any, PretrainedConfig]:
    """Build the model on the meta device, without memory for its weights."""
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
    """Return a member's factors on a base of ``shape``, on the meta device (shapes without memory).

    Raises UserError when ``population.lora_targets`` names none of its layers.
    """
    population, rank = config.population, config.population.lora_rank
    layers = find_targets(_skeleton(shape)[0], population.lora_targets).items()
    with torch.device("meta"):
        factors = {n: (torch.empty(rank, m.in_features), torch.empty(m.out_features, rank)) for n, m in layers}
    return Genotype(factors, population.lora_alpha)


def _activation_bytes_per_token(config: PretrainedConfig, work: Work, compute_bytes: int) -> int:
    """Bytes that the backward pass needs of one token, over all layers."""
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)  # 4 * hidden: usual under other names
    kv_heads, head_dim = kv_shape(config)
    queries, keys = int(config.num_attention_heads) * head_dim, kv_heads * head_dim
    # Two norms in fp32 with their inputs and outputs; the MLP's gate, up and products; attention's inputs and output.
    layer = 2 * hidden * (3 * FP32_BYTES + compute_bytes)
    layer += 4 * inner * compute_bytes
    layer += (4 * queries + 6 * keys) * compute_bytes + 2 * (queries + keys) * FP32_BYTES
    if not work.on_cuda:
        heads = int(config.num_attention_heads)
        layer += heads * min(work.prompt_tokens, math.isqrt(MOST_SCORES // heads)) * compute_bytes
    if work.checkpointing:  # the residual stream at each layer, and one recomputed layer with its gradients
        return int(config.num_hidden_layers) * hidden * (compute_bytes if work.on_cuda else FP32_BYTES) + 2 * layer
    return int(config.num_hidden_layers) * layer
