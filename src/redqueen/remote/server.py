"""One vLLM server over HTTP: its adapters by name, and completions as tokens with their log-probabilities.

All answers are checked: the server may be another version, another program, or half dead. Requests run on an event loop
in a separate thread, so that each of them can be cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

from redqueen.adapters.base_shape import model_source
from redqueen.adapters.memory import fit_limits
from redqueen.config import Config
from redqueen.display import visible
from redqueen.errors import UserError, how_to_install

try:
    import httpx2 as httpx
except ModuleNotFoundError:  # an extra
    httpx = None  # type: ignore[assignment]

T = TypeVar("T")

CONNECT_S = 5.0
"""Timeout in seconds of a connection, and of the list of models."""
MAX_REQUESTS = 128
"""Maximum number of concurrent requests to each server, each a prompt with all its samples (ours)."""
ANSWER_S = 600.0
"""Timeout in seconds of a request and of loading an adapter, after which a server counts as lost (ours)."""
MAX_BYTES = 2**20
"""Maximum bytes of an answer without completions (ours: enough for a list of thousands of adapters)."""
BYTES_A_TOKEN = 1024
"""Maximum bytes of an answer for each requested token, and for each of the likeliest tokens (ours: vLLM writes about
60, and a few hundred for a token with escaped characters)."""
LEAST_LOGPROB = -10_000.0
"""vLLM writes -9999 for an impossible token."""
TOP = 20
"""Number of most likely tokens whose log-probabilities the canary requests: vLLM's default maximum."""
API_KEY = "VLLM_API_KEY"
"""The environment variable with the servers' key, as for vLLM itself."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values of vLLM's --max-lora-rank."""
LOAD, UNLOAD, MODELS, COMPLETE = "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/models", "/v1/completions"


def serve_command(config: Config, max_positions: int | None) -> str:
    """Return the shell command that starts a server at the first of the config's addresses.

    It has room for all adapters that may be sampled in one batch, including the base model, and for as many new
    versions. ``max_positions`` are the base's; None if they are not known yet.
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


class ServerLost(Exception):
    """A server did not answer, or not as a working server with our adapters does."""


@dataclass(frozen=True)
class Sampled:
    """One completion: its tokens, their log-probabilities in nats, whether the server found an end and, if requested,
    the log-probabilities of the most likely tokens at each position, by token."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stopped: bool
    likely: tuple[Mapping[int, float], ...] = ()


