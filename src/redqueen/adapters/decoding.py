"""The rows of a decode batch: their tokens, members and prompts, and the positions of their keys and values.

The owner of a row is stored on the host; everything that changes with each token is on the device, so that decoding
steps do not wait for the host. A finished row stays in the batch, idle, until it is refilled or the batch shrinks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from redqueen.adapters.attention import PrefixCache, StepIndex
from redqueen.adapters.base import Base
from redqueen.adapters.shared_prefixes import PackedPrompts, Prefix
from redqueen.errors import UserError
from redqueen.records import Completion

_GOLDEN = 0x9E3779B97F4A7C15


def _signed(value: int) -> int:
    """Return the lowest 64 bits of an integer as an int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Logical shift of int64; torch's operator is an arithmetic shift."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift_right(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift_right(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shift_right(x, 31)


def uniforms(rng_seeds: list[int], samples: list[int], num_tokens: int, device: torch.device) -> Tensor:
    """Return (n, num_tokens) fp32 in [0, 1): row i is for sample ``samples[i]`` of a request with ``rng_seeds[i]``."""
    seeds = torch.tensor([_signed(s) for s in rng_seeds], dtype=torch.int64, device=device)  # (n,)
    which = torch.tensor(samples, dtype=torch.int64, device=device)
    key = _mix(_mix(seeds) + (which + 1) * _signed(_GOLDEN))  # (n,)
    steps = torch.arange(1, num_tokens + 1, dtype=torch.int64, device=device) * _signed(_GOLDEN)  # (num_tokens,)
    return _shift_right(_mix(key[:, None] + steps), 40).to(torch.float32) * 2.0**-24


DRAWN_AT_ONCE = 1 << 18
"""Logits that each CPU thread samples from at a time, so that they stay in its cache (ours)."""


