"""Chaos: processes killed and stopped, no descriptors, no disk, many threads. Every task gets exactly one verdict."""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import children_of, comes_true, is_alive

from redqueen.commands.verify import verify_file
from redqueen.errors import UserError
from redqueen_sandbox import Limits, Program, Result, Sandbox, pool
from redqueen_sandbox.programs import verify_program
from redqueen_sandbox.zygotes import ZygoteHandle

HONEST = "def f(x):\n    return x + 1"


def run_under_attack(num_programs: int, num_kills: int, num_stops: int, pause_s: float) -> list[Result]:
    """Run programs while another thread kills and stops zygotes. Returns the results, in order."""
    rng = random.Random(5)
    signals = [signal.SIGKILL] * num_kills + [signal.SIGSTOP] * num_stops
    rng.shuffle(signals)
    over = threading.Event()
    with Sandbox(workers=2, limits=Limits(wall_ms=1_500)) as verifier:
        started = verifier._pool.num_starts

        def attack() -> None:
            for number in signals:
                if over.wait(pause_s):
                    return
                found = verifier.process_ids()
                with contextlib.suppress(ProcessLookupError):
                    if found:
                        os.kill(rng.choice(found), number)

        attacker = threading.Thread(target=attack)
        attacker.start()
        results = verifier.run([Program(str(i), HONEST, (str(i),)) for i in range(num_programs)])
        over.set()
        attacker.join()
        assert verifier._pool.num_starts > started
        # And it goes on working afterwards.
        assert verifier.run([Program("after", HONEST, ("1",))])[0].verdict in ("ok", "infra")
    return results


def check_one_verdict_each(results: list[Result], num_programs: int) -> None:
    assert [result.id for result in results] == [str(i) for i in range(num_programs)]
    for i, result in enumerate(results):
        assert (result.verdict, result.outputs) == ("ok", (str(i + 1),)) or result.verdict == "infra"
    assert sum(result.verdict == "ok" for result in results) >= 0.9 * num_programs


def test_zygotes_that_are_killed_or_stopped_are_replaced_and_no_task_is_lost() -> None:
    check_one_verdict_each(run_under_attack(150, num_kills=4, num_stops=1, pause_s=0.1), 150)


@pytest.mark.slow
def test_a_batch_of_a_thousand_survives_forty_kills_and_eight_stops() -> None:
    start_s = time.monotonic()
    check_one_verdict_each(run_under_attack(1_000, num_kills=40, num_stops=8, pause_s=0.15), 1_000)
    assert time.monotonic() - start_s < 180


IMPORTING = "import math\ndef f(x):\n    return math.floor(x) + 1"
"""Needs another kind of zygote than those that a verifier begins with."""


def test_zygotes_that_several_jobs_wait_for_come_up_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    start, hello = pool.start_zygote, ZygoteHandle.wait_hello
    with Sandbox(workers=3) as verifier:
        monkeypatch.setattr(
            pool, "start_zygote", lambda *words: (events.append(("begun", *words[:2])), start(*words))[1]
        )
        monkeypatch.setattr(
            ZygoteHandle,
            "wait_hello",
            lambda self: (events.append(("waited for", self.kind, self.seed)), hello(self))[1],
        )
        check_one_verdict_each(verifier.run([Program(str(i), IMPORTING, (str(i),)) for i in range(9)]), 9)
    whats, kinds, seeds = zip(*events[:6], strict=True)
    assert whats == ("begun",) * 3 + ("waited for",) * 3 and set(kinds) == {"pure"}
    assert len(set(seeds[:3])) == 3 and seeds[:3] == seeds[3:], "the seeds that different jobs wait for"


def test_a_zygote_that_does_not_come_up_is_ended_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hello, silent = ZygoteHandle.wait_hello, []

    def mute_at_first(self: ZygoteHandle) -> None:
        if len(silent) < 2:
            silent.append(self.process)
            raise OSError("a zygote did not come up")
        hello(self)

    with Sandbox(workers=2) as verifier:
        monkeypatch.setattr(ZygoteHandle, "wait_hello", mute_at_first)
        check_one_verdict_each(verifier.run([Program(str(i), IMPORTING, (str(i),)) for i in range(4)]), 4)
        assert {process.returncode for process in silent} <= {0, -signal.SIGKILL}, (
            "killed, or ended at the closed socket"
        )


def test_a_stopped_zygote_holds_its_task_no_longer_than_the_deadline_and_two_seconds() -> None:
    with Sandbox(workers=1, num_seeds=1, limits=Limits(wall_ms=1_000)) as verifier:
        os.kill(verifier.process_ids()[0], signal.SIGSTOP)
        start_s = time.monotonic()
        result = verifier.run([Program("a", HONEST, ("1",))])[0]
        # The first try hangs until its deadline and the watchdog's grace; starting anew is what the second one costs.
        assert time.monotonic() - start_s < 1 + 2 + 30 * is_crowded()
        assert result.verdict == "ok"


def is_crowded() -> bool:
    """Whether other work leaves this machine little time, so that a clock on the wall proves nothing."""
    wall_s, cpu_s = time.monotonic(), time.process_time()
    while time.process_time() - cpu_s < 0.05:
        pass
    return time.monotonic() - wall_s > 0.07


