"""Frames on the socket between the judge and a zygote: fixed binary headers, then a body that nobody between reads.

Plain classes here and in the zygote, no dataclasses: every page and mapping that a zygote has is copied by each fork,
so it imports nothing it can do without.
"""

from __future__ import annotations

import struct

_REQUEST = struct.Struct("<IQIIQIB")
_REPLY = struct.Struct("<IQiBIII")
REQUEST_BYTES = _REQUEST.size
REPLY_BYTES = _REPLY.size

HELLO_ID = 0
"""The job id of a zygote's first frame, which tells what its canaries observed."""
RAN_OUT, HIT_WALL, OVERFLOWED, NOT_STARTED, SAYS = 0, 1, 2, 3, 4
"""Why a child ended: by itself, by the wall deadline, because it wrote more than it may; or that none could start.
``SAYS`` is no end: the child of a conversation said something and goes on."""
RUN, CONVERSE, TELL = 0, 1, 2
"""What a request wants: run a job; run a job that may also be told things; tell the running child something."""


class RequestHeader:
    """What the zygote itself needs of a job. ``body_bytes`` of opaque job text follow."""

    __slots__ = ("body_bytes", "cpu_ms", "job_id", "max_reply_bytes", "memory_bytes", "wall_ms", "want")

    def __init__(
        self,
        body_bytes: int,
        job_id: int,
        cpu_ms: int,
        wall_ms: int,
        memory_bytes: int,
        max_reply_bytes: int,
        want: int = RUN,
    ) -> None:
        self.body_bytes = body_bytes
        self.job_id = job_id
        self.cpu_ms = cpu_ms
        self.wall_ms = wall_ms
        self.memory_bytes = memory_bytes
        self.max_reply_bytes = max_reply_bytes
        self.want = want

    def pack(self) -> bytes:
        """The header's ``REQUEST_BYTES`` bytes."""
        return _REQUEST.pack(
            self.body_bytes,
            self.job_id,
            self.cpu_ms,
            self.wall_ms,
            self.memory_bytes,
            self.max_reply_bytes,
            self.want,
        )


class ReplyHeader:
    """How a child ended. ``wait_status`` is the kernel's; ``payload_bytes`` of whatever the child wrote follow."""

    __slots__ = ("cpu_us", "job_id", "payload_bytes", "peak_kb", "stopped", "wait_status", "wall_us")

    def __init__(
        self,
        payload_bytes: int,
        job_id: int,
        wait_status: int = 0,
        stopped: int = RAN_OUT,
        cpu_us: int = 0,
        wall_us: int = 0,
        peak_kb: int = 0,
    ) -> None:
        self.payload_bytes = payload_bytes
        self.job_id = job_id
        self.wait_status = wait_status
        self.stopped = stopped
        self.cpu_us = cpu_us
        self.wall_us = wall_us
        self.peak_kb = peak_kb

    def pack(self) -> bytes:
        """The header's ``REPLY_BYTES`` bytes."""
        return _REPLY.pack(
            self.payload_bytes,
            self.job_id,
            self.wait_status,
            self.stopped,
            self.cpu_us,
            self.wall_us,
            self.peak_kb,
        )


def unpack_request(data: bytes | bytearray) -> RequestHeader:
    """Read a request's header from its ``REQUEST_BYTES`` bytes."""
    return RequestHeader(*_REQUEST.unpack(data))


def unpack_reply(data: bytes | bytearray) -> ReplyHeader:
    """Read a reply's header from its ``REPLY_BYTES`` bytes."""
    return ReplyHeader(*_REPLY.unpack(data))
