"""Lanes: work that is distributed over threads of this process.

Each thread runs batches of its own, since torch lets go of Python's lock while it computes. Who gets what depends on
the work alone, so a run repeats. Source: ours.
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
    """Ends a lane whose siblings have failed or whose listener wants no more; no ``except Exception`` holds it up."""


def side_by_side(work: Sequence[Callable[[Report], T]], report: Report = unheard) -> list[T]:
    """Call each piece of ``work`` on a thread of its own and return what they return, in order.

    Each is given a report; what they say is added up and, as soon as each has spoken, passed on to ``report`` on the
    caller's thread, so that it may raise or be interrupted there. Then, and when a piece raises, the others end at
    their next report, and the error is the caller's. One piece runs on the caller's thread.
    """
    if len(work) == 1:
        return [work[0](report)]
    said: SimpleQueue[tuple[int, tuple[int, int, int] | None]] = SimpleQueue()
    found: dict[int, T] = {}
    errors: list[BaseException] = []
    stop = Event()

    def run(lane: int) -> None:
        def tell(done: int, total: int, tokens: int = 0) -> None:
            if stop.is_set():
                raise _Stopped
            said.put((lane, (done, total, tokens)))

        try:
            found[lane] = work[lane](tell)
        except _Stopped:
            pass
        except BaseException as error:
            errors.append(error)
            stop.set()
        finally:
            said.put((lane, None))

    threads = [Thread(target=run, args=(lane,), daemon=True) for lane in range(len(work))]
    last: dict[int, tuple[int, int, int]] = {}
    running, started = len(work), []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        while running:
            lane, news = said.get()
            last[lane] = news or last.get(lane, (0, 0, 0))
            running -= news is None
            if news and len(last) == len(work) and not stop.is_set():
                report(*(sum(column) for column in zip(*last.values(), strict=True)))
    finally:
        stop.set()  # where ``report`` or an interrupt has raised
        for thread in started:
            thread.join()
    if errors:
        raise errors[0]
    return [found[lane] for lane in range(len(work))]


class LaneSampler:
    """Implements ``Sampler`` by ``num_lanes`` copies of one, which share its weights: each answers every n-th request.

    The sampler's rows and prompts are divided among the lanes that a call needs. In fp32 the samples are the sampler's
    own; in bfloat16 a batch that is cut otherwise may round otherwise.
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
        parts = side_by_side(work, self._sampler.report)
        return [parts[i % num][i // num] for i in range(len(requests))]

    def _sample(self, lane: TorchSampler, requests: Sequence[Request], report: Report) -> list[list[Completion]]:
        lane.report = report
        return lane.sample(requests)
