"""Zygotes that do not come up, and verifiers whose caller forks, closes, dies, lacks streams or has its own signals."""

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import children_of, comes_true

from redqueen.errors import UserError
from redqueen_sandbox import Program, Result, Sandbox, pool, zygotes
from redqueen_sandbox.inside import wire
from redqueen_sandbox.inside import zygote as inner
from redqueen_sandbox.unit_tests import UnitTest, UnitTester
from redqueen_sandbox.zygotes import ZygoteHandle, ZygoteSettings

OWN = "def f(x):\n    return x + 1"
IMPORTING = "import math\ndef f(x):\n    return math.floor(x) + 1"
OF_ALL_MODULES = "def f(x):\n    return x + len(bytes(1))"
PLAIN = "def f(x):\n    return x + 1"
"""Programs of two kinds of zygotes: the first two need a pure one, the last a plain one."""
RIGHT = UnitTest("right", "def f(x):\n    return x + 1", "assert f(1) == 2", "f")
ENDLESS = UnitTest("endless", "def f(x):\n    while True: pass", "assert f(1) == 2", "f")


def answers(verifier: Sandbox, code: str, num_programs: int) -> list[tuple[str, tuple[str, ...]]]:
    """The verdicts and outputs of programs that add one to numbers from 0 on."""
    results = verifier.run([Program(str(i), code, (str(i),)) for i in range(num_programs)])
    return [(result.verdict, result.outputs) for result in results]


def all_right(num_programs: int) -> list[tuple[str, tuple[str, ...]]]:
    return [("ok", (str(i + 1),)) for i in range(num_programs)]


def fail_starts(monkeypatch: pytest.MonkeyPatch, fails: Callable[[str, int], bool]) -> list[tuple[str, int]]:
    """Let starts of zygotes fail where ``fails(kind, seed)`` says so. Returns the list of those that did."""
    start, failed = pool.start_zygote, []

    def start_or_fail(kind: str, seed: int, settings: ZygoteSettings) -> ZygoteHandle:
        if fails(kind, seed):
            failed.append((kind, seed))
            raise OSError("Resource temporarily unavailable")
        return start(kind, seed, settings)

    monkeypatch.setattr(pool, "start_zygote", start_or_fail)
    return failed


def run_python(code: str, shell: str = "") -> str:
    """Run code in an interpreter of its own, ``shell`` being what follows it on a shell's line. Returns its output."""
    line = ["sh", "-c", f'exec "$0" -c "$1" {shell}', sys.executable, code]
    done = subprocess.run(line, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"ended with {done.returncode}: {done.stderr}"


# ---- starts that fail -------------------------------------------------------------------------------------------


def test_starts_that_fail_side_by_side_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(workers=3) as verifier:
        monkeypatch.setattr(pool, "_MAX_FAILURES", 3)
        failed = fail_starts(monkeypatch, lambda *_: len(failed) < 6)
        assert answers(verifier, IMPORTING, 9) == all_right(9)
        assert len(failed) == 6 and failed[:3] == failed[3:] and len(set(failed)) == 3


def test_a_kind_that_cannot_start_costs_another_kind_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(workers=1) as verifier:
        monkeypatch.setattr(pool, "_MAX_FAILURES", 2)
        fail_starts(monkeypatch, lambda kind, _: kind == "pure")
        codes = [OF_ALL_MODULES] * 2 + ["def f(x):\n    return x"] * 4
        results = verifier.run([Program(str(i), code, ("1",)) for i, code in enumerate(codes)])
        assert [result.verdict for result in results] == ["infra"] * 2 + ["ok"] * 4


def test_jobs_that_other_zygotes_can_take_do_not_wait_for_one_that_never_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Sandbox(workers=2, num_seeds=1) as verifier:
        monkeypatch.setattr(pool, "_RESTART_PAUSE_S", 0.0)
        failed = fail_starts(monkeypatch, lambda kind, seed: (kind, seed) == ("pure", 1))
        assert answers(verifier, IMPORTING, 80) == all_right(80)
        assert len(failed) <= pool._MAX_FAILURES + 1


def test_zygotes_that_hang_side_by_side_cost_the_time_of_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    with Sandbox(workers=3) as verifier:
        monkeypatch.setattr(zygotes, "_START_S", 1.5)
        monkeypatch.setattr(pool, "_MAX_FAILURES", 1)
        verifier._pool.settings = ZygoteSettings(executable=str(silent))
        start_s = time.monotonic()
        assert {verdict for verdict, _ in answers(verifier, IMPORTING, 6)} == {"infra"}
        assert 1.5 <= time.monotonic() - start_s < 3.0
        assert verifier._pool.num_starts == 3


def test_zygotes_that_come_up_one_after_the_other_have_each_the_time_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hello, waits = ZygoteHandle.wait_hello, []

    def wait_long(self: ZygoteHandle) -> None:
        waits.append(time.monotonic() - self.awaited_since_s)
        time.sleep(0.5)
        hello(self)

    with Sandbox(workers=3) as verifier:
        monkeypatch.setattr(ZygoteHandle, "wait_hello", wait_long)
        assert answers(verifier, IMPORTING, 6) == all_right(6)
    assert len(waits) >= 3 and max(waits) < 0.5  # a fourth where the third one's answer is tried in its other world


def test_a_later_zygote_with_fewer_walls_than_the_first_ones_takes_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MAX_FAILURES", 2)
    with Sandbox(workers=1, num_seeds=1) as verifier:
        verifier._pool.settings = ZygoteSettings(leave_out=frozenset({"landlock"}))
        assert answers(verifier, IMPORTING, 1) == [("infra", ())]
        verifier._pool.settings = ZygoteSettings()
        assert answers(verifier, IMPORTING, 1) == all_right(1)
        assert verifier.protections()["landlock"]


def test_where_a_wall_is_missing_from_the_beginning_later_zygotes_do_without() -> None:
    without = ZygoteSettings(leave_out=frozenset({"landlock"}))
    with Sandbox(workers=1, num_seeds=1, settings=without) as verifier:
        assert answers(verifier, IMPORTING, 1) == all_right(1)


def test_more_than_a_thousand_open_descriptors_change_nothing() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1_500 and (hard != resource.RLIM_INFINITY and hard < 1_500):
        pytest.skip("this machine grants no 1,500 descriptors")
    with contextlib.ExitStack() as undo:
        undo.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_500), hard))
        for _ in range(1_100):
            undo.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        with Sandbox(workers=1) as verifier:
            assert answers(verifier, OWN, 2) == all_right(2)
        with UnitTester(workers=1) as tester:
            assert tester.grade([RIGHT])[0].correct


