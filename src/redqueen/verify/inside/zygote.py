"""The zygote: a warm interpreter that has given up everything, and forks one caged child for each program.

Started by the judge as a fresh interpreter under one hash seed. It reads jobs from one socket, never looks into their
bodies, and answers each with how the child ended and what it wrote. It runs one child at a time.
"""

from __future__ import annotations

import codecs
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
import warnings

from . import allowed, cage, canaries, child, seccomp, wire

REPLY_FD = 3
"""The only file descriptor that is open in a child."""
_IDLE_POLL_MS = 1_000


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
    """What the loop knows: its control socket, the prebuilt filter, the sizes it measured before the cage closed."""

    def __init__(self, control: int, leave_out: frozenset[str]) -> None:
        self.control = control
        self.leave_out = leave_out
        self.libc = cage.load_libc()
        self.pid = os.getpid()
        self.judge_pid = os.getppid()
        self.has_namespaces = False
        arch = seccomp.machine()
        self.bpf = seccomp.build_filter(arch, REPLY_FD) if arch else b""
        with open("/proc/self/statm", "rb") as statm:
            self.base_bytes = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def fork_child(self, limits: cage.ChildLimits, leave_out: frozenset[str]) -> tuple[int, int]:
        """Fork. In the parent return (pid, read end); in the child close the cage and return (0, reply fd).

        Raises OSError when the machine has no room for another process.
        """
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write_end)
            return pid, read_end
        if write_end != REPLY_FD:
            os.dup2(write_end, REPLY_FD)
        os.closerange(0, REPLY_FD)
        os.closerange(REPLY_FD + 1, 256)
        if not cage.enter_child_cage(self.libc, limits, self.base_bytes, self.bpf, leave_out, self.pid):
            os._exit(97)
        return 0, REPLY_FD

    def collect(self, pid: int, read_end: int, wall_ms: int, max_bytes: int) -> tuple[wire.ReplyHeader, bytes]:
        """Read what the child writes until it ends, the wall deadline passes or it has written too much."""
        start = time.monotonic()
        poller = select.poll()
        poller.register(read_end, select.POLLIN)
        poller.register(self.control, 0)  # only its hang-up: the judge is gone
        chunks: list[bytes] = []
        size = 0
        stopped = wire.RAN_OUT
        while True:
            left_ms = wall_ms - (time.monotonic() - start) * 1000
            events = poller.poll(left_ms) if left_ms > 0 else []
            if not events:
                stopped = wire.HIT_WALL
                break
            if any(fd != read_end for fd, _ in events):
                os.kill(pid, signal.SIGKILL)
                os._exit(0)
            chunk = os.read(read_end, 65_536)
            size += len(chunk)
            if not chunk:
                break
            chunks.append(chunk)
            if size > max_bytes:
                stopped = wire.OVERFLOWED
                break
        # A child that has exited is past being killed; one that only closed its pipe is not left running.
        os.kill(pid, signal.SIGKILL)
        os.close(read_end)
        _, status, usage = os.wait4(pid, 0)
        payload = b"".join(chunks) if stopped == wire.RAN_OUT else b""
        cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
        wall_us = int((time.monotonic() - start) * 1e6)
        return wire.ReplyHeader(len(payload), 0, status, stopped, cpu_us, wall_us), payload

    def serve(self) -> None:
        """Answer jobs until the judge hangs up."""
        while True:
            head = self.receive(wire.REQUEST_BYTES)
            request = wire.unpack_request(head)
            body = self.receive(request.body_bytes)
            limits = cage.ChildLimits(request.cpu_ms, request.memory_bytes)
            try:
                pid, fd = self.fork_child(limits, self.leave_out)
            except OSError:  # no process or descriptor to be had just now: the judge's own trouble
                self.send(wire.ReplyHeader(0, request.job_id, 0, wire.NOT_STARTED, 0, 0).pack())
                continue
            if pid == 0:
                child.run_job(bytes(body), fd)
            body[:] = bytes(len(body))  # leave nothing of this program for the next one to find
            header, payload = self.collect(pid, fd, request.wall_ms, request.max_reply_bytes)
            answer = wire.ReplyHeader(
                header.payload_bytes, request.job_id, header.wait_status, header.stopped, header.cpu_us, header.wall_us
            )
            self.send(answer.pack() + payload)

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


def _import_all(extra: list[str]) -> None:
    """Import everything a program may import, and what those import late: afterwards no file can be opened."""
    warnings.simplefilter("ignore")
    # The pure hash functions of the interpreter do; OpenSSL would make every fork dearer.
    sys.modules.setdefault("_hashlib", None)  # type: ignore[arg-type]
    for name in (*allowed.MODULES, *allowed.PRELOADED_BESIDES, *extra):
        importlib.import_module(name)
    for codec in allowed.CODECS:
        codecs.lookup(codec)
    time.strptime("2000", "%Y")


def main() -> None:
    """Entry point of the fresh interpreter: ``argv`` is the control socket's number and the settings as JSON."""
    control = int(sys.argv[1])
    os.set_blocking(control, True)
    settings = json.loads(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all(settings["preload"])
    zygote = Zygote(control, frozenset(settings["leave_out"]))
    cage.prefer_for_oom()
    os.environ.clear()
    os.chdir("/")
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.argv = [""]
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = _Sink()  # type: ignore[misc, assignment]
    zygote.has_namespaces = cage.enter_zygote_cage(zygote.libc, zygote.leave_out)
    gc.collect()
    gc.disable()
    gc.freeze()
    observed = canaries.observe(zygote)
    payload = json.dumps(observed).encode()
    zygote.send(wire.ReplyHeader(len(payload), wire.HELLO_ID, 0, wire.RAN_OUT, 0, 0).pack() + payload)
    zygote.serve()
