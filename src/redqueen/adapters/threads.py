"""Lanes: work that is distributed over threads of this process.

Each thread runs its own batches, since torch releases Python's global lock while it computes. The distribution depends
only on the work, so a run is reproducible. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.records import Completion, Request
from redqueen.timing import Report, unheard

T = TypeVar("T")


class _Stopped(BaseException):
    """Ends a lane when another lane or ``report`` raised. A BaseException, so that ``except Exception`` ignores it."""


def run_in_threads(work: Sequence[Callable[[Report], T]], report: Report = unheard) -> list[T]:
    """Call each piece of ``work`` on its own thread and return their results in order.

    Each piece gets a report function. Once all have reported, the sums are passed to ``report`` on the caller's thread,
    where it may raise or be interrupted. After an error there or in a piece, the others end at their next report, and
    the error is raised. A single piece runs on the caller's thread.
    """
    if len(work) == 1:
        return [work[0](report)]
    messages: SimpleQueue[tuple[int, tuple[int, int, int] | None]] = SimpleQueue()
    found: dict[int, T] = {}
    errors: list[BaseException] = []
    stop = Event()

    def run(lane: int) -> None:
        def report_lane(done: int, total: int, tokens: int = 0) -> None:
            if stop.is_set():
                raise _Stopped
            messages.put((lane, (done, total, tokens)))

        try:
            found[lane] = work[lane](report_lane)
        except _Stopped:
            pass
        except BaseException as error:
            errors.append(error)
            stop.set()
        finally:
            messages.put((lane, None))

    threads = [Thread(target=run, args=(lane,), daemon=True) for lane in range(len(work))]
    last: dict[int, tuple[int, int, int]] = {}
    running, started = len(work), []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        while running:
            lane, message = messages.get()
            last[lane] = message or last.get(lane, (0, 0, 0))
            running -= message is None
            if message and len(last) == len(work) and not stop.is_set():
                report(*(sum(column) for column in zip(*last.values(), strict=True)))
    finally:
        stop.set()  # also if ``report`` or an interrupt raised
        for thread in started:
            thread.join()
    if errors:
        raise errors[0]
    return [found[lane] for lane in range(len(work))]


class LaneSampler:
    """Implements ``Sampler`` by ``num_lanes`` copies of one, which share its weights; of n lanes in use each gets every
    n-th request.

    The sampler's rows and prompt cache are divided among the lanes in use. In fp32 the samples are the same as with one
    lane; in bfloat16 another batch may round differently.
    """

    def __init__(self, sampler: TorchSampler, num_lanes: int) -> None:
        self._sampler, self._lanes = sampler, [copy(sampler) for _ in range(num_lanes)]

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Return the completions of each request, in order. Raises UserError for a prompt that is empty or too long."""
        num = max(1, min(len(self._lanes), len(requests), self._sampler.max_rows))
        for lane in self._lanes:
            lane.max_rows = self._sampler.max_rows // num
            if (kept := self._sampler.prompt_cache_tokens) is not None:
                lane.prompt_cache_tokens = kept // num
        work = [partial(self._sample, lane, requests[i::num]) for i, lane in enumerate(self._lanes[:num])]
        parts = run_in_threads(work, self._sampler.report)
        return [parts[i % num][i // num] for i in range(len(requests))]

    def _sample(self, lane: TorchSampler, requests: Sequence[Request], report: Report) -> list[list[Completion]]:
        lane.report = report
        return lane.sample(requests)