def draw(logits: Tensor, noise: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Sample one token per row: (tokens int64, log-probabilities, entropies), each (rows,).

    ``logits`` (rows, vocabulary) fp32; ``noise`` (rows,) in [0, 1). Log-probabilities and entropies (nats) are those of
    the softmax at ``temperature``. Temperature 0 takes the most likely token, with probabilities at temperature 1.
    """
    at_once = DRAWN_AT_ONCE * torch.get_num_threads()
    num_rows = max(1, at_once // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    parts = zip(logits.split(num_rows), noise.split(num_rows), strict=True)
    drawn = [_draw_some(some, numbers, temperature) for some, numbers in parts]
    tokens, logprobs, entropy = (torch.cat(column) for column in zip(*drawn, strict=True))
    return tokens, logprobs, entropy


def _draw_some(logits: Tensor, noise: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    # (rows, vocabulary)
    logp = torch.log_softmax(logits if temperature in (0.0, 1.0) else logits / temperature, dim=-1)
    probs = logp.exp()
    entropy = -(probs * logp).sum(dim=-1)  # (rows,)
    if temperature == 0.0:
        tokens = logits.argmax(dim=-1)
    else:
        cumulative = probs.cumsum(dim=-1)  # (rows, vocabulary)
        # noise < 1 keeps the threshold below the total, so the token found always has a positive probability.
        threshold = noise[:, None] * cumulative[:, -1:]  # (rows, 1)
        tokens = torch.searchsorted(cumulative, threshold, right=True)[:, 0].clamp_(max=logits.shape[-1] - 1)
    return tokens, logp.gather(1, tokens[:, None])[:, 0], entropy


class StopStrings:
    """Finds the first token at which the decoded text contains one of ``strings``.

    A stop string may span several tokens. Only the last tokens are decoded: every token but the special ones has at
    least one byte, so a string of n bytes that a new token completes is within the last n tokens and the new ones.
    """

    def __init__(self, strings: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        if not strings or not all(strings):
            raise UserError("stop strings must not be empty")
        self._strings, self._decode = tuple(strings), decode
        self._reach = max(len(s.encode()) for s in strings)

    def first_stop(self, tokens: Sequence[int], num_new: int) -> int | None:
        """Return how many of ``tokens`` to keep, including the one that completes a stop string; None: no stop.

        Only the last ``num_new`` tokens are new; the others were checked before.
        """
        if not self._has_stop(tokens[-(self._reach + num_new) :]):
            return None
        for count in range(max(1, len(tokens) - num_new + 1), len(tokens) + 1):
            if self._has_stop(tokens[max(0, count - self._reach) : count]):
                return count
        return None

    def _has_stop(self, tokens: Sequence[int]) -> bool:
        text = self._decode(tokens)
        return any(s in text for s in self._strings)


class StepGraph:
    """A CUDA graph of ``step``. Another step must have run before, so that libraries are initialised."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step()

    def run(self) -> None:
        """Run the recorded step."""
        self._graph.replay()


_UNIT = 16
"""Cache lengths are multiples of this: small batched products are twice as fast at such lengths."""


@dataclass
class Job:
    """Samples ``start`` .. ``start + count`` of one request: one prompt, ``count`` rows.

    ``num_shared``: length of the prefix that the prompt shares with other prompts of its member; ``is_read``: whether
    the prompt is in the cache, at ``place``.
    """

    request: int
    start: int
    count: int
    slot: int
    prompt: tuple[int, ...]
    rng_seed: int
    temperature: float = 1.0
    stop_token: int = -1
    stop_count: int = 0
    num_shared: int = 0
    place: int = -1
    is_read: bool = False
    rows: list[int] = field(default_factory=list)


class Decoding:
    """Up to ``num_rows`` rows that are decoded together, and up to ``num_jobs`` prompts (never more than rows)."""

    def __init__(self, base: Base, max_new_tokens: int, num_rows: int, prompt_tokens: int, num_jobs: int) -> None:
        self.base, self.max_new_tokens = base, max_new_tokens
        self.num_rows, num_places = num_rows, min(num_jobs, num_rows)
        device = base.device
        self.own_tokens = _UNIT if device.type == "cpu" else rounded(max_new_tokens)
        self.cache = PrefixCache(
            base.model.config,
            num_places,
            rounded(prompt_tokens),
            num_rows,
            self.own_tokens,
            base.compute_dtype,
            device,
        )
        self.jobs: list[Job | None] = [None] * num_places
        self.row_job: list[Job | None] = [None] * num_rows
        self.row_sample = np.zeros(num_rows, dtype=np.int64)
        self.row_slots = [0] * num_rows
        self.num_alive = 0
        self.prompt_tokens_read = 0
        # (rows,): still decoding, number of tokens, prompt length, last token, ended by an end token or stop string
        self.alive = torch.zeros(num_rows, dtype=torch.bool, device=device)
        self.count = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self.prompt_len = torch.ones(num_rows, dtype=torch.int64, device=device)
        self.last = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self.ended = torch.zeros(num_rows, dtype=torch.bool, device=device)
        # (rows, max_new_tokens): one entry for each token
        self.entropy = torch.zeros(num_rows, max_new_tokens, dtype=torch.float32, device=device)
        self.tokens = torch.zeros(num_rows, max_new_tokens, dtype=torch.int64, device=device)
        self.logprobs = torch.zeros(num_rows, max_new_tokens, dtype=torch.float32, device=device)
        self.noise = torch.zeros(num_rows, max_new_tokens, dtype=torch.float32, device=device)
        self.temperature = torch.ones(num_rows, dtype=torch.float32, device=device)  # (rows,), as the two below
        self.stop_token = torch.full((num_rows,), -1, dtype=torch.int64, device=device)
        self.stops_left = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._grouped: Tensor | None = None
        self._ungrouped: Tensor | None = None
        self._group_size = 1
        self._prompt_bias = torch.zeros(num_places, 1, 1, 1, device=device)  # set by _regroup
        self._longest = 0  # an upper bound of ``count``, known without waiting for the device

    # Admitting and removing rows -----------------------------------------------------------------------------------

    def admit(self, queue: deque[Job]) -> list[Job]:
        """Move jobs from the queue into free rows while the next one fits; return them."""
        free_rows = [i for i, job in enumerate(self.row_job) if job is None]
        free_places = [i for i, job in enumerate(self.jobs) if job is None]
        admitted: list[Job] = []
        room = len(free_rows)
        while queue and queue[0].count <= room and len(admitted) < len(free_places):
            admitted.append(queue.popleft())
            room -= admitted[-1].count
        if not admitted:
            return []
        admitted.sort(key=lambda job: job.slot)  # adjacent rows of one member make blocks without gathering
        rows: list[int] = []
        for job, place in zip(admitted, free_places, strict=False):
            job.place, job.rows = place, free_rows[len(rows) : len(rows) + job.count]
            rows += job.rows
            self.jobs[place] = job
            for sample, row in enumerate(job.rows, start=job.start):
                self.row_job[row], self.row_sample[row], self.row_slots[row] = job, sample, job.slot
        self._start_rows(rows)
        self._regroup()
        self._longest = max(self._longest, 1)
        return admitted

    def _start_rows(self, rows: list[int]) -> None:
        device = self.base.device
        index = torch.tensor(rows, device=device)  # (n,), the rows that start
        jobs = [job for row in rows if (job := self.row_job[row]) is not None]
        samples = [int(self.row_sample[row]) for row in rows]
        self.cache.clear_own(index)
        self.noise[index] = uniforms([job.rng_seed for job in jobs], samples, self.max_new_tokens, device)
        self.temperature[index] = torch.tensor([job.temperature for job in jobs], device=device)
        self.stop_token[index] = torch.tensor([job.stop_token if job.stop_count else -1 for job in jobs], device=device)
        self.stops_left[index] = torch.tensor([job.stop_count for job in jobs], device=device)
        self.prompt_len[index] = torch.tensor([len(job.prompt) for job in jobs], device=device)
        self.count[index] = 0
        self.alive[index] = True

    def collect(self, found: dict[tuple[int, int], Completion]) -> None:
        """Turn finished rows into completions, by (request, sample), and free them. ``TorchSampler._run`` calls it."""
        alive = self.alive.cpu().numpy()
        done = [row for row, job in enumerate(self.row_job) if job is not None and not alive[row]]
        if not done:
            return
        index = torch.tensor(done, device=self.base.device)
        counts = self.count[index].tolist()
        longest = max(counts)
        tokens, logprobs = self.tokens[index, :longest].tolist(), self.logprobs[index, :longest].tolist()
        inside = torch.arange(self.max_new_tokens, device=self.base.device) < self.count[index, None]  # (done, tokens)
        entropies = torch.where(inside, self.entropy[index], 0.0).sum(dim=1).tolist()
        ended = self.ended[index].tolist()
        for i, row in enumerate(done):
            job, n = self.row_job[row], counts[i]
            assert job is not None
            found[job.request, int(self.row_sample[row])] = Completion(
                tuple(tokens[i][:n]), tuple(logprobs[i][:n]), entropies[i] / n, ended[i]
            )
            self.row_job[row] = None
        busy = {id(job) for job in self.row_job if job is not None}
        self.jobs = [job if job is not None and id(job) in busy else None for job in self.jobs]

    def shrink(self) -> None:
        """Drop the rows and prompts that are free. Call after ``collect``."""
        rows = [i for i, job in enumerate(self.row_job) if job is not None]
        places = [i for i, job in enumerate(self.jobs) if job is not None]
        device = self.base.device
        index = torch.tensor(rows, device=device)  # (n,), the rows that stay
        kept_places = None if len(places) == len(self.jobs) else torch.tensor(places, device=device)
        self.cache.keep(kept_places, index)
        names = ("alive", "count", "prompt_len", "last", "ended", "entropy", "tokens", "logprobs", "noise")
        for name in (*names, "temperature", "stop_token", "stops_left"):
            setattr(self, name, getattr(self, name).index_select(0, index))
        self.row_job = [self.row_job[i] for i in rows]
        self.row_sample = self.row_sample[rows]
        self.row_slots = [self.row_slots[i] for i in rows]
        self.jobs = [self.jobs[i] for i in places]
        self.num_rows = len(rows)
        for place, job in enumerate(self.jobs):
            assert job is not None
            job.place = place
        self._regroup()

    def check_ended(self, stopper: StopStrings | None = None, num_steps: int = 1) -> None:
        """End the rows whose text contains a stop string, and count the rows that are still decoding (waits for a GPU).

        ``num_steps``: how many tokens a row may have got since the last call.
        """
        if stopper is not None:
            self._stop_at_strings(stopper, num_steps)
        self.num_alive = int(self.alive.sum())

    def _stop_at_strings(self, stopper: StopStrings, num_steps: int) -> None:
        # A row may have reached an end token after a stop string since the last call.
        occupied = torch.tensor([row for row, job in enumerate(self.row_job) if job is not None])
        index = occupied.to(self.base.device)
        counts, tokens = self.count[index].tolist(), self.tokens[index, : self._longest].tolist()
        for row, count, written in zip(occupied.tolist(), counts, tokens, strict=True):
            stop = stopper.first_stop(written[:count], num_steps)
            if stop is not None:
                self.count[row], self.alive[row], self.ended[row] = stop, False, True

    # Decoding --------------------------------------------------------------------------------------------------

    def read_prompts(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Prefill the cache with prompts (n, length), padded at the end; return hidden states (n, length, hidden)."""
        self.prompt_tokens_read += tokens.numel()
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        self.cache.decoding, self.cache.filling, self.cache.packed = False, places, None
        return self.base.hidden(tokens, positions, self.cache)

    def cached_prefixes(self) -> dict[Prefix, int]:
        """Return the places in the cache of shared prefixes, by member and tokens."""
        read = [job for job in self.jobs if job is not None and job.num_shared and job.is_read]
        return {(job.slot, job.prompt[: job.num_shared]): job.place for job in read}

    def read_packed(self, packed: PackedPrompts, places: Tensor) -> Tensor:
        """Prefill the cache with packed prompts; return hidden states (rows, row length, hidden)."""
        self.prompt_tokens_read += packed.tokens.numel()
        self.cache.decoding, self.cache.filling, self.cache.packed = False, places, packed
        return self.base.hidden(packed.tokens, packed.positions, self.cache, tree=packed.tree)

    def prepare(self, num_steps: int) -> None:
        """Make room for ``num_steps`` tokens in every row. Only a CPU's cache grows: a GPU's has its full length."""
        needed = min(self._longest + num_steps - 1, self.max_new_tokens)
        self._longest = min(self._longest + num_steps, self.max_new_tokens)
        if needed <= self.own_tokens:
            return
        # A cache of exactly the length in use avoids copies in products; growing by a quarter keeps growth cheap.
        self.own_tokens = min(rounded(max(needed, self.own_tokens * 5 // 4)), rounded(self.max_new_tokens))
        self.cache.grow_own(self.own_tokens)

    def next_inputs(self) -> tuple[Tensor, Tensor]:
        """Set the cache up for a decoding step; return each row's last token and position. Call ``prepare`` first."""
        self.cache.decoding, self.cache.step_index = True, self._step_index()
        return self.last, self.prompt_len + self.count - 1

    def next_noise(self, rows: Tensor | None) -> Tensor:
        """The uniform numbers (n,) for the next token of ``rows`` (None: all)."""
        noise, count = (self.noise, self.count) if rows is None else (self.noise[rows], self.count[rows])
        return noise.gather(1, count.clamp(max=self.max_new_tokens - 1)[:, None])[:, 0]  # (n,)

    def append(self, rows: Tensor | None, tokens: Tensor, logprobs: Tensor, entropy: Tensor, is_end: Tensor) -> None:
        """Append one sampled token to each of ``rows`` (None: all) that is still decoding."""
        if rows is None:
            rows = torch.arange(self.num_rows, device=tokens.device)
        alive, count = self.alive[rows], self.count[rows]  # (n,), as all below
        at = count.clamp(max=self.max_new_tokens - 1)
        self.tokens[rows, at] = torch.where(alive, tokens, self.tokens[rows, at])
        self.logprobs[rows, at] = torch.where(alive, logprobs, self.logprobs[rows, at])
        self.entropy[rows, at] = torch.where(alive, entropy, self.entropy[rows, at])
        self.last[rows] = torch.where(alive, tokens, self.last[rows])
        stops = tokens == self.stop_token[rows]  # never equal where stop_token is -1
        left = self.stops_left[rows] - stops.long()
        self.stops_left[rows] = left
        is_end = is_end | (stops & (left <= 0))
        self.ended[rows] = torch.where(alive, is_end, self.ended[rows])
        count = count + alive
        self.count[rows] = count
        self.alive[rows] = alive & ~is_end & (count < self.max_new_tokens)

    def _step_index(self) -> StepIndex:
        heads, device = self.cache.kv_heads, self.base.device
        inside = torch.arange(self.own_tokens, device=device) < self.count[:, None]  # (rows, own length)
        own_bias = torch.zeros(inside.shape, device=device).masked_fill_(~inside, -torch.inf)[:, None, None]
        block = torch.arange(self.num_rows * heads, device=device) * self.own_tokens  # (rows * kv heads,)
        place = block + (self.count - 1).clamp(min=0).repeat_interleave(heads)  # (rows * kv heads,)
        return StepIndex(self._grouped, self._ungrouped, self._group_size, self._prompt_bias, own_bias, place)

    def _regroup(self) -> None:
        """Recompute which rows share which prompt, after rows were added or removed."""
        device, places = self.base.device, len(self.jobs)
        rows_of: list[list[int]] = [[] for _ in range(places)]
        for row, job in enumerate(self.row_job):
            if job is not None:
                rows_of[job.place].append(row)
        lengths = torch.tensor([len(job.prompt) if job else 1 for job in self.jobs], device=device)
        longest = rounded(max(len(job.prompt) if job else 1 for job in self.jobs))
        if 4 * longest < 3 * self.cache.prompt_tokens:
            self.cache.cut_prompts(longest)
        outside = torch.arange(self.cache.prompt_tokens, device=device) >= lengths[:, None]  # (places, prompt length)
        self._prompt_bias = torch.zeros(outside.shape, device=device).masked_fill_(outside, -torch.inf)[:, None, None]
        size = self._group_size = max(1, *(len(rows) for rows in rows_of))
        if places * size == self.num_rows and all(
            rows == [*range(i * size, i * size + size)] for i, rows in enumerate(rows_of)
        ):
            self._grouped = self._ungrouped = None
            return
        grouped = [row for rows in rows_of for row in rows + [0] * (size - len(rows))]
        ungrouped = [0] * self.num_rows
        for place, rows in enumerate(rows_of):
            for k, row in enumerate(rows):
                ungrouped[row] = place * size + k
        self._grouped, self._ungrouped = torch.tensor(grouped, device=device), torch.tensor(ungrouped, device=device)


def rounded(tokens: int) -> int:
    """Return the length of a cache for ``tokens``."""
    return -(-tokens // _UNIT) * _UNIT
