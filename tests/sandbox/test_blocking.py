"""A program that blocks without computing is ended at once, and one that only waits for a core is not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_inheritance import changed_zygotes

from redqueen.domains.registry import grade as grade_all
from redqueen.records import Task
from redqueen_sandbox import Limits, Program, Sandbox
from redqueen_sandbox.unit_tests import UnitTest, UnitTester
from redqueen_sandbox.zygotes import ZygoteSettings

OWN_LOCK = (
    "from functools import RLock\n"
    "def f(x):\n    lock = RLock()\n    lock._acquire_restore((1, 12345))\n    lock.acquire()\n    return x"
)
PRELOAD = (
    "_thread", "asyncio", "concurrent.futures", "fcntl", "os", "queue", "select", "signal", "socket", "sys",
    "threading", "time",
)  # fmt: skip
BLOCKING = {
    "a re-entrant lock of another": OWN_LOCK,
    "a lock taken twice": "import _thread\ndef f(x):\n    l = _thread.allocate_lock()\n    l.acquire()\n"
    "    l.acquire()",
    "a lock with a timeout": "import _thread\ndef f(x):\n    l = _thread.allocate_lock()\n    l.acquire()\n"
    "    l.acquire(True, 60)",
    "a saved lock": "import threading\ndef f(x):\n    c = threading.Condition()\n    c.acquire()\n"
    "    s = c._release_save()\n    c._acquire_restore((1, 7))\n    c.acquire()",
    "a condition": "import threading\ndef f(x):\n    c = threading.Condition()\n    c.acquire()\n    c.wait()",
    "an event": "import threading\ndef f(x):\n    threading.Event().wait(60)",
    "a semaphore": "import threading\ndef f(x):\n    threading.Semaphore(0).acquire()",
    "a barrier": "import threading\ndef f(x):\n    threading.Barrier(2).wait()",
    "a queue": "import queue\ndef f(x):\n    queue.Queue().get()",
    "a simple queue": "import queue\ndef f(x):\n    queue.SimpleQueue().get()",
    "a full queue": "import queue\ndef f(x):\n    q = queue.Queue(1)\n    q.put(1)\n    q.put(2)",
    "a future": "import concurrent.futures\ndef f(x):\n    concurrent.futures.Future().result()",
    "sleep": "import time\ndef f(x):\n    time.sleep(60)",
    "select": "import select\ndef f(x):\n    select.select([], [], [], 60)",
    "poll": "import select\ndef f(x):\n    select.poll().poll(60_000)",
    "epoll": "import select\ndef f(x):\n    select.epoll().poll(60)",
    "pause": "import signal\ndef f(x):\n    signal.pause()",
    "sigwait": "import signal\ndef f(x):\n    signal.sigwait({signal.SIGUSR1})",
    "sigtimedwait": "import signal\ndef f(x):\n    signal.sigtimedwait({signal.SIGUSR1}, 60)",
    "read": "import os\ndef f(x):\n    os.read(3, 1)",
    "wait": "import os\ndef f(x):\n    os.wait()",
    "a file lock": "import fcntl\ndef f(x):\n    fcntl.flock(3, fcntl.LOCK_EX)",
    "stop": "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGSTOP)",
    "yield": "import os\ndef f(x):\n    while True:\n        os.sched_yield()",
    "an event loop": "import asyncio\ndef f(x):\n    asyncio.run(asyncio.sleep(60))",
}


def test_three_answers_that_block_cost_less_than_two_seconds(verifier: Sandbox) -> None:
    task = Task("t", "T", "S", "code_f", "", ("1", "2"), ("1", "2"))
    verifier.run([Program("warm", "import re\ndef f(x):\n    return x", ("1",))])
    start_s = time.monotonic()
    grades = grade_all([(task, f"{OWN_LOCK}\n# {i}") for i in range(3)], verifier)
    assert not any(grade.correct or grade.lost for grade in grades)
    assert time.monotonic() - start_s < 2


def test_whatever_a_program_blocks_on_it_is_ended_at_once() -> None:
    settings = ZygoteSettings(preload=PRELOAD)
    with Sandbox(workers=1, num_seeds=1, gated=False, settings=settings) as bare:
        start_s = time.monotonic()
        results = bare.run([Program(name, code, ("1",)) for name, code in BLOCKING.items()])
        assert {result.id: result.verdict for result in results if result.verdict != "forbidden"} == {}
        assert time.monotonic() - start_s < 4  # all of them together


def end_of_a_sleeper(wall_ms: int) -> tuple[str, str]:
    """Return verdict and detail of a program that sleeps where the filter is missing."""
    settings = ZygoteSettings(preload=PRELOAD, leave_out=frozenset({"seccomp"}))
    limits = Limits(wall_ms=wall_ms)
    with Sandbox(
        workers=1, num_seeds=1, gated=False, settings=settings, limits=limits, allow_weak=True, warn=False
    ) as weak:
        result = weak.run([Program("a", BLOCKING["sleep"], ("1",))])[0]
        return result.verdict, result.detail


def test_where_the_filter_is_missing_a_child_that_sleeps_is_still_ended_within_a_second() -> None:
    start_s = time.monotonic()
    assert end_of_a_sleeper(wall_ms=1_500) == ("timeout", "asleep")
    assert time.monotonic() - start_s < 4


def test_a_player_that_waits_for_more_than_it_is_told_is_ended_and_its_judge_does_not_wait() -> None:
    programs = [
        "import os\ndef f(x):\n    os.read(3, 1)",
        "import os\nos.read(3, 1)\ndef f(x):\n    return x",
        "import os\ndef f(x):\n    while True:\n        os.read(3, 1)",
    ]
    with UnitTester(workers=1, settings=ZygoteSettings(preload=("os",))) as tester:
        assert tester.grade([UnitTest("warm", "def f(x):\n    return x", "assert f(1) == 1", "f")])[0].correct
        start_s = time.monotonic()
        tests = [UnitTest(str(i), code, "assert f(1) == 1", "f") for i, code in enumerate(programs)]
        grades = tester.grade(tests)
        assert [(grade.correct, grade.detail) for grade in grades] == [(False, "asleep")] * 3
        assert time.monotonic() - start_s < 8  # 0.4 s each, twice, and a machine that is not idle


def test_a_program_that_only_waits_for_a_core_is_given_its_time() -> None:
    busy = "def f(x):\n    n = 0\n    while n < 300_000:\n        n += 1\n    return n"
    burn = [sys.executable, "-S", "-c", "while True: pass"]
    rivals = [subprocess.Popen(burn) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        with Sandbox(workers=2) as crowded:
            results = crowded.run([Program(str(i), busy, ("1",)) for i in range(10)])
        assert {result.verdict for result in results} == {"ok"}
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()


def test_without_the_rule_a_sleeping_child_holds_its_zygote_until_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "not child.interactive and child.sleep_detector.poll()"
    changed_zygotes(tmp_path, monkeypatch, "zygote.py", rule, "False")
    assert end_of_a_sleeper(wall_ms=800)[1] != "asleep"
