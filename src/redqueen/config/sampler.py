"""Who samples: this process, or servers of vLLM."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from redqueen.config.section import Section


class SamplerConfig(Section):
    """Who samples: this process, or servers of vLLM that are told each version of each adapter."""

    kind: Literal["torch", "vllm"] = "torch"
    """``torch``: the learner's own process and weights. ``vllm``: the servers at ``urls``. Ours: the first needs
    nothing; servers are faster where a large base samples on GPUs of its own, as all large trainers do it."""
    urls: tuple[str, ...] = Field(default=("http://127.0.0.1:8000",), min_length=1)
    """Addresses of the servers, all with the run's base; requests are spread over them. Ours: vLLM's own port."""
    adapter_folder: str = ""
    """Folder in which adapters are written for the servers, which must see it under the same path; "": a temporary one
    of this machine. Ours: servers on other machines need a shared disk."""
    max_requests: int = Field(default=128, ge=1)
    """Requests under way at each server. Ours: each is a prompt with all its samples, so the batch is some times as
    large; the server queues what it has no room for."""
    answer_s: float = Field(default=600.0, gt=0)
    """Seconds in which a server must answer a request, or load an adapter; one that does not counts as lost. Ours: far
    longer than the longest completions of a full batch; a server that hangs is alive, and must be found too."""
    reconnect_s: float = Field(default=600.0, gt=0)
    """Seconds that a run waits when no server is left, before it stops. Ours: a large base loads for minutes."""
    importance_cap: float = Field(default=2.0, ge=1)
    """Largest weight of a token in the loss, whose weight is p / q: its probability to the learner over that to the
    server. Ours: truncated importance sampling, whose authors and most trainers cap at 2; 1 only ever weighs down."""
    canary_tolerance: float = Field(default=0.2, gt=0)
    """Mean difference in nats between a server's log-probabilities and the learner's own at which the run stops. Ours:
    at temperature 0.7 two engines in bfloat16 differ by 0.12 on 30 layers under the canary's adapters, where a sort of
    module that is missing counts for half as much again as this tolerance (and noise grows with their strength)."""

    @field_validator("urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not _is_address(url):
                raise ValueError(
                    f"{url!r} is not the address of a server: write it as http://127.0.0.1:8000, without /v1"
                )
        if len({url.rstrip("/") for url in urls}) < len(urls):
            raise ValueError("an address is there twice: name each server once")
        return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0  # reading it checks its range
    except ValueError:
        return False
    return bool(known) and not (parts.query or parts.fragment or parts.path.rstrip("/").endswith("/v1"))
