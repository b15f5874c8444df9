"""The frozen base."""

from __future__ import annotations

from typing import Literal

from redqueen.config.section import Section

EMBEDDED = "embedded"


class ModelConfig(Section):
    """The frozen base."""

    base: str = EMBEDDED
    """``embedded``, a model folder, a GGUF file or a folder with one, or a name on the hub. Ours: runs without a
    download; the paper has Qwen2.5-Coder-7B, as in ``configs/paper-7b.toml``."""
    precision: Literal["bf16", "fp32"] = "bf16"
    """Precision of the base's products. Ours: cheap in bf16; adapters and moments are fp32, which keeps small steps."""
    prompt_format: Literal["auto", "compact", "compact-forced", "chat", "fewshot", "fewshot-trace"] = "auto"
    """``compact``: the notation of the embedded base (``compact-forced``, a control, begins each thought).
    ``chat``: plain English. ``fewshot``: examples to continue (``fewshot-trace``: with reasoning). ``auto``: what suits
    the base, and a new run says why. Ours."""
