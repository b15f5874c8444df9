"""The frozen base model: prepared once for a device and a precision, then never changed.

Precision "bf16" on a CPU stores only the decoder's linear weights in bfloat16 and runs under autocast; embeddings,
norms and the residual stream stay in fp32. Matrix products are then four times as fast with AMX (with AVX512-BF16 alone
faster on AMD and slower on Intel: bench/results/precision.md), and sums stay exact. The output head stays in fp32,
because a logit of 10 rounded to bfloat16 is off by up to 4 %; only its backward pass uses a rounded copy. On CUDA every
weight is bfloat16, as such models are published. Buffers keep their dtype: rounded rotary frequencies would be off by
radians after a thousand tokens. Adapter factors are always fp32 (see ``bank``). Source: ours.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from redqueen.adapters.attention import ATTENTION_NAME, PrefixCache, register_attention
from redqueen.adapters.base_shape import positions_of
from redqueen.adapters.tree_attention import TreePlan
from redqueen.config import Config
from redqueen.errors import UserError, first_line

Precision = Literal["fp32", "bf16"]

CPU_INFO = Path("/proc/cpuinfo")


def choose_precision(asked: Literal["auto", "fp32", "bf16"], device_type: str) -> Precision:
    """Return the precision for a device type ("cpu" or "cuda"); "auto" is bf16 on a GPU."""
    if asked != "auto":
        return asked
    return "bf16" if device_type != "cpu" or multiplies_bf16() else "fp32"


def multiplies_bf16() -> bool:
    """Return whether this processor multiplies bfloat16 faster than fp32: Arm with bfloat16, any with AMX, or AMD with
    AVX512-BF16 (Intel without AMX is slower)."""
    if platform.machine() in ("aarch64", "arm64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return torch.cpu._is_amx_tile_supported() or (torch.cpu._is_avx512_bf16_supported() and _is_amd())


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def device_type(wanted: str) -> str:
    """Return the type of the device that ``run.device`` means on this machine; "cuda" is not checked."""
    return "cuda" if wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available()) else "cpu"


def settle_precision(config: Config) -> Config:
    """Return the config with ``auto`` replaced by the precision that it means here, which the run then keeps."""
    precision = choose_precision(config.model.precision, device_type(config.run.device))
    return config.model_copy(update={"model": config.model.model_copy(update={"precision": precision})})


@dataclass(frozen=True)
class Base:
    """A frozen causal language model and the parts of it that sampler and learner run.

    ``decoder`` maps tokens to hidden states (rows, length, hidden); ``head`` maps hidden states to logits.
    """

    model: PreTrainedModel
    decoder: nn.Module
    head: nn.Linear
    precision: Precision
    device: torch.device
    max_positions: int

    @property
    def compute_dtype(self) -> torch.dtype:
        """The dtype of matrix products and of the key-value cache."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    @contextmanager
    def autocast(self) -> Iterator[None]:
        """Run the enclosed forward passes in the base's precision."""
        mixed = self.precision == "bf16" and self.device.type == "cpu"
        with torch.autocast("cpu", torch.bfloat16) if mixed else nullcontext():
            yield

    def hidden(
        self,
        tokens: Tensor,
        positions: Tensor,
        prefix_cache: PrefixCache | None = None,
        tree: TreePlan | None = None,
    ) -> Tensor:
        """Return the decoder's last hidden states (rows, length, width) for ``tokens`` at ``positions`` (rows, length).

        Attention is causal, or through ``prefix_cache`` while that is decoding, or along ``tree``.
        """
        custom_attention = tree is not None or (prefix_cache is not None and prefix_cache.decoding)
        # Any four-dimensional mask prevents the library from making one; the cache or the plan has its own.
        mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=tokens.device) if custom_attention else None
        output = self.decoder(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            use_cache=False,
            prefix_cache=prefix_cache,
            tree=tree,
        )
        return cast(Tensor, output.last_hidden_state)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return fp32 logits (..., vocabulary) of hidden states (..., hidden)."""
        with torch.autocast(self.device.type, enabled=False):
            hidden = hidden.to(self.head.weight.dtype)
            if hidden.requires_grad and self.precision == "bf16" and self.device.type == "cpu":
                return cast(Tensor, _RoundedBackward.apply(hidden, self.head, self.rounded_head))
            return cast(Tensor, self.head(hidden)).float()

    @cached_property
    def rounded_head(self) -> Tensor:
        """The output head's weights (vocabulary, hidden) in bfloat16; made for the first backward pass."""
        return self.head.weight.detach().to(torch.bfloat16)


