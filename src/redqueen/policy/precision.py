"""Which precision ``model.precision = auto`` means: bfloat16 where the processor multiplies it, else float32.

A processor without such instructions emulates them: on two cores of an AMD EPYC with AVX2 alone sampling took four
times as long in bfloat16 as in float32, and learning twenty times (``bench/precision.py``). The choice follows the
processor's instructions and never a clock, so a machine always answers the same. Ground: ours.
"""

from __future__ import annotations

import platform
from typing import Literal

import torch

from redqueen.config import Config

Precision = Literal["fp32", "bf16"]


def choose_precision(asked: Literal["auto", "fp32", "bf16"], device_type: str) -> Precision:
    """Return the precision that is meant on a device of this type ("cpu" or "cuda"); a GPU multiplies bfloat16."""
    if asked != "auto":
        return asked
    return "bf16" if device_type != "cpu" or multiplies_bf16() else "fp32"


def multiplies_bf16() -> bool:
    """Return whether this processor has instructions of its own for products in bfloat16."""
    if platform.machine() in ("aarch64", "arm64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def device_type(wanted: str) -> str:
    """Return the type of the device that ``run.device`` means here; whether there is one is not asked."""
    return "cuda" if wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available()) else "cpu"


def settle_precision(config: Config) -> Config:
    """Return the config with the precision named that ``auto`` means here: a run keeps it wherever it goes on."""
    precision = choose_precision(config.model.precision, device_type(config.run.device))
    return config.model_copy(update={"model": config.model.model_copy(update={"precision": precision})})
