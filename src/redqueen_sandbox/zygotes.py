"""The judge's side of one zygote: start a fresh interpreter, send it requests, read its frames, end it."""

from __future__ import annotations

import array
import collections
import contextlib
import fcntl
import marshal
import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from redqueen_sandbox.inside import wire
from redqueen_sandbox.inside.cage import SleepDetector
from redqueen_sandbox.runs import Job, split_record
from redqueen_sandbox.words import GATED_KINDS, modules_of, paths_of

_START_S, _START_WITH_LIBRARIES_S = 30.0, 120.0
"""Wall time in which a zygote must come up. One that imports libraries (sympy: 2 s of CPU) has more time, because on a
busy machine it may get only a tenth of a core (ours)."""
HASH_SEED = 11
"""Hash seed of zygote number 0 of the kinds without the gate (ours)."""
_MAX_PAYLOAD_BYTES = 16 << 20
# Import ``inside`` as a top-level package: ``redqueen_sandbox/__init__.py`` would import the judge.
_BOOT = (
    "import sys; sys.path[:0] = [sys.argv[3]]; sys.path += sys.argv[4:]; "
    "from inside import canaries, zygote; zygote.main(canaries.observe)"
)
_CODE_FOLDER = str(Path(__file__).resolve().parent)
_NUM_STANDARD_STREAMS = 3


def wait_for(
    read: Collection[socket.socket], write: Collection[socket.socket], timeout_s: float
) -> list[socket.socket]:
    """Wait until a socket can be read or written. Returns the readable ones.

    It uses ``poll``: ``select`` does not support descriptors above 1,023."""
    with selectors.PollSelector() as selector:
        for end in {*read, *write}:
            selector.register(end, selectors.EVENT_READ * (end in read) | selectors.EVENT_WRITE * (end in write))
        ready = {key.fd for key, events in selector.select(max(0.0, timeout_s)) if events & selectors.EVENT_READ}
    return [end for end in read if end.fileno() in ready]


@dataclass(frozen=True)
class ZygoteSettings:
    """How zygotes start. ``leave_out`` omits protections by name, and ``preload`` imports further modules into every
    kind. Both exist only for the tests of the cage."""

    leave_out: frozenset[str] = frozenset()
    preload: tuple[str, ...] = ()
    executable: str = sys.executable
    user: int = -1
    """User id of the process, -1 for the caller's own."""
    hash_seed: int = field(default_factory=lambda: secrets.randbits(32))
    """First hash seed of gated programs, below 2**32. Random, so that no program behaves well under this seed only."""


class ZygoteHandle:
    """One running zygote: its process, its socket, and buffers of unsent and unread bytes."""

    def __init__(self, kind: str, seed: int, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.kind = kind
        self.seed = seed
        self.process = process
        self.socket = control
        self.observed: dict[str, bool] = {}
        self.awaited_since_s = time.monotonic()
        self.head_since_s = 0.0
        self.is_garbled = False
        self._unsent: collections.deque[tuple[bytes, list[int]]] = collections.deque()
        self._received = bytearray()

    @property
    def has_unsent(self) -> bool:
        """Whether requests are still to be sent."""
        return bool(self._unsent)

    def wait_hello(self) -> None:
        """Wait for the canaries' report, at most the time limit of a start, counted from ``awaited_since_s``.

        Raises OSError with the interpreter's own message if the report does not come.
        """
        deadline_s = self.awaited_since_s + (_START_S if not paths_of(self.kind) else _START_WITH_LIBRARIES_S)
        while True:
            if not wait_for([self.socket], [], deadline_s - time.monotonic()) or not self.receive():
                raise OSError(f"a zygote did not come up ({self._last_error_line()})")
            reply = self.next_reply()
            if reply is not None:
                words = [word.partition("=") for word in reply[1].decode().split()]
                self.observed = {name: holds == "1" for name, _, holds in words}
                return

    def queue(self, request: wire.RequestHeader, file: int = -1) -> None:
        """Queue a request with its file's descriptor, and send as much as the socket accepts now."""
        self._unsent.append((request.pack(), [file] if file >= 0 else []))
        self.flush()

    def flush(self) -> bool:
        """Send as much as the socket accepts. Returns False when the zygote has died."""
        try:
            while self._unsent:
                data, files = self._unsent[0]
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
                self.socket.sendmsg([data], [rights], socket.MSG_NOSIGNAL)  # no SIGPIPE: it could end the caller
                self._unsent.popleft()
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def receive(self) -> bool:
        """Read the bytes that have arrived. Returns False when the zygote has died."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._received += data
        return bool(data)

    def next_reply(self) -> tuple[wire.ReplyHeader, bytes] | None:
        """Return the next complete frame, or None. An invalid frame sets ``is_garbled``."""
        if len(self._received) < wire.REPLY_BYTES or self.is_garbled:
            return None
        header = wire.unpack_reply(self._received[: wire.REPLY_BYTES])
        if header.payload_bytes > _MAX_PAYLOAD_BYTES or header.stopped > wire.STARTED:
            self.is_garbled = True
            return None
        end = wire.REPLY_BYTES + header.payload_bytes
        if len(self._received) < end:
            return None
        payload = bytes(self._received[wire.REPLY_BYTES : end])
        del self._received[:end]
        return header, payload

    def end(self) -> None:
        """Kill the zygote (its child dies with it) and wait for its end."""
        self.socket.close()
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()

    def _last_error_line(self) -> str:
        if self.process.stderr is None:
            return "no reason given"
        os.set_blocking(self.process.stderr.fileno(), False)
        words = (self.process.stderr.read() or b"").decode("utf-8", "replace").strip()
        return words.splitlines()[-1][:300] if words else "no reason given"


def _control_sockets() -> tuple[socket.socket, socket.socket]:
    """Return the judge's socket and the zygote's. The zygote's descriptor is above those of the standard streams."""
    ours, theirs = socket.socketpair()
    try:
        number = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _NUM_STANDARD_STREAMS)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, socket.socket(fileno=number)


