"""The zygote: a warm interpreter that has given up everything, and forks one caged child for each program.

Started by the judge as a fresh interpreter under one hash seed. It reads jobs from one socket, never looks into their
bodies, and answers each with how the child ended and what it wrote. It runs one child at a time.
"""

from __future__ import annotations

import _signal
import builtins
import codecs
import gc
import marshal
import os
import resource  # noqa: F401 (wait4 looks for it when the first child ends)
import select
import sys
import time
import warnings

from . import allowed, cage, canaries, child, runtime, seccomp, talk, wire

REPLY_FD, TOLD_FD = 3, 4
"""The only file descriptors of a child: where it answers and, in a conversation, where it is told things."""
_IDLE_POLL_MS = 1_000
_CAGE_FAILED_STATUS = 97
_NUM_WARM_UPS = 30


class _Sink:
    """Where a program's prints go."""

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def write(self, text: object) -> int:
        return len(text) if isinstance(text, str) else 0

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


class Zygote:
    """What the loop knows: its control socket, the prebuilt filters, the sizes it measured before the cage closed."""

    def __init__(self, control: int, leave_out: frozenset[str]) -> None:
        self.control = control
        self.leave_out = leave_out
        self.libc = cage.load_libc()
        self.pid = os.getpid()
        self.judge_pid = os.getppid()
        self.has_namespaces = False
        arch = seccomp.machine()
        self.bpf = seccomp.build_filter(arch, REPLY_FD) if arch else b""
        self.talking_bpf = seccomp.build_filter(arch, REPLY_FD, TOLD_FD) if arch else b""
        with open("/proc/self/statm", "rb") as statm:
            self.base_bytes = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        self.cages: dict[tuple[object, ...], cage.ChildCage] = {}

    def cage_for(self, cpu_ms: int, memory_bytes: int, also_leave_out: frozenset[str], talks: bool) -> cage.ChildCage:
        """The prepared cage for these limits; prepared once, since most jobs have the same."""
        key = (cpu_ms, memory_bytes, also_leave_out, talks)
        if key not in self.cages:
            if len(self.cages) > 64:
                self.cages.clear()
            bpf = self.talking_bpf if talks else self.bpf
            space = self.base_bytes + memory_bytes
            self.cages[key] = cage.ChildCage(self.libc, cpu_ms, space, bpf, self.leave_out | also_leave_out, self.pid)
        return self.cages[key]

    def fork_child(self, child_cage: cage.ChildCage, told_fd: int = -1) -> tuple[int, int]:
        """Fork. In the parent return (pid, read end); in the child close the cage and return (0, reply fd).

        ``told_fd`` is kept open in the child if it is >= 0. Raises OSError when the machine has no room for another
        process. The C library's fork and not ``os.fork``, whose housekeeping after the fork (threads, random seeds)
        a single-threaded zygote has no use for and would pay for in copied pages.
        """
        read_end, write_end = os.pipe()
        pid = self.libc.fork()
        if pid < 0:
            os.close(read_end)
            os.close(write_end)
            raise OSError("no process to be had")
        if pid:
            os.close(write_end)
            return pid, read_end
        if told_fd >= 0:
            high = os.dup(told_fd)
            os.dup2(write_end, 64)
            os.dup2(high, TOLD_FD)
            os.dup2(64, REPLY_FD)
            os.closerange(TOLD_FD + 1, 256)
        else:
            os.dup2(write_end, REPLY_FD)
            os.closerange(REPLY_FD + 1, 256)
        os.closerange(0, REPLY_FD)
        if not child_cage.close():
            os._exit(_CAGE_FAILED_STATUS)
        return 0, REPLY_FD

    def collect(self, pid: int, read_end: int, wall_ms: int, max_bytes: int) -> tuple[wire.ReplyHeader, bytes]:
        """Read what the child writes until it ends, the wall deadline passes or it has written too much."""
        start_s = time.monotonic()
        poller = select.poll()
        poller.register(read_end, select.POLLIN)
        poller.register(self.control, 0)  # only its hang-up: the judge is gone
        chunks: list[bytes] = []
        size = 0
        stopped = wire.RAN_OUT
        while True:
            left_ms = wall_ms - (time.monotonic() - start_s) * 1000
            events = poller.poll(left_ms) if left_ms > 0 else []
            if not events:
                stopped = wire.HIT_WALL
                break
            if any(fd != read_end for fd, _ in events):
                os.kill(pid, cage.SIGKILL)
                os._exit(0)
            chunk = os.read(read_end, 65_536)
            size += len(chunk)
            if not chunk:
                break
            chunks.append(chunk)
            if size > max_bytes:
                stopped = wire.OVERFLOWED
                chunks.clear()
                break
        header = self.bury(pid, read_end, stopped, start_s)
        payload = b"".join(chunks)
        header.payload_bytes = len(payload)
        return header, payload

    def bury(self, pid: int, read_end: int, stopped: int, start_s: float) -> wire.ReplyHeader:
        """Wait for the child's end and say how it was. A child that has exited is past being killed; one that only
        closed its pipe is not left running."""
        os.kill(pid, cage.SIGKILL)
        os.close(read_end)
        _, status, usage = os.wait4(pid, 0)
        cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
        wall_us = int((time.monotonic() - start_s) * 1e6)
        return wire.ReplyHeader(0, 0, status, stopped, cpu_us, wall_us, usage.ru_maxrss)

    def serve(self) -> None:
        """Answer jobs until the judge hangs up."""
        while True:
            request = wire.unpack_request(self.receive(wire.REQUEST_BYTES))
            body = self.receive(request.body_bytes)
            if request.want == wire.TELL:  # for a child that has ended meanwhile
                continue
            try:
                header, payload = self.answer(request, body)
            except OSError:  # no process or descriptor to be had just now: the judge's own trouble
                header, payload = wire.ReplyHeader(0, 0, stopped=wire.NOT_STARTED), b""
            header.job_id = request.job_id
            self.send(header.pack() + payload)

    def answer(self, request: wire.RequestHeader, body: bytearray) -> tuple[wire.ReplyHeader, bytes]:
        """Run one job in one child. Returns how it ended and what it wrote."""
        if request.want == wire.CONVERSE:
            return talk.converse(self, request, body)
        child_cage = self.cage_for(request.cpu_ms, request.memory_bytes, frozenset(), talks=False)
        pid, fd = self.fork_child(child_cage)
        if pid == 0:
            child.run_job(bytes(body), fd)
        body[:] = bytes(len(body))  # leave nothing of this program for the next one to find
        return self.collect(pid, fd, request.wall_ms, request.max_reply_bytes)

    def send(self, data: bytes) -> None:
        """Write all of ``data`` to the judge."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.control, view) :]

    def receive(self, num_bytes: int) -> bytearray:
        """Read exactly ``num_bytes`` from the judge; leave quietly when it is gone."""
        data = bytearray(num_bytes)
        view = memoryview(data)
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while view:
            if not poller.poll(_IDLE_POLL_MS):
                if os.getppid() != self.judge_pid:
                    os._exit(0)
                continue
            count = os.readv(self.control, [view])
            if count == 0:
                os._exit(0)
            view = view[count:]
        return data


def _import_all(names: list[str]) -> None:
    """Import everything a program may import, and what those import late: afterwards no file can be opened."""
    # The pure hash functions of the interpreter do; OpenSSL would make every fork dearer.
    sys.modules.setdefault("_hashlib", None)  # type: ignore[arg-type]
    for name in names:
        __import__(name)
    if "datetime" in names:
        time.strptime("2000", "%Y")
        for codec in allowed.CODECS:
            codecs.lookup(codec)
    runtime.prepare()
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


def _warm_up() -> None:
    """Run what a child runs, so that the interpreter's caches are filled here and not page by page in every child."""
    sink = os.open(os.devnull, os.O_WRONLY)
    job = ("0" * 16, _WARM_UP, (("literal", "3"), ("expression", "'4'")), False, "f", True, 65_536, False, False)
    for _ in range(_NUM_WARM_UPS):
        ready = child.Job(marshal.dumps(job))
        replies = child.Replies(sink, ready.nonce)
        code = child.compile_program(ready, replies)
        if code is not None:
            child.run_inputs(ready, code, replies)
    del sys.modules[child.PROGRAM_NAME]
    sys.modules["time"] = time  # a gated program has another in its place
    os.close(sink)