class _RoundedBackward(torch.autograd.Function):
    """The output head in fp32; its backward pass rounds weights and gradients to bfloat16, as in all other layers."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: nn.Linear, rounded: Tensor) -> Tensor:
        ctx.save_for_backward(rounded)
        return cast(Tensor, head(hidden))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (rounded,) = ctx.saved_tensors
        return (gradients[0].to(torch.bfloat16) @ rounded).float(), None, None


def freeze(model: PreTrainedModel, device: str | torch.device = "cpu", precision: Precision = "fp32") -> Base:
    """Prepare ``model`` in place: move it, set its precision, freeze every parameter, switch dropout off.

    On a GPU this disables cuDNN's attention for the process, since it is compiled for every new shape of a batch.
    Raises UserError when the model computes its logits or its attention in a way this engine does not reproduce.
    """
    _refuse_unsupported(model)
    device = torch.device(device)
    register_attention()
    model.requires_grad_(False)
    cast(nn.Module, model).eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), int | float):
            setattr(module, "attention_dropout", 0.0)  # noqa: B010 (nn.Module's declared attribute types exclude numbers)
    head = model.get_output_embeddings()
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    if precision == "bf16" and device.type != "cpu":
        for parameter in model.parameters():
            if parameter.dtype != torch.bfloat16:
                parameter.data = parameter.data.to(torch.bfloat16)
        cast(nn.Module, model).to(device=device)
    else:
        cast(nn.Module, model).to(device=device, dtype=torch.float32)
        if precision == "bf16":
            for module in model.modules():
                if isinstance(module, nn.Linear) and module is not head:
                    module.to(torch.bfloat16)
    positions = positions_of(model.config.to_dict())
    try:
        model.set_attn_implementation(ATTENTION_NAME)
        base = Base(model, model.get_decoder(), head, precision, device, positions)
        problem = _problem_of(base)
    except Exception as error:  # each architecture fails in its own way
        problem = f"does not run here ({first_line(error):.300})"
    if problem:
        raise UserError(f"base model type {model.config.model_type!r} {problem}: {_SUPPORTED}")
    return base


@contextmanager
def deterministic_kernels(device: torch.device) -> Iterator[None]:
    """On a GPU, use deterministic kernels: attention's backward pass otherwise adds in the order of its threads."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # torch asks for it before it calls cuBLAS
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


_SUPPORTED = "use a Llama, Qwen2, Qwen3, Mistral, Gemma (1) or Phi model"


def _refuse_unsupported(model: PreTrainedModel) -> None:
    name = model.config.model_type
    if getattr(model.config, "attn_logit_softcapping", None):
        raise UserError(
            f"base model type {name!r} caps its attention scores, which packed attention does not support; {_SUPPORTED}"
        )
    if not isinstance(model.get_output_embeddings(), nn.Linear):
        raise UserError(f"base model type {name!r} has no linear output head; use a causal language model")


@torch.no_grad()
def _problem_of(base: Base) -> str:
    """Return a clause on what this engine does not reproduce of a model; "" if nothing.

    The model must call our attention, and its logits must be head(hidden), neither scaled nor capped.
    """
    tokens = torch.arange(4, device=base.device)[None]  # (1, 4): also the positions
    cache = PrefixCache(base.model.config, 1, 4, 1, 1, base.compute_dtype, base.device)
    cache.filling = torch.zeros(1, dtype=torch.long, device=base.device)
    with base.autocast():
        whole = cast(nn.Module, base.model)(input_ids=tokens, use_cache=False).logits.float()
        ours = base.logits(base.hidden(tokens, tokens, cache))
    if not all(bool(keys.any()) for keys in cache.prompt_k):
        return "has an attention of its own, which is not supported"
    if not torch.allclose(whole, ours, rtol=5e-2, atol=5e-2 * float(whole.abs().max())):
        return "scales or caps its logits, which is not supported"
    return ""
