"""The zygote: a warm interpreter that has given up its rights, and forks one caged child for each program.

The judge starts it as a fresh interpreter under one hash seed. Each request brings limits and a descriptor, which only
the child reads and writes. The zygote enforces the time limits and reports how the child ended. It runs one at a time.
"""

from __future__ import annotations

import _signal
import builtins
import codecs
import gc
import io
import marshal
import os
import sys
import time
import warnings

from . import allowed, cage, child, equal, guards, library, roles, seccomp, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NUM_WARM_UPS = 10
_NONE: frozenset[str] = frozenset()


class _Sink(io.TextIOBase):
    """A stream that discards a program's output."""

    encoding, errors = "utf-8", "strict"

    def write(self, text: str) -> int:
        return len(text) if isinstance(text, str) else 0

    def writable(self) -> bool:
        return True


class _RunningChild:
    """The running child: its deadline (``until_s``), and why it was stopped (a ``wire`` constant)."""

    __slots__ = ("interactive", "pid", "sleep_detector", "stopped", "until_s")

    def __init__(self, pid: int, until_s: float, interactive: bool) -> None:
        self.pid = pid
        self.until_s = until_s
        self.interactive = interactive
        self.sleep_detector = cage.SleepDetector(pid)
        self.stopped = wire.NOT_STOPPED

    def stop(self, why: int) -> None:
        try:
            os.kill(self.pid, cage.SIGKILL)
        except ProcessLookupError:  # the child has just ended
            return
        self.stopped = why


