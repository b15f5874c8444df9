"""Unit-test problems (HumanEval, MBPP): the tests run in one caged child, the program in another.

In the tests' process a proxy replaces the program's function. The judge forwards each call as canonical literals to
the program's process, and the return value the same way back; it parses and rewrites every value. So no program sees an
expected value or can redefine ``==`` or ``assert`` for the tests, and the record "passed" comes, under a nonce, from a
process that never held untrusted code.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from redqueen_sandbox.errors import UserError
from redqueen_sandbox.guard import VERDICT, guarded
from redqueen_sandbox.inside.cage import POLL_MS
from redqueen_sandbox.inside.roles import NO_MORE
from redqueen_sandbox.literals import LiteralError, canonical, canonical_args
from redqueen_sandbox.records import WEAK, Grade, Limits
from redqueen_sandbox.runs import Job, death
from redqueen_sandbox.zygotes import Lost, Peer, ZygoteHandle, ZygoteSettings, start_zygote, wait_for

TEST_LIMITS = Limits(
    cpu_ms=10_000, accept_cpu_ms=10_000, wall_ms=30_000, memory_bytes=1 << 30, max_output_chars=1 << 20
)
"""Limits for benchmarks, which are written for time limits of seconds, not milliseconds (ours)."""
_NO_TEST = "no-test"
_GRACE_S = 2.0
_TRIES = 2


@dataclass(frozen=True)
class UnitTest:
    """One program and the tests it must pass.

    ``tests`` are Python statements, in which ``entry`` and ``candidate`` are both names of the program's function.
    ``helpers``: further code that the tests need (some HumanEval prompts define it). Tests and helpers are trusted;
    ``code`` is not.
    """

    id: str
    code: str
    tests: str
    entry: str
    helpers: str = ""

    def __post_init__(self) -> None:
        for name in ("code", "tests", "entry", "helpers"):
            if not isinstance(given := getattr(self, name), str):
                raise UserError(f"{name} of the unit test {self.id} is {given!r:.100}: give a text")


class UnitTester:
    """Grades programs by unit tests, ``workers`` problems at a time. Use it as a context manager. It serves one call at
    a time, in the process that opened it.

    ``allow_weak`` runs programs even without a system-call filter; otherwise ``grade`` raises UserError there.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits = TEST_LIMITS,
        settings: ZygoteSettings | None = None,
        allow_weak: bool = False,
    ) -> None:
        if workers < 1:
            raise UserError("a unit tester needs workers >= 1")
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._pairs = [_ZygotePair(limits, settings or ZygoteSettings(), allow_weak) for _ in range(workers)]

    def __enter__(self) -> UnitTester:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all zygotes."""
        for pair in self._pairs:
            pair.close()

    def grade(self, tests: Sequence[UnitTest]) -> list[Grade]:
        """Grade each program, in order. ``ok`` with ``correct`` False: it ran, and a test failed (see ``detail``).

        Raises UserError for tests that cannot run, and for tests that every function passes.
        """
        if os.getpid() != self._owner:
            raise UserError("a unit tester serves the process that opened it: open another one after a fork")
        num_pairs = len(self._pairs)

        def work(index: int) -> list[Grade]:
            return [self._pairs[index].grade(test) for test in tests[index::num_pairs]]

        with self._lock, ThreadPoolExecutor(num_pairs) as threads:
            shares = list(threads.map(work, range(num_pairs)))
        grades = [shares[i % num_pairs][i // num_pairs] for i in range(len(tests))]
        for test, grade in zip(tests, grades, strict=True):
            if grade.verdict == _NO_TEST:
                raise UserError(f"{test.id}: the tests {grade.detail}")
        return grades


class _ZygotePair:
    """Two zygotes that run one problem at a time: one for the program, one for the tests."""

    def __init__(self, limits: Limits, settings: ZygoteSettings, allow_weak: bool) -> None:
        self.limits = limits
        self.settings = settings
        self.allow_weak = allow_weak
        self.zygotes: list[ZygoteHandle] = []
        self.next_job_id = 1

    def close(self) -> None:
        for zygote in self.zygotes:
            zygote.end()
        self.zygotes.clear()

    def grade(self, test: UnitTest) -> Grade:
        """Grade one program. One that seemed asleep is run again: on a busy machine it may have waited for a core."""
        grade = self._grade(test)
        return self._grade(test) if (grade.verdict, grade.detail) == ("timeout", "asleep") else grade

    def _grade(self, test: UnitTest) -> Grade:
        """Run one problem; if a zygote is lost, replace it and try the problem once more."""
        for _ in range(_TRIES):
            try:
                self._start()
                return guarded("unit test", lambda: self._run(test), self._judge_failed)
            except OSError:
                self.close()
        return Grade(False, "infra", "its zygote was lost", lost=True)

    def _judge_failed(self, detail: str) -> Grade:
        self.close()  # the session was interrupted: the next program needs fresh zygotes
        return Grade(False, VERDICT, detail)

    def _start(self) -> None:
        while len(self.zygotes) < 2:
            zygote = start_zygote("open", len(self.zygotes), self.settings)
            self.zygotes.append(zygote)
            zygote.wait_hello()
            if not zygote.observed.get("seccomp") and not self.allow_weak:
                self.close()
                raise UserError(WEAK)

    def _peer(self, number: int, code: str, role: tuple[str, ...], entry: str) -> Peer:
        limits = self.limits
        job = Job(
            code=code,
            inputs=(),
            mode="each",
            cpu_ms=limits.cpu_ms,
            wall_ms=limits.wall_ms,
            memory_bytes=limits.memory_bytes,
            max_output_chars=limits.max_output_chars,
            entry=entry,
        )
        return Peer(self.zygotes[number], job, role, self.next_job_id)

    def _run(self, test: UnitTest) -> Grade:
        with contextlib.ExitStack() as peers:
            program = self._peer(0, test.code, ("player",), test.entry)
            peers.callback(program.close)
            tests = self._peer(1, test.tests, ("tester", test.helpers), test.entry)
            peers.callback(tests.close)
            self.next_job_id += 1
            session = _Session(program, tests, self.limits.max_output_chars)
            deadline_s = time.monotonic() + self.limits.wall_ms / 1000 + _GRACE_S
            while not (program.end and tests.end):
                session.advance()
                self._wait(deadline_s, session)
            session.advance()
            return session.grade()

    def _wait(self, deadline_s: float, session: _Session) -> None:
        left_s = deadline_s - time.monotonic()
        peers = [peer for peer in (session.program, session.tests) if peer.end is None]
        if not peers:
            return
        sockets = {end: peer for peer in peers for end in (peer.socket, peer.zygote.socket)}
        unsent = [peer.socket for peer in peers if peer.has_unsent]
        ready = wait_for(sockets, unsent, min(left_s, POLL_MS / 1000))
        if not ready and left_s <= 0:  # only if nothing came: reading a long answer takes the judge time
            raise Lost
        if not ready:
            session.stop_if_asleep()
        for peer in peers:
            peer.flush()
        for peer in dict.fromkeys(sockets[end] for end in ready):
            peer.receive()


class _Session:
    """The state of one problem: the calls between its two processes, and the grade once it is decided."""

    def __init__(self, program: Peer, tests: Peer, max_chars: int) -> None:
        self.program = program
        self.tests = tests
        self.max_chars = max_chars
        self.call: str | None = None  # a call of the tests that was not yet sent to the program
        self.is_ready = False
        self.has_answered = False
        self.num_unanswered = 1  # requests that the program has not answered; the first is to be ready
        self.outcome: Grade | None = None

    def advance(self) -> None:
        """Handle all records received so far, and the ends of the two processes."""
        while (record := self.tests.next_record()) is not None:
            self.handle_tests_record(*record)
        while self.outcome is None and (record := self.program.next_record()) is not None:
            self.handle_program_record(*record)
        if self.call is not None and self.is_ready:
            self.num_unanswered += 1
            self.program.send_text(self.call)
            self.call = None
        if self.program.is_forged:
            self.decide(Grade(False, "bad-frame", "not a valid reply"))
        if self.program.end is not None and self.outcome is None:
            if not self.num_unanswered:  # the program was waiting for the tests
                self.fail("took too long")
            verdict, detail = death(self.program.job, self.program.end)
            if verdict == "ok":
                verdict, detail = "no-result", "the program ended during the tests"
            self.decide(Grade(False, verdict, detail, lost=verdict == "infra"))
        if self.tests.end is not None:
            self.fail("ended with " + " ".join(death(self.tests.job, self.tests.end)))

    def fail(self, how: str) -> None:
        """Decide the grade when the tests failed to run: lost, unless an answer of the program may be the cause."""
        is_lost = not self.has_answered
        self.decide(Grade(False, "infra" if is_lost else "ok", f"the tests {how}", lost=is_lost))

    def stop_if_asleep(self) -> None:
        """Stop the program if it has a request to answer but uses no CPU time. Called when no data has arrived."""
        detector = self.program.sleep_detector
        if self.program.end is None and self.num_unanswered > 0 and detector is not None and detector.poll():
            self.decide(Grade(False, "timeout", "asleep"))
            self.program.stop()

    def decide(self, grade: Grade) -> None:
        """Set the grade if none is set yet, and let both children end."""
        if self.outcome is None:
            self.outcome = grade
            self.program.send(NO_MORE)
            self.tests.send(NO_MORE)

    def handle_tests_record(self, kind: str, detail: str, text: str) -> None:
        if kind == "call":
            try:
                self.call = canonical_args(text, loose=True, max_chars=self.max_chars)
            except LiteralError as error:
                self.fail(f"call with {error}")
        elif kind == "passed":
            self.decide(Grade(True, "ok"))
        elif kind == "failed":
            self.decide(Grade(False, "ok", detail))
        elif kind in ("untested", "broken", "syntax"):
            why = "pass whatever the function returns: give assertions about its values"
            self.decide(grade := Grade(False, _NO_TEST, why if kind == "untested" else f"cannot run ({detail})"))
            self.outcome = grade  # whatever the program did: the tests are at fault
        elif kind == "unpassable" and not self.has_answered:
            self.decide(Grade(False, _NO_TEST, "call the function with a value that is not plain: give plain values"))
        elif kind == "memory":
            self.fail(f"end with {detail}")

    def handle_program_record(self, kind: str, detail: str, text: str) -> None:
        if kind == "ready" and not self.is_ready:
            self.is_ready = True
            self.num_unanswered -= 1
        elif kind in ("ok", "error") and self.is_ready:
            self.num_unanswered -= 1
            self.has_answered = True
            if self.num_unanswered < 0:
                self.decide(Grade(False, "bad-frame", "an answer without a call"))
                self.program.stop()
            elif kind == "error":
                self.tests.send_text("!" + detail)
            else:
                try:
                    self.tests.send_text("=" + canonical(text, loose=True, keep_order=True, max_chars=self.max_chars))
                except LiteralError:
                    self.decide(Grade(False, "invalid-output", "not canonical"))
        elif kind in ("invalid-output", "too-large") and self.is_ready:  # not an exception: the tests may expect one
            self.decide(Grade(False, "ok", f"{kind} {detail}"))
        elif kind == "error":
            missing = text == "no entry function"
            self.decide(Grade(False, "syntax" if missing else "error", "no entry function" if missing else detail))
        elif kind in ("syntax", "memory"):
            self.decide(Grade(False, kind, detail))
        elif kind != "end":
            self.decide(Grade(False, "bad-frame", "not a valid reply"))

    def grade(self) -> Grade:
        """Return the grade, after both children have ended."""
        return self.outcome or Grade(False, "infra", "no outcome", lost=True)