# ---- what the caller's process does -----------------------------------------------------------------------------


def test_a_forked_copy_of_a_verifier_is_refused_and_its_closing_harms_nothing() -> None:
    with Sandbox(workers=2) as verifier, UnitTester(workers=1) as tester:
        assert tester.grade([RIGHT])[0].correct and answers(verifier, OWN, 20) == all_right(20)
        before, num_starts = verifier.process_ids(), verifier._pool.num_starts
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: answers(verifier, OWN, 1), lambda: tester.grade([RIGHT])):
                with contextlib.suppress(BaseException):
                    try:
                        use()
                    except UserError:
                        refused += 1
            with contextlib.suppress(BaseException):
                verifier.close()
                tester.__exit__()
                os._exit(refused)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        assert answers(verifier, OWN, 20) == all_right(20)
        assert tester.grade([RIGHT])[0].correct
        assert verifier.process_ids() == before and verifier._pool.num_starts == num_starts


def test_a_dead_zygote_does_not_end_a_caller_whom_broken_pipes_would_end() -> None:
    code = (
        "import os, signal, time\n"
        "from redqueen_sandbox import Program, Sandbox\n"
        "from redqueen_sandbox.unit_tests import TEST_LIMITS, UnitTest, UnitTester\n"
        "from dataclasses import replace\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "with Sandbox(workers=1) as v:\n"
        "    for pid in v.process_ids():\n"
        "        os.kill(pid, signal.SIGKILL)\n"
        "    time.sleep(0.2)\n"
        "    print(v.run([Program('a', 'def f(x):\\n    return x', ('1',))])[0].verdict, flush=True)\n"
        f"endless = UnitTest{(ENDLESS.id, ENDLESS.code, ENDLESS.tests, ENDLESS.entry)}\n"
        "with UnitTester(workers=1, limits=replace(TEST_LIMITS, cpu_ms=100)) as t:\n"
        "    print(t.grade([endless])[0].verdict)\n"
    )
    assert run_python(code) == "ok\ntimeout\n"


@pytest.mark.parametrize("closed", ["<&- 2>&-", "<&- >&- 2>&-"])
def test_a_caller_without_standard_streams_can_verify(closed: str, tmp_path: Path) -> None:
    code = (
        "from redqueen_sandbox import Program, Sandbox\n"
        "from redqueen_sandbox.unit_tests import UnitTest, UnitTester\n"
        "with UnitTester(workers=1) as t:\n"
        "    graded = t.grade([UnitTest('a', 'def f(x):\\n    return 1', 'assert f(1) == 1', 'f')])[0]\n"
        "with Sandbox(workers=1) as v:\n"
        "    ran = v.run([Program('a', 'def f(x):\\n    return x', ('1',))])[0]\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(f'{{graded.verdict}} {{ran.verdict}}')\n"
    )
    run_python(code, closed)
    assert (tmp_path / "said").exists() and (tmp_path / "said").read_text() == "ok ok"