class Zygote:
    """State of the serving loop: the control socket, the prebuilt filters, sizes measured before the cage closed.

    It never holds anything of a job, because every later child would inherit it.
    """

    def __init__(self, control: int, leave_out: frozenset[str], judge_pid: int) -> None:
        self.control = control
        self.leave_out = leave_out
        self.libc = cage.load_libc()
        self.requests = wire.RequestReader(self.libc, control)
        self.waiter = cage.Waiter(self.libc)
        self.pid = os.getpid()
        self.judge_pid = judge_pid
        self.has_namespaces = False
        self.running: _RunningChild | None = None
        arch = seccomp.machine()
        self.bpf = seccomp.build_filter(arch, wire.REPLY_FD) if arch else b""
        self.interactive_bpf = seccomp.build_filter(arch, wire.REPLY_FD, interactive=True) if arch else b""
        with open("/proc/self/statm", "rb") as statm:
            self.base_bytes = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        self.cages: dict[tuple[object, ...], cage.ChildCage] = {}

    def cage_for(
        self, cpu_ms: int, memory_bytes: int, max_file_bytes: int = 0, also_leave_out: frozenset[str] = _NONE,
        interactive: bool = False,
    ) -> cage.ChildCage:  # fmt: skip
        """Return the cage for these limits. Cages are cached, since most jobs have the same limits."""
        key = (cpu_ms, memory_bytes, max_file_bytes, also_leave_out, interactive)
        if key not in self.cages:
            if len(self.cages) > 64:
                self.cages.clear()
            bpf = self.interactive_bpf if interactive else self.bpf
            space = self.base_bytes + memory_bytes
            left_out = self.leave_out | also_leave_out
            self.cages[key] = cage.ChildCage(self.libc, cpu_ms, space, max_file_bytes, bpf, left_out, self.pid)
        return self.cages[key]

    def fork_child(self, child_cage: cage.ChildCage, fd: int) -> int:
        """Fork. In the parent return the process id. In the child close all descriptors but ``fd``, which becomes
        ``wire.REPLY_FD``, close the cage and return 0.

        Raises OSError when no process can be created. It calls the C library's fork: the housekeeping of ``os.fork``
        (threads, random seeds) is useless to a single-threaded zygote and would cost copied pages.
        """
        pid: int = self.libc.fork()
        if pid < 0:
            raise OSError("cannot start a process")
        if pid == 0:
            if fd != wire.REPLY_FD:
                os.dup2(fd, wire.REPLY_FD)
            cage.close_descriptors(self.libc, wire.REPLY_FD)
            if not child_cage.close():
                os.kill(os.getpid(), _signal.SIGUSR1)  # a program cannot send this signal
                os._exit(1)
        return pid

    def collect(self, pid: int, wall_ms: int, interactive: bool = False) -> wire.ReplyHeader:
        """Wait for the child's end, or stop it: at the wall deadline, when it sleeps, or when the judge requests it.

        The wait blocks, and a timer calls ``on_timer`` during it. Most children end before the timer first fires.
        """
        start_s = time.monotonic()
        self.running = _RunningChild(pid, start_s + wall_ms / 1000, interactive)
        _signal.setitimer(_signal.ITIMER_REAL, cage.POLL_MS / 1000, cage.POLL_MS / 1000)
        status, cpu_us, peak_kb = self.waiter.wait(pid)
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        stopped = self.running.stopped
        self.running = None
        wall_us = int((time.monotonic() - start_s) * 1e6)
        return wire.ReplyHeader(0, 0, status, stopped, cpu_us, wall_us, peak_kb)

    def on_timer(self, *_: object) -> None:
        """Stop the child if it is asleep or past its deadline, or if the judge has requested it or died.

        A child that computes has used CPU time between two polls, and one that waits for a core on a busy machine gets
        it within a few polls. Only a child that sleeps uses none in many, and it has nothing to wait for.
        """
        child = self.running
        if child is None:
            return
        if time.monotonic() >= child.until_s:
            child.stop(wire.HIT_WALL)
        elif not child.interactive and child.sleep_detector.poll():
            child.stop(wire.ASLEEP)
        request = self.requests.receive(waits=False) if child.interactive else wire.NOTHING
        if request is None or os.getppid() != self.judge_pid:  # the judge has died
            os.kill(child.pid, cage.SIGKILL)
            os._exit(0)
        if request[0].want == wire.STOP:
            child.stop(wire.ASLEEP)

    def serve(self) -> None:
        """Answer requests until the judge closes the socket."""
        while True:
            request, fd = self.next_request()
            if request.want == wire.STOP:  # the child has already ended
                continue
            try:
                header = self.answer(request, fd)
            except OSError:  # no process or descriptor available: not the fault of the job
                header = wire.ReplyHeader(0, 0, stopped=wire.NOT_STARTED)
            if fd >= 0:
                os.close(fd)
            header.job_id = request.job_id
            self.send(header.pack())

    def answer(self, request: wire.RequestHeader, fd: int) -> wire.ReplyHeader:
        """Run one job in one child. Returns how it ended."""
        if fd < 0:
            raise OSError("no room for the job's descriptor")
        interactive = request.want == wire.CONVERSE
        sizes = request.cpu_ms, request.memory_bytes, request.max_file_bytes
        child_cage = self.cage_for(*sizes, interactive=interactive)
        pid = self.fork_child(child_cage, fd)
        if pid == 0:
            (roles.run_role if interactive else child.run_job)(wire.REPLY_FD)
        if interactive:
            self.send(wire.ReplyHeader(0, request.job_id, pid, wire.STARTED).pack())
        return self.collect(pid, request.wall_ms, interactive)

    def send(self, data: bytes) -> None:
        """Write all of ``data`` to the judge."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.control, view) :]

    def next_request(self) -> tuple[wire.RequestHeader, int]:
        """Wait for the next request; exit when the judge has died."""
        while True:
            request = self.requests.receive()
            if request is None or os.getppid() != self.judge_pid:
                os._exit(0)
            if request is not wire.NOTHING:
                return request


def _import_all(names: list[str], is_gated: bool) -> None:
    """Import all modules for programs, and those that they import on demand: later no file can be opened."""
    # The interpreter's own hash functions suffice; OpenSSL would make every fork more expensive.
    sys.modules.setdefault("_hashlib", None)  # type: ignore[arg-type]
    if is_gated:
        guards.salt_addresses()
        sys.modules["_datetime"] = None  # type: ignore[assignment]  # use the one in Python: its clock is replaceable
    for name in names:
        __import__(name)
    if "datetime" in names:
        time.strptime("2000", "%Y")
        for codec in allowed.CODECS:
            codecs.lookup(codec)
    equal.remember_classes(is_gated)
    if is_gated:
        library.patch_library()
        guards.make_modules(_Sink())
        guards.close_interpreter()
    # A program that patches ``builtins`` patches this copy, not what our own code calls.
    copied = type(sys)("builtins")
    vars(copied).update(vars(builtins))
    sys.modules["builtins"] = copied


_WARM_UP = """
def f(x):
    found = {str(i): [i, -1.5, (i,), True, None] for i in range(x)}
    try:
        return found["none"]
    except KeyError as error:
        return {"keys": sorted(found), "n": len(found) + 1, "all": {1, 2}, "why": str(error)}