def _reset_signals() -> None:
    """Undo what the caller may have set: ignored and blocked signals are inherited, and ours must kill."""
    for number in (_signal.SIGCHLD, _signal.SIGPROF, _signal.SIGXCPU, _signal.SIGSYS, _signal.SIGSEGV):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # an interrupt at the terminal is the judge's to act on


def main() -> None:
    """Entry point of the fresh interpreter: ``argv`` holds the control socket's number and the settings."""
    control = int(sys.argv[1])
    os.set_blocking(control, True)
    modules, leave_out = marshal.loads(bytes.fromhex(sys.argv[2]))
    _reset_signals()
    warnings.simplefilter("ignore")
    _import_all(modules)
    _warm_up()
    gc.collect()
    gc.disable()
    zygote = Zygote(control, frozenset(leave_out))
    cage.prefer_for_oom()
    os.environ.clear()
    os.chdir("/")
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.path_hooks.clear()
    sys.meta_path.clear()  # what is not imported yet is not there: no file is ever asked for
    sys.argv = [""]
    zygote.has_namespaces = cage.enter_zygote_cage(zygote.libc, zygote.leave_out)
    gc.freeze()
    observed = canaries.observe(zygote)
    payload = " ".join([f"{name}={int(holds)}" for name, holds in observed.items()]).encode()
    zygote.send(wire.ReplyHeader(len(payload), wire.HELLO_ID).pack() + payload)
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = _Sink()  # type: ignore[misc, assignment]
    zygote.serve()