def test_a_verifier_that_is_closed_says_so_and_can_be_closed_again() -> None:
    verifier = Sandbox(workers=1)
    verifier.close()
    with pytest.raises(UserError, match="closed"):
        verifier.run([Program("late", OWN, ("1",))])
    verifier.close()


@pytest.mark.parametrize("code", [IMPORTING, "def f(x):\n    while True: pass"])
@pytest.mark.parametrize("pause_s", [0.03, 0.3])
def test_closing_while_another_thread_runs_programs_ends_that_with_a_sentence(code: str, pause_s: float) -> None:
    verifier, said = Sandbox(workers=2), []

    def work() -> None:
        try:
            verifier.run([Program(str(i), code, ("1",)) for i in range(2_000)])
        except BaseException as error:
            said.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(pause_s)
    verifier.close()
    thread.join(20)
    assert not thread.is_alive() and verifier.process_ids() == []
    assert [type(error) for error in said] == [UserError]


def test_work_that_asks_its_own_verifier_is_refused_and_does_not_wait_for_itself() -> None:
    asked: list[type[BaseException]] = []
    with Sandbox(workers=1) as verifier:

        def work() -> object:
            try:
                verifier.run([Program("inner", OWN, ("1",))])
            except UserError as error:
                asked.append(type(error))
            yield from ()

        thread = threading.Thread(target=lambda: verifier.drive([work()]), daemon=True)
        thread.start()
        thread.join(20)
        assert asked == [UserError] and not thread.is_alive()
        assert answers(verifier, OWN, 2) == all_right(2)


def test_a_unit_tester_serves_several_threads_one_after_the_other() -> None:
    grades: dict[int, bool] = {}
    wrong = UnitTest("wrong", "def f(x):\n    return x", RIGHT.tests, "f")
    with UnitTester(workers=1) as tester:
        threads = [
            threading.Thread(target=lambda i=i: grades.update({i: tester.grade([(RIGHT, wrong)[i % 2]])[0].correct}))
            for i in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert grades == {i: i % 2 == 0 for i in range(6)}


def test_a_zygote_whose_caller_dies_during_its_start_ends_though_a_copy_of_the_caller_lives() -> None:
    code = (
        "import os, time\n"
        "from redqueen_sandbox import Sandbox\n"
        "from redqueen_sandbox.zygotes import ZygoteHandle\n"
        "def fork_and_stay(zygote):\n"
        "    if os.fork() == 0:\n"
        "        os.close(1)\n"
        "        time.sleep(20)\n"
        "        os._exit(0)\n"
        "    print(zygote.process.pid, flush=True)\n"
        "    time.sleep(20)\n"
        "ZygoteHandle.wait_hello = fork_and_stay\n"
        "Sandbox(workers=1, num_seeds=1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    assert comes_true(lambda: not Path(f"/proc/{pid}/cmdline").exists(), 15)


def test_root_that_may_not_become_nobody_verifies_and_says_so() -> None:
    code = (
        "from redqueen_sandbox import Program, Sandbox\n"
        "with Sandbox(workers=1) as v:\n"
        "    print(v.protection, v.run([Program('a', 'def f(x):\\n    return x', ('1',))])[0].verdict)\n"
    )
    line = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    with contextlib.suppress(OSError):
        if subprocess.run([*line[:3], "true"], capture_output=True).returncode == 0:
            done = subprocess.run(line, capture_output=True, text=True)
            assert re.fullmatch(r"partial: no (rlimits, )?nobody ok\n", done.stdout), done.stdout + done.stderr
            return
    pytest.skip("this machine grants no user namespace")


def test_stopping_a_child_that_has_just_ended_is_no_trouble() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    running = inner._RunningChild(process.pid, 0.0, interactive=False)
    running.stop(wire.HIT_WALL)
    assert running.stopped == wire.NOT_STOPPED


# ---- what is left over ------------------------------------------------------------------------------------------


def test_lost_zygotes_and_starts_that_fail_leave_no_descriptor_and_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MAX_FAILURES", 2)
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this kernel lists no children")
    with Sandbox(workers=2) as verifier:
        answers(verifier, PLAIN, 6)
        for pid in verifier.process_ids():
            os.kill(pid, signal.SIGKILL)
        assert answers(verifier, PLAIN, 6) == all_right(6)
        before, num_children = len(os.listdir("/proc/self/fd")), len(children_of())
        for executable in ("/bin/false", "/nonexistent"):
            verifier._pool.settings = ZygoteSettings(executable=executable)
            results: list[Result] = verifier.run([Program("a", OF_ALL_MODULES, ("1",))])
            assert results[0].verdict == "infra"
        assert (len(os.listdir("/proc/self/fd")), len(children_of())) == (before, num_children)