def start_zygote(kind: str, seed: int, settings: ZygoteSettings) -> ZygoteHandle:
    """Start a fresh interpreter of a kind (see ``words.modules_of``) under the hash seed number ``seed``.

    Raises OSError when that fails. The interpreter is a new process image, never a fork of the caller: it contains
    nothing of the caller's memory and none of its threads.
    """
    ours, theirs = _control_sockets()
    first = settings.hash_seed if kind in GATED_KINDS else HASH_SEED
    hash_seed = (first + 2_654_435_761 * seed) % 2**32 or 1  # 0 would disable hash randomization
    options = marshal.dumps(
        ([*modules_of(kind), *settings.preload], sorted(settings.leave_out), seed, kind in GATED_KINDS, os.getpid())
    ).hex()
    # Some interpreters need these variables to find their files; the zygote clears its environment after the start.
    inherited = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    boot = [_BOOT, str(theirs.fileno()), options, _CODE_FOLDER, *paths_of(kind)]
    try:
        process = subprocess.Popen(
            [settings.executable, "-s", "-S", "-P", "-c", *boot],
            env={"PYTHONHASHSEED": str(hash_seed), "LC_ALL": "C.UTF-8", "TZ": "UTC", **inherited},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            cwd="/",
            start_new_session=True,
            user=settings.user if settings.user >= 0 else None,
        )
    except (OSError, subprocess.SubprocessError) as error:
        ours.close()
        raise OSError(str(error)) from None
    finally:
        theirs.close()
    ours.setblocking(False)
    return ZygoteHandle(kind, seed, process, ours)


# ---- the judge's side of an interactive child, over a socket of its own ----

_MAX_RECEIVED_BYTES = 64 << 20


class Lost(OSError):
    """A zygote died or sent an invalid reply."""


class Peer:
    """The judge's side of one interactive child: records under its nonce, then ``end``, how the child ended.

    ``role``: the arguments of ``inside.roles.run_role``.
    """

    def __init__(self, zygote: ZygoteHandle, job: Job, role: tuple[str, ...], job_id: int) -> None:
        self.zygote = zygote
        self.job = job
        self.job_id = job_id
        self.nonce = secrets.token_hex(8)
        self._received = bytearray()
        self._num_received = 0
        self.end: wire.ReplyHeader | None = None
        self.is_forged = False
        self.sleep_detector: SleepDetector | None = None
        self._unsent = bytearray(job.head(self.nonce, role))
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        with theirs:
            request = wire.RequestHeader(job_id, job.cpu_ms, job.wall_ms, job.memory_bytes, 0, wire.CONVERSE)
            zygote.queue(request, theirs.fileno())
            if zygote.has_unsent:
                raise Lost
        self.flush()

    @property
    def has_unsent(self) -> bool:
        """Whether bytes are still to be sent to the child."""
        return bool(self._unsent)

    def receive(self) -> None:
        """Read everything that has arrived from the zygote and the child. Raises ``Lost``."""
        if not self.zygote.receive():
            raise Lost
        while (reply := self.zygote.next_reply()) is not None:
            header, _ = reply
            if header.job_id != self.job_id:
                raise Lost
            if header.stopped == wire.STARTED:
                self.sleep_detector = SleepDetector(header.wait_status)
            else:
                self.end = header
        if self.zygote.is_garbled:
            raise Lost
        self._receive_records()

    def _receive_records(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while data := self.socket.recv(1 << 18):
                self._received += data
                self._num_received += len(data)
                if self._num_received > _MAX_RECEIVED_BYTES:
                    self.is_forged = True
                    self.stop()
                    return

    def next_record(self) -> tuple[str, str, str] | None:
        """Return the next record of the child, or None. An invalid record sets ``is_forged``."""
        found = split_record(self._received, self.nonce)
        if found == "forged":
            self.is_forged = True
            return None
        if isinstance(found, str):
            return None
        kind, detail, text, size = found
        del self._received[:size]
        return kind, detail, text

    def send(self, message: bytes) -> None:
        """Send bytes to the child unchanged."""
        self._unsent += message
        self.flush()

    def send_text(self, text: str) -> None:
        """Send a text to the child, after its length."""
        data = text.encode("utf-8")
        self.send(len(data).to_bytes(wire.LENGTH_BYTES, "little") + data)

    def flush(self) -> None:
        """Send as much as the child's socket accepts."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent, socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            return
        except OSError:  # the child is ending; its zygote reports how
            self._unsent.clear()

    def stop(self) -> None:
        """Ask the zygote to end the child."""
        self.zygote.queue(wire.RequestHeader(self.job_id, 0, 0, 0, 0, wire.STOP))

    def close(self) -> None:
        """Close the judge's socket."""
        self.socket.close()
