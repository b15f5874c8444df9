"""The sampler that uses vLLM servers: tokens in and out, truncated by redqueen's own stopping rules."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from redqueen.adapters.decoding import StopStrings
from redqueen.records import Completion, Request
from redqueen.remote.fleet import Fleet
from redqueen.remote.server import Sampled
from redqueen.timing import Report, unheard

SEEDS = (1 << 62) - 1
"""Mask for seeds: a server's seeds have 63 bits, and it adds 1 for each sample of a request."""


class RemoteSampler:
    """Implements ``Sampler`` over a fleet of servers.

    ``max_new_tokens`` limits a completion; ``temperature`` 0 means greedy. ``end_tokens``, and the strings ``stops``
    found by ``stopper``, end a completion and are part of it. ``report`` gets the numbers of finished requests and new
    tokens.
    """

    def __init__(
        self,
        fleet: Fleet,
        max_new_tokens: int,
        end_tokens: Sequence[int],
        temperature: float = 1.0,
        stops: Sequence[str] = (),
        stopper: StopStrings | None = None,
        report: Report = unheard,
    ) -> None:
        self.fleet, self.max_new_tokens, self.end_tokens = fleet, max_new_tokens, frozenset(end_tokens)
        self.temperature, self.stops, self.stopper, self.report = temperature, tuple(stops), stopper, report

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of each request. Raises UserError when a server refuses one, such as a long one."""
        asked = [request for request in requests if request.num_samples]
        answers = iter(self.fleet.ask([(r.slot, self._body(r)) for r in asked], self.report) if asked else ())
        return [self._completions(r, next(answers)) if r.num_samples else [] for r in requests]

    def _body(self, request: Request) -> dict[str, Any]:
        """Return the body of a server's request. A greedy one has one sample, since all would be the same."""
        ends = self.end_tokens | ({request.stop_token} if request.stop_count == 1 else set())
        return {
            "prompt": list(request.prompt),
            "n": request.num_samples if self.temperature else 1,
            "max_tokens": self.max_new_tokens,
            "temperature": self.temperature * request.temperature,
            "seed": request.rng_seed & SEEDS,
            "logprobs": 0,
            "stop_token_ids": sorted(ends),
            "stop": list(self.stops),
            "ignore_eos": True,  # stop_token_ids names the end tokens
            "add_special_tokens": False,
            "skip_special_tokens": False,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }

    def _completions(self, request: Request, sampled: Sequence[Sampled]) -> list[Completion]:
        found = [self._completion(request, one) for one in sampled]
        return found if self.temperature else found * request.num_samples

    def _completion(self, request: Request, sampled: Sampled) -> Completion:
        """Truncate a server's completion where our own rules end it.

        The entropy is estimated by the mean of -log q over the tokens, with q their probability, since servers do not
        return the whole distribution. The estimate is unbiased for sampled completions, not for greedy ones.
        """
        end = self._end(request, sampled.tokens)
        tokens, logprobs = sampled.tokens[:end], sampled.logprobs[:end]
        return Completion(tokens, logprobs, -fmean(logprobs), end is not None or sampled.stopped)

    def _end(self, request: Request, tokens: Sequence[int]) -> int | None:
        """Return the number of tokens up to and with the first end; None if there is no end."""
        ends = [i + 1 for i, token in enumerate(tokens) if token in self.end_tokens][:1]
        if self.stopper is not None and (stop := self.stopper.first_stop(tokens, len(tokens))) is not None:
            ends.append(stop)
        if request.stop_count:
            marks = [i + 1 for i, token in enumerate(tokens) if token == request.stop_token]
            ends += marks[request.stop_count - 1 : request.stop_count]
        return min(ends, default=None)
