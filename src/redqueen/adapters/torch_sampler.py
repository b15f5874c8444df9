"""The sampler in torch: all members decode in one batch, prompts are computed once, finished rows are refilled.

A request becomes a group: its prompt is run once, and its samples are rows that share the prompt's keys and values.
Finished rows are refilled from the queue; when it is empty the batch shrinks to the rows that are still decoding.
Longest prompts go first, so that prompts decoded together are of similar length. Source: ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from redqueen.adapters.bank import AdapterBank, Route
from redqueen.adapters.decoding import Decoding, Job, StepGraph, StopStrings, draw, rounded
from redqueen.adapters.fused_decode import Deltas, FusedDecoder, fused_decoder
from redqueen.adapters.memory import GROUPS_KEPT
from redqueen.adapters.routing import ROW_TOKENS
from redqueen.adapters.shared_prefixes import group_by_prefix, pack_prompts
from redqueen.errors import UserError
from redqueen.records import Completion, Request
from redqueen.timing import Report, unheard


@dataclass(frozen=True)
class StepRoute:
    """The route of decoding steps; ``deltas``: its factors, concatenated for the fused step."""

    route: Route
    deltas: list[list[Deltas | None]] | None


class TorchSampler:
    """Samples from the members of ``bank``.

    ``max_new_tokens`` limits a completion; ``temperature`` 0 means greedy. ``end_tokens``, and the strings of
    ``stopper``, end a completion and are part of it. At most ``max_rows`` are decoded at a time, ``prefill_tokens`` of
    prompts are run at a time, and ``prompt_cache_tokens`` are cached (None: no limit). ``cuda_graphs``: record decoding
    steps if the base is on a GPU. ``prompt_tokens_read`` and ``steps_run`` describe the last call; ``report`` gets the
    number of completions and of new tokens so far.
    """

    def __init__(
        self,
        bank: AdapterBank,
        max_new_tokens: int,
        end_tokens: Sequence[int],
        temperature: float = 1.0,
        max_rows: int = 512,
        prefill_tokens: int = 8192,
        pad_id: int = 0,
        stopper: StopStrings | None = None,
        cuda_graphs: bool = True,
        fused: FusedDecoder | None = None,
        report: Report = unheard,
        prompt_cache_tokens: int | None = None,
    ) -> None:
        if max_new_tokens < 1 or max_rows < 1:
            raise UserError("max_new_tokens and max_rows must be at least 1")
        if temperature < 0.0:
            raise UserError("temperature must be at least 0")
        self.bank, self.base = bank, bank.base
        self.max_new_tokens, self.temperature = max_new_tokens, temperature
        self.max_rows, self.prefill_tokens, self.pad_id = max_rows, prefill_tokens, pad_id
        self.prompt_cache_tokens = prompt_cache_tokens
        self.end_tokens = torch.tensor(sorted(set(end_tokens)), dtype=torch.int64, device=self.base.device)
        self.stopper = stopper
        self.report = report
        self.fused = fused or fused_decoder(bank)
        on_cpu = self.base.device.type == "cpu"
        self.cuda_graphs = cuda_graphs and not on_cpu
        # Checking for finished rows stalls a GPU, so it is done every few steps there; on a CPU it costs nothing. On a
        # GPU a change of shape also needs a new CUDA graph, so the batch shrinks less often.
        self.steps_between_checks = 1 if on_cpu else 8
        self.shrink_frac = 0.25 if on_cpu else 0.5
        self.has_decoded = False  # a step can be recorded only after another has initialised the libraries
        self.prompt_tokens_read = self.steps_run = 0
        self.tempered = False

    @torch.inference_mode()
    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of each request. Raises UserError for a prompt that is empty or too long."""
        self._check(requests)
        found: dict[tuple[int, int], Completion] = {}
        queue = deque(self._jobs(requests))
        self.tempered = any(request.temperature != 1.0 for request in requests)
        if queue:
            self._run(self._decoding(queue), queue, found)
        return [[found[i, s] for s in range(request.num_samples)] for i, request in enumerate(requests)]

    def _decoding(self, queue: Sequence[Job]) -> Decoding:
        """Return the batch for these jobs: rows for all, at most ``max_rows``, and ``GROUPS_KEPT`` times the prompts of
        the groups that fill these rows; fewer if they do not fit into the prompt cache."""
        total, longest = sum(job.count for job in queue), max(len(job.prompt) for job in queue)
        rows = min(self.max_rows, total)
        num_prompts = min(len(queue), -(-GROUPS_KEPT * rows * len(queue) // total))
        if self.prompt_cache_tokens is not None:
            num_prompts = min(num_prompts, max(1, self.prompt_cache_tokens // rounded(longest)))
        rows = min(rows, num_prompts * max(job.count for job in queue))
        return Decoding(self.base, self.max_new_tokens, rows, longest, num_prompts)

    def _run(self, decoding: Decoding, queue: deque[Job], found: dict[tuple[int, int], Completion]) -> None:
        """Refill, decode, collect and shrink until all jobs are done."""
        route = last_route = None  # the last one is kept for its factors, which are reused while the members stay
        graph: StepGraph | None = None
        num_steps = self.steps_between_checks
        steps = written = 0
        total = sum(job.count for job in queue)
        while True:
            self.report(total - sum(job.count for job in queue) - decoding.num_alive, total, written)
            ended = decoding.num_rows - decoding.num_alive
            if queue and (decoding.num_alive == 0 or ended >= 0.25 * decoding.num_rows):
                decoding.collect(found)
                if admitted := decoding.admit(queue):
                    route = graph = None  # a graph holds memory that the prompts may need
                    self._prefill(decoding, admitted)
                    written += sum(job.count for job in admitted)  # the first token of each row
                    decoding.check_ended(self.stopper)
                    continue  # a first token may already be an end token
            if decoding.num_alive == 0:
                break
            if not queue and ended > self.shrink_frac * decoding.num_rows:
                decoding.collect(found)
                decoding.shrink()
                route = graph = None
            decoding.prepare(num_steps)
            if route is None:
                route = last_route = self._route_step(decoding, last_route)
            if self.cuda_graphs and graph is None and self.has_decoded:
                graph = StepGraph(partial(self._decode_one, decoding, route))
            for _ in range(num_steps):
                graph.run() if graph else self._decode_one(decoding, route)
            self.has_decoded = True
            steps += num_steps
            written += num_steps * decoding.num_alive
            decoding.check_ended(self.stopper, num_steps)
        decoding.collect(found)
        self.prompt_tokens_read, self.steps_run = decoding.prompt_tokens_read, steps

    def _prefill(self, decoding: Decoding, jobs: list[Job]) -> None:
        """Run the prompts of new jobs, each once, and sample the first token of each of their rows."""
        for batch in _batches(jobs, self.prefill_tokens):
            for read, some in (
                (self._prefill_whole, [job for job in batch if not job.num_shared]),
                (self._prefill_shared, [job for job in batch if job.num_shared]),
            ):
                if some:
                    logits = self.base.logits(read(decoding, some))  # (jobs, vocabulary) fp32
                    rows = torch.tensor([row for job in some for row in job.rows], device=self.base.device)
                    # (rows of these jobs,): the job of each row
                    source = torch.tensor([i for i, job in enumerate(some) for _ in job.rows], device=self.base.device)
                    self._append(decoding, logits[source], rows)

    def _prefill_whole(self, decoding: Decoding, jobs: list[Job]) -> Tensor:
        """Run whole prompts; return the hidden state of the last token of each (jobs, width)."""
        length = max(len(job.prompt) for job in jobs)
        tokens = torch.full((len(jobs), length), self.pad_id, dtype=torch.int64)  # (jobs, length)
        for i, job in enumerate(jobs):
            tokens[i, : len(job.prompt)] = torch.tensor(job.prompt)
        places = torch.tensor([job.place for job in jobs], device=self.base.device)
        last = torch.tensor([len(job.prompt) - 1 for job in jobs], device=self.base.device)  # (jobs,)
        route = self.bank.route([job.slot for job in jobs], tokens_per_row=length)
        with self.bank.routed(route), self.base.autocast():
            hidden = decoding.read_prompts(tokens.to(self.base.device), places)  # (jobs, length, width)
        return hidden[torch.arange(len(jobs), device=self.base.device), last]

    def _prefill_shared(self, decoding: Decoding, jobs: list[Job]) -> Tensor:
        """Run prompts, each shared prefix once; return the hidden state of the last token of each (jobs, width)."""
        packed = pack_prompts(
            [job.slot for job in jobs],
            [job.prompt for job in jobs],
            [job.num_shared for job in jobs],
            decoding.cached_prefixes(),
            self.pad_id,
            self.base.compute_dtype,
        )
        last = torch.tensor([int(packed.sources[i, len(job.prompt) - 1]) for i, job in enumerate(jobs)])  # (jobs,)
        places = torch.tensor([job.place for job in jobs], device=self.base.device)
        route = self.bank.route(packed.owners, tokens_per_row=ROW_TOKENS)
        with self.bank.routed(route), self.base.autocast():
            hidden = decoding.read_packed(packed.to(self.base.device), places)  # (rows, row length, width)
        for job in jobs:
            job.is_read = True
        return hidden.reshape(-1, hidden.shape[-1])[last.to(self.base.device)]  # (jobs, width)

    def _route_step(self, decoding: Decoding, last: StepRoute | None) -> StepRoute:
        route = self.bank.route(decoding.row_slots, like=last.route if last else None)
        if last and route.a is last.route.a:
            return StepRoute(route, last.deltas)
        return StepRoute(route, self.fused.deltas(route) if self.fused else None)

    def _decode_one(self, decoding: Decoding, route: StepRoute) -> None:
        """Decode one token in every row, without waiting for the host."""
        tokens, positions = decoding.next_inputs()  # (rows,) each
        if self.fused and route.deltas:
            # (rows, width)
            hidden = self.fused.step(tokens, positions, decoding.cache, route.route.layout, route.deltas)
        else:
            with self.bank.routed(route.route), self.base.autocast():
                hidden = self.base.hidden(tokens[:, None], positions[:, None], decoding.cache)[:, 0]  # (rows, width)
        self._append(decoding, self.base.logits(hidden), None)

    def _append(self, decoding: Decoding, logits: Tensor, rows: Tensor | None) -> None:
        noise = decoding.next_noise(rows)  # (n,), n = len(rows), or all rows where it is None
        if self.tempered:
            # (n, vocabulary)
            logits = logits / (decoding.temperature if rows is None else decoding.temperature[rows])[:, None]
        tokens, logprobs, entropy = draw(logits, noise, self.temperature)  # (n,) each
        decoding.append(rows, tokens, logprobs, entropy, (tokens[:, None] == self.end_tokens).any(dim=1))

    def _jobs(self, requests: Sequence[Request]) -> list[Job]:
        """Cut requests into groups of at most ``max_rows`` rows, longest prompts first, members together.

        Shared prefixes are found over all of a member's prompts in this call, however they are batched.
        """
        num_shared = _shared(requests)
        jobs = [
            Job(
                i,
                start,
                min(self.max_rows, r.num_samples - start),
                r.slot,
                r.prompt,
                r.rng_seed,
                r.temperature,
                r.stop_token,
                r.stop_count,
                num_shared[i],
            )
            for i, r in enumerate(requests)
            for start in range(0, r.num_samples, self.max_rows)
        ]
        return sorted(jobs, key=lambda job: (-len(job.prompt), job.slot))

    def _check(self, requests: Sequence[Request]) -> None:
        longest = self.base.max_positions - self.max_new_tokens
        for request in requests:
            if not request.prompt:
                raise UserError("a prompt must have at least one token")
            if len(request.prompt) > longest:
                raise UserError(
                    f"a prompt of {len(request.prompt)} tokens and max_new_tokens {self.max_new_tokens} exceed the "
                    f"base model's {self.base.max_positions} positions; shorten the prompt or lower max_new_tokens"
                )


def _shared(requests: Sequence[Request]) -> list[int]:
    """Return for each request the length of the prefix that its prompt shares with others of its member."""
    members: dict[int, list[int]] = {}
    for i, request in enumerate(requests):
        members.setdefault(request.slot, []).append(i)
    found = [0] * len(requests)
    for own in members.values():
        for group, num in group_by_prefix([requests[i].prompt for i in own]):
            for i in group:
                found[own[i]] = num
    return found


def _batches(jobs: list[Job], token_budget: int) -> list[list[Job]]:
    """Cut jobs, longest prompts first, into batches of at most ``token_budget`` padded tokens (at least one job)."""
    batches: list[list[Job]] = []
    for job in sorted(jobs, key=lambda job: -len(job.prompt)):
        if batches and (len(batches[-1]) + 1) * len(batches[-1][0].prompt) <= token_budget:
            batches[-1].append(job)
        else:
            batches.append([job])
    return [sorted(batch, key=lambda job: job.slot) for batch in batches]