def test_a_shortage_of_descriptors_costs_no_task_its_verdict() -> None:
    with Sandbox(workers=2) as verifier:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        os.kill(verifier.process_ids()[0], signal.SIGKILL)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
            hoard = []
            with contextlib.suppress(OSError):
                while True:
                    hoard.append(os.open(os.devnull, os.O_RDONLY))
            results = verifier.run([Program(str(i), HONEST, ("1",)) for i in range(6)])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for fd in hoard:
                os.close(fd)
        assert [result.id for result in results] == [str(i) for i in range(6)]
        assert {result.verdict for result in results} <= {"ok", "infra"}
        assert verifier.run([Program("after", HONEST, ("1",))])[0].verdict == "ok"


def test_a_full_disk_stops_the_command_with_one_clear_sentence(tmp_path: Path) -> None:
    given = tmp_path / "programs.jsonl"
    given.write_text('{"id": 1, "code": "def f(x): return x", "input": "1"}\n')
    full = open("/dev/full", "w")  # noqa: SIM115 (closing it fails too)
    with pytest.raises(UserError, match="cannot be written"):
        verify_file(given, full)
    with contextlib.suppress(OSError):
        full.close()


def test_the_verifier_itself_writes_nothing_to_disk(tmp_path: Path) -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip("this kernel does not count what a process writes")
    code = (
        "from pathlib import Path\n"
        "def written():\n"
        "    return next(line for line in Path('/proc/self/io').read_text().splitlines() if 'write_bytes' in line)\n"
        "import redqueen.commands.verify\n"
        "from redqueen_sandbox import Program, Sandbox\n"
        "before = written()\n"
        "with Sandbox(workers=1) as v:\n"
        "    print(v.run([Program('a', 'def f(x): return x', ('1',))])[0].verdict)\n"
        "print(written() == before)\n"  # its processes have ended, and theirs is counted in
        "Path('own').write_text('x'); print(written() == before)\n"  # and it would have been seen
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "ok\nTrue\nFalse\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_nothing_is_left_when_the_process_that_verifies_is_killed() -> None:
    code = (
        "from redqueen_sandbox import Limits, Program, Sandbox\n"
        "v = Sandbox(workers=2, limits=Limits(cpu_ms=60000, wall_ms=60000))\n"
        "print(*[z.process.pid for z in v._pool.zygotes.values()], flush=True)\n"
        "v.run([Program(str(i), 'def f(x):\\n    while True: pass', ('1',)) for i in range(4)])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        zygotes = [int(word) for word in process.stdout.readline().split()]
        time.sleep(1)
        children = [pid for zygote in zygotes for pid in children_of(zygote)]
        process.kill()
    assert len(zygotes) == 2
    assert comes_true(lambda: not any(map(is_alive, zygotes + children)), 30)


def test_it_serves_many_threads_and_outlives_the_one_that_started_it() -> None:
    made: list[Sandbox] = []
    starter = threading.Thread(target=lambda: made.append(Sandbox(workers=2)))
    starter.start()
    starter.join()
    answers: dict[int, str] = {}

    def ask(i: int) -> None:
        answers[i] = made[0].run([Program(str(i), HONEST, (str(i),))])[0].outputs[0]

    with made[0]:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made[0]._pool.num_starts <= 8, "it started zygotes anew"
    assert answers == {i: str(i + 1) for i in range(12)}


def test_a_batch_that_is_interrupted_leaves_nothing_for_the_next_one() -> None:
    class Stop(Exception):
        pass

    def programs() -> list[Program]:
        return [Program(str(i), HONEST, (str(i),)) for i in range(30)]

    with Sandbox(workers=2) as verifier:
        seen = []

        def stumble() -> object:
            for program in programs():
                seen.append(program)
                if len(seen) == 40:
                    raise Stop
                yield verify_program(program, verifier.rules)

        verifier._pool.drive(stumble())
        with pytest.raises(Stop):
            verifier._pool.drive(stumble())
        results = verifier.run(programs()[:10])
        assert [result.outputs for result in results] == [(str(i + 1),) for i in range(10)]


def test_signals_that_the_caller_ignores_or_blocks_still_stop_programs() -> None:
    code = (
        "import signal\n"
        "for number in (signal.SIGCHLD, signal.SIGPROF, signal.SIGXCPU, signal.SIGSYS):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
        "from redqueen_sandbox import Program, Sandbox\n"
        "with Sandbox(workers=1) as v:\n"
        "    print(v.protection, v.run([Program('a', 'def f(x):\\n    while True: pass', ('1',))])[0].verdict)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("timeout\n") and "cpu-timer" not in done.stdout, done.stderr


def test_importing_it_imports_no_torch_and_nothing_else_that_is_heavy() -> None:
    library = "redqueen_sandbox, redqueen_sandbox.unit_tests, redqueen.domains.code.measures"
    command = "redqueen.commands.verify"  # it reads tasks of all domains, whose terms are in the config
    for imported, allowed in ((library, set()), (command, {"pydantic"})):
        code = (
            f"import sys, {imported}\n"
            "print(*sorted({'torch', 'transformers', 'numpy', 'pydantic', 'typer'} & set(sys.modules)))"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        assert set(found.split()) <= allowed


@pytest.mark.slow
def test_memory_stays_flat_over_many_tasks() -> None:
    def resident_kb(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4

    with Sandbox(workers=2) as verifier:
        programs = [Program(str(i), f"def f(x):\n    return x + {i}", ("1",)) for i in range(4_000)]
        verifier.run(programs)
        before = [resident_kb(pid) for pid in [os.getpid(), *verifier.process_ids()]]
        for _ in range(3):
            verifier.run(programs)
        after = [resident_kb(pid) for pid in [os.getpid(), *verifier.process_ids()]]
    assert all(b - a < 3_000 for a, b in zip(before, after, strict=True))
