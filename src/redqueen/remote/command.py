"""How a server of a run is started: the command that `--dry-run` shows."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

from redqueen.config import Config
from redqueen.policy.base_shape import model_source
from redqueen.policy.memory import fit_limits

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The largest ranks that vLLM can be told to have room for."""


def serve_command(config: Config, max_positions: int | None) -> str:
    """Return the shell command that starts a server at the first of the config's addresses.

    It has room for everybody who may be sampled in one batch, the bare base among them, and beside it for as many new
    versions. ``max_positions`` are the base's, None where they are not known yet.
    """
    num = len(config.slots.members) + len(config.slots.hall) + len(config.slots.distilled) + 1
    address = urlsplit(config.sampler.urls[0])
    limits = None if max_positions is None else fit_limits(config, max_positions)
    words = ["vllm", "serve", model_source(config.model.base), "--host", address.hostname or "127.0.0.1"]
    words += ["--port", str(address.port or (443 if address.scheme == "https" else 80))]
    words += ["--dtype", "float32" if config.model.precision == "fp32" else "bfloat16"]
    words += ["--enable-lora", "--max-loras", str(num), "--max-cpu-loras", str(2 * num + 3)]
    rank = config.population.lora_rank
    words += ["--max-lora-rank", str(next((size for size in RANKS if size >= rank), rank))]
    words += ["--max-model-len", str(limits.longest)] if limits else []
    words += ["--logprobs-mode", "processed_logprobs"]
    return "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 " + shlex.join(words)