class Server:
    """The server at ``url`` of a base with ``vocabulary`` tokens. Raises UserError when the HTTP client is missing."""

    def __init__(self, url: str, vocabulary: int) -> None:
        if httpx is None:
            raise UserError(f'sampler.kind = "vllm" needs an HTTP client: {how_to_install("vllm")}')
        self.url, self.vocabulary = url, vocabulary
        key = os.environ.get(API_KEY)
        self.client = httpx.AsyncClient(
            base_url=self.url,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=MAX_REQUESTS),
            headers={"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            trust_env=False,  # the user's own servers: without a proxy
        )
        self.free = asyncio.Semaphore(MAX_REQUESTS)
        self.loop = asyncio.new_event_loop()
        Thread(target=self.loop.run_forever, daemon=True).start()

    def models(self) -> set[str]:
        """Return the names of the base and of all loaded adapters."""
        answer = self._checked(self._run(self._fetch("GET", MODELS, None, CONNECT_S)), MODELS)
        try:
            return {str(card["id"]) for card in answer["data"]}
        except (KeyError, TypeError):
            raise self._strange("a list of models") from None

    def load(self, name: str, folder: Path) -> str:
        """Load the adapter in ``folder`` under ``name``; return why the server refuses it, or ""."""
        body = {"lora_name": name, "lora_path": str(folder)}
        status, text = self._run(self._fetch("POST", LOAD, body, ANSWER_S))
        if status in (404, 405) and "detail" in _plain(text):
            raise UserError(
                f"the server at {self.url} has no {LOAD}: start it with --enable-lora and "
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment"
            )
        # An already loaded adapter is ours: the answer to an earlier call was lost.
        return "" if status == 200 or "already been loaded" in text else _words(text)

    def unload(self, name: str) -> None:
        """Unload an adapter, if it is loaded."""
        self._run(self._fetch("POST", UNLOAD, {"lora_name": name}, ANSWER_S))

    def begin(self, body: Mapping[str, Any]) -> Future[list[Sampled]]:
        """Begin a request for completions; cancel the future to cancel the request."""
        return asyncio.run_coroutine_threadsafe(self.complete(body), self.loop)

    async def complete(self, body: Mapping[str, Any]) -> list[Sampled]:
        """Return the ``n`` completions that ``body``, a request for completions, asks for."""
        asked = body["n"] * body["max_tokens"] * (1 + body["logprobs"])
        async with self.free:
            answer = await self._fetch("POST", COMPLETE, body, ANSWER_S, MAX_BYTES + asked * BYTES_A_TOKEN)
        result = self._checked(answer, COMPLETE)
        try:
            ordered = sorted(result["choices"], key=lambda choice: choice["index"])
            if [choice["index"] for choice in ordered] != list(range(body["n"])):
                raise ValueError("not the requested completions")
            return [_sampled(choice, self.vocabulary, body["max_tokens"], body["logprobs"]) for choice in ordered]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise self._strange("token ids of this base with log-probabilities (return_token_ids)") from None

    def close(self) -> None:
        """Close all connections."""
        self._run(self.client.aclose())
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _fetch(
        self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float, max_bytes: int = MAX_BYTES
    ) -> tuple[int, str]:
        """Return status and text of the whole answer. Raises ServerLost if it exceeds ``seconds`` or ``max_bytes``."""
        kept = bytearray()
        try:
            async with asyncio.timeout(seconds), self.client.stream(method, path, json=body) as response:
                async for piece in response.aiter_raw():
                    kept += piece
                    if len(kept) > max_bytes:
                        raise ServerLost(f"an answer of more than {max_bytes:,} bytes")
        except TimeoutError:
            raise ServerLost(f"no whole answer in {seconds:g} s") from None
        except httpx.HTTPError as error:
            raise ServerLost(f"{type(error).__name__}: {visible(str(error), 200, True)}") from None
        if response.status_code in (401, 403):
            raise UserError(f"the server at {self.url} requires a key: set {API_KEY} in the environment")
        return response.status_code, kept.decode(errors="replace")

    def _checked(self, answer: tuple[int, str], path: str) -> Any:
        """Return the JSON of a successful answer. Raises ServerLost for an unknown adapter or an internal error."""
        status, text = answer
        if status >= 500 or status == 404:
            raise ServerLost(f"status {status}: {_words(text)}")
        if status != 200:
            raise UserError(f"the server at {self.url} refuses {path} ({status}): {_words(text)}")
        return _plain(text)

    def _strange(self, wanted: str) -> UserError:
        return UserError(f"the server at {self.url} did not answer with {wanted}: is it a recent vLLM server?")


def _sampled(choice: Mapping[str, Any], vocabulary: int, max_tokens: int, num_likely: int) -> Sampled:
    """Read one completion with its ``num_likely`` likeliest tokens. Raises ValueError for a malformed one."""
    tokens, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
    values = tuple(float(value) for value in logprobs)
    shown = choice["logprobs"]["top_logprobs"] if num_likely else ()
    likely = tuple({int(name.removeprefix("token_id:")): float(value) for name, value in at.items()} for at in shown)
    if not 0 < len(tokens) <= max_tokens or len(tokens) != len(values) or (num_likely and len(likely) != len(tokens)):
        raise ValueError("tokens and log-probabilities do not match")
    if any(len(at) < min(num_likely, vocabulary) for at in likely):
        raise ValueError("there are fewer likely tokens than were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for at in (tokens, *likely) for token in at):
        raise ValueError("a token that the base does not have")
    all_values = [*values, *(value for at in likely for value in at.values())]
    if not all(LEAST_LOGPROB <= value < 1e-3 for value in all_values):
        raise ValueError("not a log-probability")
    ended = choice.get("finish_reason")
    if ended != "stop" and (ended != "length" or len(tokens) < max_tokens):
        raise ServerLost(f"a completion of {len(tokens)} tokens ended by {visible(str(ended), 40, True)}")
    return Sampled(tuple(tokens), values, ended == "stop", likely)


def _plain(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(text: str) -> str:
    """Return the error message in a server's answer, short and safe for a terminal."""
    error = (found := _plain(text)).get("error", found)
    message = error.get("message") if isinstance(error, dict) else None
    return visible(str(message or text), 300, True)