"""


def _warm_up(is_gated: bool) -> None:
    """Run a child's code here, so that the interpreter's caches are filled once and not in every child."""
    sink = os.open(os.devnull, os.O_WRONLY)
    file = os.memfd_create("warm-up")
    given = (("literal", 1), ("expression", 3))
    head = marshal.dumps(("0" * 16, _WARM_UP, given, False, "f", is_gated, 65_536, False, True))
    os.write(file, len(head).to_bytes(wire.LENGTH_BYTES, "little") + head + b"3" + b"'4'")
    for _ in range(_NUM_WARM_UPS):
        job = child.Job(child.read_head(file), file)
        replies = child.Replies(sink, job.nonce)
        child.compile_and_run(job, replies)
    del sys.modules[child.PROGRAM_NAME]
    os.close(sink)
    os.close(file)


def _reset_signals() -> None:
    """Reset inherited signal settings: the caller may ignore or block signals that must kill a child."""
    for number in (_signal.SIGCHLD, _signal.SIGPROF, _signal.SIGXCPU, _signal.SIGXFSZ, _signal.SIGSYS, _signal.SIGSEGV):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # the judge handles an interrupt at the terminal


def main(observe: Callable[[Zygote], dict[str, bool]]) -> None:
    """Entry point of the fresh interpreter: ``argv`` holds the control socket's number and the settings.

    ``observe`` returns which protections hold (``canaries.observe``, which forks children of the given zygote).
    """
    control = int(sys.argv[1])
    os.set_blocking(control, True)
    modules, leave_out, seed, is_gated, judge_pid = marshal.loads(bytes.fromhex(sys.argv[2]))
    _reset_signals()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None  # the default hook would open source files to quote them
    _import_all(modules if seed % 2 == 0 else modules[::-1], is_gated)
    gc.freeze()  # the collector then skips the imported modules between two runs
    _warm_up(is_gated)
    gc.collect()
    gc.disable()
    zygote = Zygote(control, frozenset(leave_out), judge_pid)
    _signal.signal(_signal.SIGALRM, zygote.on_timer)
    cage.prefer_for_oom()
    os.environ.clear()
    os.chdir("/")
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.path_hooks.clear()
    sys.meta_path[:] = [guards.MissingFinder] if is_gated else []  # other modules cannot be imported
    sys.argv = [""]
    zygote.has_namespaces = cage.enter_zygote_cage(zygote.libc, zygote.leave_out)
    gc.freeze()
    observed = observe(zygote)
    payload = " ".join([f"{name}={int(holds)}" for name, holds in observed.items()]).encode()
    zygote.send(wire.ReplyHeader(len(payload), wire.HELLO_ID).pack() + payload)
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = _Sink()  # type: ignore[misc, assignment]
    zygote.serve()
