"""One vLLM server over HTTP: its adapters by name, and completions as tokens with their log-probabilities.

What a server answers is checked before it is believed: it may be another version, another program, or half dead.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redqueen.config.sampler import SamplerConfig
from redqueen.display import visible
from redqueen.errors import UserError, how_to_install

try:
    import httpx2 as httpx
except ModuleNotFoundError:  # an extra
    httpx = None  # type: ignore[assignment]

CONNECT_S = 5.0
"""Seconds in which a connection is made: a machine that is there answers at once."""
TOP = 20
"""Most likely tokens whose log-probabilities the canary asks for: as many as vLLM gives by default."""
API_KEY = "VLLM_API_KEY"
"""The environment variable that holds the servers' key, as it does for vLLM itself."""
LOAD, UNLOAD, MODELS, COMPLETE = "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/models", "/v1/completions"


class ServerLost(Exception):
    """A server gave no answer, or one that it would not give if it were well and had our adapters."""


class LoadRefused(Exception):
    """A server is well, and does not load an adapter."""


@dataclass(frozen=True)
class Sampled:
    """One completion: its tokens, their log-probabilities in nats, whether the server found an end, and where they
    were asked for, the log-probabilities of the most likely tokens at each place, by token."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stopped: bool
    likely: tuple[Mapping[int, float], ...] = ()


class Server:
    """The server at ``url`` of a base with ``vocabulary`` tokens; may be asked from several threads.

    Raises UserError when the HTTP client is missing.
    """

    def __init__(self, url: str, config: SamplerConfig, vocabulary: int) -> None:
        if httpx is None:
            raise UserError(f'sampler.kind = "vllm" needs an HTTP client: {how_to_install("vllm")}')
        self.url, self.config, self.vocabulary = url, config, vocabulary
        self.renew()

    def renew(self) -> None:
        """Ask by new connections from now on: those that still wait for an answer hold up none that comes later."""
        key, most = os.environ.get(API_KEY), self.config.max_requests
        self.client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            trust_env=False,  # the user's own servers: no proxy stands between
        )

    def models(self) -> dict[str, int | None]:
        """Return the names of the base and of all adapters that are loaded, with the longest text of each, if told."""
        answer = self._checked(self._ask("GET", MODELS, None, CONNECT_S), MODELS)
        try:
            return {str(card["id"]): card.get("max_model_len") for card in answer["data"]}
        except (AttributeError, KeyError, TypeError):
            raise self._strange("a list of models") from None

    def load(self, name: str, folder: Path) -> None:
        """Load the adapter in ``folder`` under ``name``. Raises LoadRefused when the server does not."""
        answer = self._ask("POST", LOAD, {"lora_name": name, "lora_path": str(folder)}, self.config.load_s)
        if answer.status_code == 200:
            return
        if answer.status_code in (404, 405) and "detail" in _plain(answer):
            raise UserError(
                f"the server at {self.url} has no {LOAD}: start it with --enable-lora and "
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment"
            )
        if "already been loaded" not in answer.text:  # under a name of ours: by a call whose answer was lost
            raise LoadRefused(_words(answer))

    def unload(self, name: str) -> None:
        """Forget an adapter; one that is not there is forgotten already."""
        self._ask("POST", UNLOAD, {"lora_name": name}, self.config.load_s)

    def complete(self, body: Mapping[str, Any]) -> list[Sampled]:
        """Return the ``n`` completions that ``body``, a request for completions, asks for."""
        answer = self._ask("POST", COMPLETE, body, self.config.answer_s)
        choices = self._checked(answer, COMPLETE).get("choices")
        if not isinstance(choices, list) or len(choices) != body["n"]:
            raise self._strange(f"{body['n']} completions")
        try:
            ordered = sorted(choices, key=lambda choice: choice["index"])
            return [_sampled(choice, self.vocabulary, body["logprobs"]) for choice in ordered]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._strange("token ids of this base with log-probabilities (return_token_ids)") from None

    def close(self) -> None:
        """Close all connections."""
        self.client.close()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        """Return the response; one with a status of 5xx is returned too, since loading has its own."""
        try:
            timeout = httpx.Timeout(seconds, connect=CONNECT_S, pool=None)
            answer = self.client.request(method, path, json=body, timeout=timeout)
        except httpx.TransportError as error:
            raise ServerLost(f"{type(error).__name__}: {visible(str(error), 200, True)}") from None
        if answer.status_code in (401, 403):
            raise UserError(f"the server at {self.url} wants a key: set {API_KEY} in the environment")
        return answer

    def _checked(self, answer: Any, path: str) -> Any:
        """Return the JSON of a good answer. An adapter that is not known, or a fault, means that the server is lost."""
        if answer.status_code >= 500 or answer.status_code == 404:
            raise ServerLost(f"status {answer.status_code}: {_words(answer)}")
        if answer.status_code != 200:
            raise UserError(f"the server at {self.url} refuses {path} ({answer.status_code}): {_words(answer)}")
        return _plain(answer)

    def _strange(self, wanted: str) -> UserError:
        return UserError(f"the server at {self.url} did not answer with {wanted}: is it a vLLM server of this decade?")


def _sampled(choice: Mapping[str, Any], vocabulary: int, num_likely: int) -> Sampled:
    """Read one completion with the ``num_likely`` likeliest tokens. Raises what reading raises when it is none."""
    tokens, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
    values = tuple(float(value) for value in logprobs)
    shown = choice["logprobs"]["top_logprobs"] if num_likely else ()
    likely = tuple({int(name.removeprefix("token_id:")): float(value) for name, value in at.items()} for at in shown)
    if not tokens or len(tokens) != len(values) or (num_likely and len(likely) != len(tokens)):
        raise ValueError("tokens and log-probabilities do not match")
    if any(len(at) < min(num_likely, vocabulary) for at in likely):
        raise ValueError("there are fewer likely tokens than were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for at in (tokens, *likely) for token in at):
        raise ValueError("a token is none of the base's")
    told = [*values, *(value for at in likely for value in at.values())]
    if not all(math.isfinite(value) and value < 1e-3 for value in told):
        raise ValueError("a log-probability is none")
    return Sampled(tuple(tokens), values, choice.get("finish_reason") == "stop", likely)


def _plain(answer: Any) -> Any:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _words(answer: Any) -> str:
    """Return what a server says of a refusal, short and harmless to a terminal."""
    found = _plain(answer)
    error = found.get("error", found)
    text = error.get("message") if isinstance(error, dict) else None
    return visible(str(text or answer.text), 300, True)
