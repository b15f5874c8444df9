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
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """Precision of the base's products; auto: bf16 on a GPU and on a processor that has instructions for it, else fp32,
    and a run keeps what it began with. Ours: whichever is fast (bench/results/precision.md); adapters and moments are
    fp32, which keeps small steps."""
    prompt_format: Literal["auto", "compact", "compact-forced", "chat", "fewshot", "fewshot-trace"] = "auto"
    """``compact``: the notation of the embedded base (``compact-forced``, a control, begins each thought).
    ``chat``: plain English. ``fewshot``: examples to continue (``fewshot-trace``: with reasoning). ``auto``: what suits
    the base, and a new run says why. Ours."""
