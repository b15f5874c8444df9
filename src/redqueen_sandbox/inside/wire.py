"""Frames on the socket between the judge and a zygote: fixed binary headers, numbers only.

Program, inputs and reply bypass the zygote: they are in a file whose descriptor comes with the request. The zygote
passes it to the child and never reads it. Here and in the zygote classes are plain, not dataclasses: each fork copies
every page and mapping of the zygote, so it imports as little as possible.
"""

from __future__ import annotations

import struct

_REQUEST = struct.Struct("<QIIQQB")
_REPLY = struct.Struct("<IQiBIII")
REQUEST_BYTES = _REQUEST.size
REPLY_BYTES = _REPLY.size

LENGTH_BYTES = 4
"""A job, and each message to an interactive child, begins with its length, little-endian."""
REPLY_FD = 3
"""The only file descriptor of a child: the file of its job and reply, or its socket if it is interactive."""
HELLO_ID = 0
"""The job id of a zygote's first frame, which holds the results of its canaries."""
NOT_STOPPED, HIT_WALL, ASLEEP, NOT_STARTED, STARTED = 0, 1, 2, 3, 4
"""Why the zygote stopped a child: not at all (it ended by itself), the wall deadline, or sleep. ``NOT_STARTED``: no
process was available. ``STARTED``: an interactive child runs; its process id replaces the wait status."""
RUN, CONVERSE, STOP = 0, 1, 2
"""The requests: run a child that reads its job from a file and writes its reply there; run an interactive child, which
communicates with the judge over a socket; stop that child."""


class RequestHeader:
    """The part of a job that the zygote reads. The descriptor of the job's file comes with it."""

    __slots__ = ("cpu_ms", "job_id", "max_file_bytes", "memory_bytes", "wall_ms", "want")

    def __init__(
        self, job_id: int, cpu_ms: int, wall_ms: int, memory_bytes: int, max_file_bytes: int, want: int = RUN
    ) -> None:
        self.job_id, self.want = job_id, want
        self.cpu_ms, self.wall_ms = cpu_ms, wall_ms
        self.memory_bytes, self.max_file_bytes = memory_bytes, max_file_bytes

    def pack(self) -> bytes:
        """Return the header's ``REQUEST_BYTES`` bytes."""
        return _REQUEST.pack(self.job_id, self.cpu_ms, self.wall_ms, self.memory_bytes, self.max_file_bytes, self.want)


class ReplyHeader:
    """How a child ended. ``wait_status`` is the kernel's. Only the first frame has a payload, of ``payload_bytes``."""

    __slots__ = ("cpu_us", "job_id", "payload_bytes", "peak_kb", "stopped", "wait_status", "wall_us")

    def __init__(
        self, payload_bytes: int, job_id: int, wait_status: int = 0, stopped: int = NOT_STOPPED,
        cpu_us: int = 0, wall_us: int = 0, peak_kb: int = 0,
    ) -> None:  # fmt: skip
        self.payload_bytes, self.job_id = payload_bytes, job_id
        self.wait_status, self.stopped = wait_status, stopped
        self.cpu_us, self.wall_us, self.peak_kb = cpu_us, wall_us, peak_kb

    def pack(self) -> bytes:
        """Return the header's ``REPLY_BYTES`` bytes."""
        return _REPLY.pack(
            self.payload_bytes, self.job_id, self.wait_status, self.stopped, self.cpu_us, self.wall_us, self.peak_kb
        )


def unpack_request(data: bytes | bytearray) -> RequestHeader:
    """Read a request's header from its ``REQUEST_BYTES`` bytes."""
    return RequestHeader(*_REQUEST.unpack(data))


def unpack_reply(data: bytes | bytearray) -> ReplyHeader:
    """Read a reply's header from its ``REPLY_BYTES`` bytes."""
    return ReplyHeader(*_REPLY.unpack(data))


NOTHING = RequestHeader(0, 0, 0, 0, 0), -1
"""The result of ``RequestReader.receive`` when no request has arrived."""


class RequestReader:
    """Receives requests, each with its descriptor, by ``recvmsg`` of the C library: the modules ``_socket`` and
    ``select`` would be two more libraries in every fork."""

    def __init__(self, libc: object, control: int) -> None:
        import ctypes

        self._recvmsg = libc.recvmsg  # type: ignore[attr-defined]
        self._memmove, self._memset = ctypes.memmove, ctypes.memset
        self._control = control
        self._header = ctypes.create_string_buffer(REQUEST_BYTES)
        self._iovec = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(self._header), REQUEST_BYTES))
        self._ancillary = ctypes.create_string_buffer(_ANCILLARY_BYTES)
        self._message = struct.pack(
            "@PIPNPNi4x",
            0, 0, ctypes.addressof(self._iovec), 1, ctypes.addressof(self._ancillary), _ANCILLARY_BYTES, 0,
        )  # fmt: skip
        self._buffer = ctypes.create_string_buffer(self._message)
        self._errno = ctypes.get_errno
        longest_wait = struct.pack("@ll", _LONGEST_WAIT_S, 0)
        libc.setsockopt(control, _SOL_SOCKET, _SO_RCVTIMEO, longest_wait, len(longest_wait))  # type: ignore[attr-defined]

    def receive(self, waits: bool = True) -> tuple[RequestHeader, int] | None:
        """Return the next request and its descriptor (-1 for none), or None if the judge died or sent an invalid one.

        Returns ``NOTHING`` if no request arrives within a second, or, with ``waits`` False, at once.
        """
        self._memmove(self._buffer, self._message, len(self._message))
        self._memset(self._ancillary, 0, _ANCILLARY_BYTES)
        flags = _MSG_CMSG_CLOEXEC | (_MSG_WAITALL if waits else _MSG_DONTWAIT)
        num_bytes = self._recvmsg(self._control, self._buffer, flags)
        if num_bytes < 0 and self._errno() in (_EAGAIN, _EINTR):
            return NOTHING
        if num_bytes != REQUEST_BYTES:
            return None
        length, level, kind, fd = struct.unpack_from("@Niii", self._ancillary.raw)
        has_fd = (length, level, kind) == (_CMSG_LEN, _SOL_SOCKET, _SCM_RIGHTS)
        return unpack_request(self._header.raw), fd if has_fd else -1


_LONGEST_WAIT_S = 1
_EINTR, _EAGAIN = 4, 11
_MSG_DONTWAIT, _MSG_WAITALL, _MSG_CMSG_CLOEXEC = 0x40, 0x100, 0x40000000
_SOL_SOCKET, _SCM_RIGHTS, _SO_RCVTIMEO = 1, 1, 20
_CMSG_LEN, _ANCILLARY_BYTES = 20, 24  # one descriptor on a 64-bit machine
