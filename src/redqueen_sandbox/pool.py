"""The pool of zygotes, and the loop that distributes jobs to them.

A caller writes generators that yield a ``Job`` and are sent its ``Run``. ``Pool.drive`` runs any number of them
concurrently and returns their return values in order. Zygotes that die, hang or are stopped are replaced and their
jobs tried again; after ``_MAX_ATTEMPTS`` a job ends as ``infra``.
"""

from __future__ import annotations

import collections
import contextlib
import os
import secrets
import selectors
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import TypeVar

from redqueen_sandbox.errors import UserError
from redqueen_sandbox.inside import wire
from redqueen_sandbox.records import REQUIRED, Report, unheard
from redqueen_sandbox.runs import MAX_REPLY_BYTES, Job, Run, read_run
from redqueen_sandbox.zygotes import ZygoteHandle, ZygoteSettings, start_zygote

Answer = TypeVar("Answer")
Jobs = Generator[Job, Run, Answer]
"""A generator for ``Pool.drive``: it yields one job at a time, is sent the job's run, and returns its answer."""

_QUEUE_DEPTH = 3  # jobs sent ahead to a zygote, so that it never waits for the judge
_MAX_ATTEMPTS = 3
_GRACE_S = 1.0  # after a job's wall deadline; then its zygote counts as stuck
_RESTART_PAUSE_S = 0.05
_MAX_FAILURES = 8  # failed starts in a row of the zygotes that a job needs; then such jobs end as ``infra``
_OPEN_PER_WORKER = 16


@dataclass
class _Pending:
    """A job in progress. ``index`` is the number of its generator, ``file`` a descriptor or -1 for none."""

    index: int
    job: Job
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    attempts: int = 0
    file: int = -1
    job_bytes: int = 0


_ZygoteKey = tuple[str, int]
"""A zygote's kind and the number of its hash seed. As the request of a job the number may be -1: any seed."""
_Finished = tuple[_Pending, Run]


