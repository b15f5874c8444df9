"""One vLLM server over HTTP: its adapters by name, and completions as tokens with their log-probabilities.

What a server answers is checked before it is believed: it may be another version, another program, or half dead.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
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
MOST_BYTES = 2**20
"""Longest answer in bytes, but for what completions have besides (ours: a list of thousands of adapters has room)."""
BYTES_A_TOKEN = 1024
"""Most bytes of an answer for each token that was asked for, and as many for each of the likeliest tokens there (ours:
vLLM writes some 60, and a text in which each character is written out a few hundred)."""
LEAST_LOGPROB = -10_000.0
"""vLLM writes -9999 for a token that cannot be."""
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
class Answer:
    """The status and the text of an HTTP response."""

    status: int
    text: str


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
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self.client = httpx.Client(
            base_url=self.url,
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            headers=headers,
            trust_env=False,  # the user's own servers: no proxy stands between
        )

    def models(self) -> dict[str, int | None]:
        """Return the names of the base and of all adapters that are loaded, with the longest text of each, if told."""
        answer = self._checked(self._ask("GET", MODELS, None, CONNECT_S), MODELS)
        try:
            found = {str(card["id"]): card.get("max_model_len") for card in answer["data"]}
            if not all(length is None or type(length) is int for length in found.values()):
                raise TypeError("a length that is none")
        except (AttributeError, KeyError, TypeError):
            raise self._strange("a list of models") from None
        return found

    def load(self, name: str, folder: Path) -> None:
        """Load the adapter in ``folder`` under ``name``. Raises LoadRefused when the server does not."""
        answer = self._ask("POST", LOAD, {"lora_name": name, "lora_path": str(folder)}, self.config.load_s)
        if answer.status == 200:
            return
        if answer.status in (404, 405) and "detail" in _plain(answer):
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
        asked = body["n"] * body["max_tokens"] * (1 + body["logprobs"])
        answer = self._ask("POST", COMPLETE, body, self.config.answer_s, MOST_BYTES + asked * BYTES_A_TOKEN)
        choices = self._checked(answer, COMPLETE).get("choices")
        if not isinstance(choices, list) or len(choices) != body["n"]:
            raise self._strange(f"{body['n']} completions")
        try:
            ordered = sorted(choices, key=lambda choice: choice["index"])
            if [choice["index"] for choice in ordered] != list(range(body["n"])):
                raise ValueError("the same completion twice")
            return [_sampled(choice, self.vocabulary, body["max_tokens"], body["logprobs"]) for choice in ordered]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise self._strange("token ids of this base with log-probabilities (return_token_ids)") from None

    def close(self) -> None:
        """Close all connections."""
        self.client.close()

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float, most: int = MOST_BYTES
    ) -> Answer:
        """Return the whole answer, of at most so many bytes; one with a status of 5xx too, since loading has its own.

        The client's own limits hold for each piece, of which a server may send as many as it likes, one now and then.
        So it is asked in a thread that is left to itself when the seconds are over.
        """
        told: SimpleQueue[Answer | Exception] = SimpleQueue()
        late = time.monotonic() + CONNECT_S + seconds
        Thread(target=lambda: told.put(self._fetch(method, path, body, seconds, most, late)), daemon=True).start()
        try:
            answer = told.get(timeout=CONNECT_S + seconds)
        except Empty:
            self.renew()
            raise ServerLost(f"no whole answer in {seconds:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        if answer.status in (401, 403):
            raise UserError(f"the server at {self.url} wants a key: set {API_KEY} in the environment")
        return answer

    def _fetch(
        self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float, most: int, late: float
    ) -> Answer | Exception:
        timeout = httpx.Timeout(seconds, connect=CONNECT_S, pool=None)
        kept = bytearray()
        try:
            with self.client.stream(method, path, json=body, timeout=timeout) as response:
                for piece in response.iter_raw():
                    kept += piece
                    if len(kept) > most:
                        return ServerLost(f"an answer of more than {most:,} bytes")
                    if time.monotonic() > late:
                        break  # nobody waits for it any more
            return Answer(response.status_code, kept.decode(errors="replace"))
        except httpx.HTTPError as error:
            return ServerLost(f"{type(error).__name__}: {visible(str(error), 200, True)}")
        except Exception as error:  # is raised where the answer is waited for
            return error

    def _checked(self, answer: Answer, path: str) -> Any:
        """Return the JSON of a good answer. An adapter that is not known, or a fault, means that the server is lost."""
        if answer.status >= 500 or answer.status == 404:
            raise ServerLost(f"status {answer.status}: {_words(answer)}")
        if answer.status != 200:
            raise UserError(f"the server at {self.url} refuses {path} ({answer.status}): {_words(answer)}")
        return _plain(answer)

    def _strange(self, wanted: str) -> UserError:
        return UserError(f"the server at {self.url} did not answer with {wanted}: is it a vLLM server of this decade?")


def _sampled(choice: Mapping[str, Any], vocabulary: int, max_tokens: int, num_likely: int) -> Sampled:
    """Read one completion with the ``num_likely`` likeliest tokens. Raises what reading raises when it is none."""
    tokens, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
    values = tuple(float(value) for value in logprobs)
    shown = choice["logprobs"]["top_logprobs"] if num_likely else ()
    likely = tuple({int(name.removeprefix("token_id:")): float(value) for name, value in at.items()} for at in shown)
    if not 0 < len(tokens) <= max_tokens or len(tokens) != len(values) or (num_likely and len(likely) != len(tokens)):
        raise ValueError("tokens and log-probabilities do not match")
    if any(len(at) < min(num_likely, vocabulary) for at in likely):
        raise ValueError("there are fewer likely tokens than were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for at in (tokens, *likely) for token in at):
        raise ValueError("a token is none of the base's")
    told = [*values, *(value for at in likely for value in at.values())]
    if not all(LEAST_LOGPROB <= value < 1e-3 for value in told):
        raise ValueError("a log-probability is none")
    ended = choice.get("finish_reason")
    if ended != "stop" and (ended != "length" or len(tokens) < max_tokens):
        raise ServerLost(f"a completion of {len(tokens)} tokens ended by {visible(str(ended), 40, True)}")
    return Sampled(tuple(tokens), values, ended == "stop", likely)


def _plain(answer: Answer) -> Any:
    try:
        found = json.loads(answer.text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(answer: Answer) -> str:
    """Return what a server says of a refusal, short and harmless to a terminal."""
    found = _plain(answer)
    error = found.get("error", found)
    text = error.get("message") if isinstance(error, dict) else None
    return visible(str(text or answer.text), 300, True)