class Pool:
    """Zygotes under different hash seeds, of which at most ``workers`` are busy at a time.

    They belong to the process that created the pool: a forked copy of the pool can neither run jobs nor end zygotes.
    """

    def __init__(
        self, workers: int, num_seeds: int, first_kind: str, settings: ZygoteSettings, report: Report = unheard
    ) -> None:
        self.workers = workers
        self.first_kind = first_kind
        self.settings = settings
        self.report = report
        self.zygotes: dict[_ZygoteKey, ZygoteHandle] = {}
        self.waiting: collections.deque[_Pending] = collections.deque()
        self.sent: dict[_ZygoteKey, collections.deque[tuple[int, _Pending]]] = {}
        self.next_job_id = 1
        self.num_starts = 0
        self._num_base = max(workers, min(2, num_seeds))
        self._files: list[int] = []  # empty memory files (memfd), kept for the next jobs
        self._selector = selectors.DefaultSelector()
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._is_driving = False
        self._is_closed = False
        self._required: frozenset[str] = frozenset()  # protections of the first zygotes: later ones need them too
        self._starting: list[ZygoteHandle] = []
        self._failures: collections.Counter[_ZygoteKey] = collections.Counter()  # failed starts in a row
        self._retry_at_s: dict[_ZygoteKey, float] = {}

    def start(self) -> None:
        """Start one zygote of the first kind for each worker, at least two if there are two hash seeds. Others start
        when they are needed. Raises UserError when one of the first fails to start."""
        try:
            for seed in range(self._num_base):
                self._adopt(start_zygote(self.first_kind, seed, self.settings))
            for zygote in self.zygotes.values():
                self._wait_hello(zygote, self.zygotes.values())
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise UserError(f"the sandbox could not start: {error}") from None
            raise
        self._required = frozenset(name for name, holds in self.observed().items() if holds and name in REQUIRED)

    def observed(self) -> dict[str, bool]:
        """Return for each protection whether its canary holds on every zygote."""
        reports = [zygote.observed for zygote in list(self.zygotes.values())]
        return {name: all(report[name] for report in reports) for name in reports[0]} if reports else {}

    def close(self) -> None:
        """End all zygotes and their children. A ``drive`` in progress ends with UserError; this call waits for that."""
        if os.getpid() != self._owner:
            return
        self._is_closed = True
        for zygote in [*list(self.zygotes.values()), *self._starting]:
            zygote.process.kill()
        with self._lock:
            if not self._is_driving:
                self._release()

    def _release(self) -> None:
        for key in list(self.zygotes):
            self._dismiss(key)
        while self._files:
            os.close(self._files.pop())
        self._selector.close()

    def drive(self, work: Iterable[Jobs[Answer]]) -> list[Answer]:
        """Run all generators to their end. Returns their answers in the order of ``work``.

        Raises UserError when the pool is closed or a forked copy, and when one of the generators calls it.
        """
        if os.getpid() != self._owner:
            raise UserError("a verifier serves the process that opened it: open another one after a fork")
        with self._lock:
            if self._is_driving:
                raise UserError("a verifier serves one call at a time: do not call it from a generator that it runs")
            self._failures.clear()  # starts that failed for lack of memory are tried again
            self._retry_at_s.clear()
            self._is_driving = True
            try:
                return self._drive(iter(work), len(work) if isinstance(work, Sized) else 0)
            finally:
                self._abandon()
                self._is_driving = False
                if self._is_closed:
                    self._release()

    def _abandon(self) -> None:
        """Discard the jobs that an interrupted ``drive`` left, and end the zygotes that run them."""
        self.waiting.clear()
        for key in [key for key, queue in self.sent.items() if queue]:
            self._dismiss(key)

    def _drive(self, work: Iterator[Jobs[Answer]], total: int) -> list[Answer]:
        answers: dict[int, Answer] = {}
        open_work: dict[int, Jobs[Answer]] = {}
        num_started = 0
        exhausted = False
        while True:
            if self._is_closed:
                raise UserError("this verifier is closed")
            while not exhausted and len(open_work) < _OPEN_PER_WORKER * self.workers:
                jobs = next(work, None)
                if jobs is None:
                    exhausted = True
                    break
                open_work[num_started] = jobs
                self._advance(open_work, num_started, None, answers)
                num_started += 1
            if exhausted and not open_work:
                break
            for pending, run in [*self._dispatch(), *self._wait()]:
                self._advance(open_work, pending.index, run, answers)
            self.report(len(answers), total)
        return [answers[index] for index in range(num_started)]

    def _advance(
        self, open_work: dict[int, Jobs[Answer]], index: int, run: Run | None, answers: dict[int, Answer]
    ) -> None:
        try:
            job = next(open_work[index]) if run is None else open_work[index].send(run)
        except StopIteration as stop:
            answers[index] = stop.value
            del open_work[index]
            return
        # The next job of a generator goes first, so that begun generators finish early.
        (self.waiting.append if run is None else self.waiting.appendleft)(_Pending(index, job))

    # ---- sending --------------------------------------------------------------------------------------------------

    def _dispatch(self) -> list[_Finished]:
        """Send waiting jobs to zygotes that can take them. Returns the jobs for which no zygote can be started."""
        finished: list[_Finished] = []
        postponed: list[_Pending] = []
        refused: set[_ZygoteKey] = set()  # requests that no zygote can take at present: do not search again
        room = self.workers * _QUEUE_DEPTH - sum(map(len, self.sent.values()))
        while self.waiting and room > 0:
            pending = self.waiting.popleft()
            wanted = self._wanted(pending.job)
            chosen = None if wanted in refused else self._choose(pending.job)
            if chosen is not None:
                if not self.sent[chosen]:
                    refused.clear()  # once busy, it may take jobs that it could not take while idle
                if self._send(chosen, pending):
                    room -= 1
                elif pending.attempts >= _MAX_ATTEMPTS:
                    finished.append((pending, Run("infra", "no room for its file")))
                else:
                    postponed.append(pending)
            elif self._failures[wanted] >= _MAX_FAILURES and not self._eligible(pending.job):
                finished.append((pending, Run("infra", "no zygote could be started")))
            else:
                refused.add(wanted)
                postponed.append(pending)
        self.waiting.extendleft(reversed(postponed))
        return finished

    def _eligible(self, job: Job) -> list[_ZygoteKey]:
        return [key for key in self.zygotes if key[0] == job.kind and job.seed in (-1, key[1])]

    def _wanted(self, job: Job) -> _ZygoteKey:
        """Return the key under which failed starts are counted: any seed (-1) while the kind has no zygote."""
        return job.kind, job.seed if any(kind == job.kind for kind, _ in self.zygotes) else -1

    def _choose(self, job: Job) -> _ZygoteKey | None:
        """Return the zygote for a job: a busy one with room in its queue, or an idle one while a worker is free."""
        num_busy = sum(1 for queue in self.sent.values() if queue)
        eligible = self._eligible(job)
        room = min(self._num_base - len(eligible), self.workers - num_busy)
        wanted = self._wanted(job)
        may_start = not eligible or (job.seed < 0 and self._failures[wanted] < _MAX_FAILURES)
        if room > 0 and may_start:
            known = {seed for kind, seed in self.zygotes if kind == job.kind}
            same_kind = [job, *(pending.job for pending in self.waiting if pending.job.kind == job.kind)]
            seeds = range(self._num_base) if job.seed < 0 else dict.fromkeys(j.seed for j in same_kind if j.seed >= 0)
            new = [seed for seed in seeds if seed not in known][: min(room, len(same_kind))]
            eligible += self._grow(wanted, new) if new else []
        fitting = [
            key
            for key in eligible
            if job.seed in (-1, key[1])
            and len(self.sent[key]) < _QUEUE_DEPTH
            and (self.sent[key] or num_busy < self.workers)
        ]
        return min(fitting, key=lambda key: len(self.sent[key]), default=None)

    def _send(self, key: _ZygoteKey, pending: _Pending) -> bool:
        """Send a job to a zygote. Returns False when no descriptor or memory is free for its file."""
        zygote = self.zygotes[key]
        job_id = self.next_job_id
        self.next_job_id += 1
        pending.attempts += 1
        try:
            pending.file = self._files.pop() if self._files else os.memfd_create("job", os.MFD_CLOEXEC)
            request, pending.job_bytes = pending.job.request(job_id, pending.nonce, pending.file)
        except OSError:
            self._recycle_file(pending)
            return False
        if not self.sent[key]:
            zygote.head_since_s = time.monotonic()
        self.sent[key].append((job_id, pending))
        zygote.queue(request, pending.file)
        self._watch(zygote)
        return True

    # ---- waiting --------------------------------------------------------------------------------------------------

    def _wait(self) -> list[_Finished]:
        """Wait for replies, deaths or deadlines. Returns the jobs that have ended."""
        done: list[_Finished] = []
        for ready, mask in self._selector.select(self._timeout_s()):
            key = ready.data
            zygote = self.zygotes.get(key)
            if zygote is None:
                continue
            alive = True
            if mask & selectors.EVENT_WRITE:
                alive = zygote.flush()
            if alive and mask & selectors.EVENT_READ:
                alive = zygote.receive()
                alive = self._take_replies(key, done) and alive
            if alive:
                self._watch(zygote)
            else:
                self._lose(key, done)
        now_s = time.monotonic()
        for key, queue in list(self.sent.items()):
            if queue and now_s > self._deadline_s(key):
                self._lose(key, done)
        return done

    def _take_replies(self, key: _ZygoteKey, done: list[_Finished]) -> bool:
        """Read the complete replies of a zygote. Returns False when one of them does not belong to its current job."""
        zygote = self.zygotes[key]
        while (reply := zygote.next_reply()) is not None:
            header, _ = reply
            if not self.sent[key] or self.sent[key][0][0] != header.job_id or header.stopped == wire.STARTED:
                return False
            _, pending = self.sent[key].popleft()
            zygote.head_since_s = time.monotonic()
            size = min(os.fstat(pending.file).st_size, MAX_REPLY_BYTES)
            payload = os.pread(pending.file, size, pending.job_bytes)
            self._recycle_file(pending)
            header.payload_bytes = len(payload)
            run = read_run(pending.job, header, payload, pending.nonce, key[1])
            if run.ended == "infra" and pending.attempts < _MAX_ATTEMPTS:
                self.waiting.append(_Pending(pending.index, pending.job, attempts=pending.attempts))
            else:
                done.append((pending, run))
        return not zygote.is_garbled

    def _timeout_s(self) -> float:
        deadlines = [self._deadline_s(key) for key, queue in self.sent.items() if queue]
        until_s = min(deadlines) - time.monotonic() if deadlines else _RESTART_PAUSE_S
        return min(max(0.0, until_s), _RESTART_PAUSE_S if self._failures else until_s)

    def _deadline_s(self, key: _ZygoteKey) -> float:
        job = self.sent[key][0][1].job
        return self.zygotes[key].head_since_s + job.wall_ms / 1000 + _GRACE_S

    # ---- losing and replacing -------------------------------------------------------------------------------------

    def _lose(self, key: _ZygoteKey, done: list[_Finished]) -> None:
        """Dismiss a zygote that died, hung or sent an invalid reply, and try its jobs again. Only the first job in its
        queue can be the cause, so the attempt counts for that job alone."""
        orphans = [pending for _, pending in self.sent[key]]
        for pending in orphans[1:]:
            pending.attempts -= 1
        self._dismiss(key)
        for pending in orphans:
            if pending.attempts >= _MAX_ATTEMPTS:
                done.append((pending, Run("infra", "its zygote was lost", seed=key[1])))
            else:
                self.waiting.append(_Pending(pending.index, pending.job, attempts=pending.attempts))

    def _grow(self, wanted: _ZygoteKey, seeds: Sequence[int]) -> list[_ZygoteKey]:
        """Start zygotes for a request, in parallel. Returns those that came up; the others are tried again later."""
        if time.monotonic() < self._retry_at_s.get(wanted, 0.0):
            return []
        started: list[_ZygoteKey] = []
        try:
            for seed in seeds:
                self.num_starts += 1
                with contextlib.suppress(OSError):
                    self._starting.append(start_zygote(wanted[0], seed, self.settings))
            for zygote in self._starting:
                with contextlib.suppress(OSError):
                    self._wait_hello(zygote, self._starting)
                    if all(zygote.observed.get(name) for name in self._required):
                        started.append(self._adopt(zygote))
        finally:
            for zygote in self._starting:
                if (zygote.kind, zygote.seed) not in started:
                    zygote.end()
            self._starting.clear()
        if started:
            del self._failures[wanted]
        else:
            self._failures[wanted] += 1
        if len(started) < len(seeds):
            pause_s = _RESTART_PAUSE_S * min(max(1, self._failures[wanted]), 10)
            self._retry_at_s[wanted] = time.monotonic() + pause_s
        return started

    def _wait_hello(self, zygote: ZygoteHandle, others: Iterable[ZygoteHandle]) -> None:
        """Wait until a zygote is up, then restart the deadline of ``others``: the machine may be slow, not hung."""
        zygote.wait_hello()
        for other in others:
            other.awaited_since_s = time.monotonic()

    def _adopt(self, zygote: ZygoteHandle) -> _ZygoteKey:
        key = (zygote.kind, zygote.seed)
        self._selector.register(zygote.socket, selectors.EVENT_READ, key)
        self.zygotes[key] = zygote
        self.sent[key] = collections.deque()
        return key

    def _dismiss(self, key: _ZygoteKey) -> None:
        zygote = self.zygotes.pop(key)
        self._selector.unregister(zygote.socket)
        zygote.end()
        for _, pending in self.sent.pop(key):
            os.close(pending.file)  # not reused: a child may still have it open

    def _recycle_file(self, pending: _Pending) -> None:
        """Empty a job's file for reuse. The child that had it has ended."""
        if pending.file >= 0:
            os.ftruncate(pending.file, 0)
            os.lseek(pending.file, 0, os.SEEK_SET)
            self._files.append(pending.file)
            pending.file = -1

    def _watch(self, zygote: ZygoteHandle) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if zygote.has_unsent else 0)
        if self._selector.get_key(zygote.socket).events != events:
            self._selector.modify(zygote.socket, events, (zygote.kind, zygote.seed))
