"""Frames on the socket between the judge and a zygote: fixed binary headers, then a body that nobody between reads."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_REQUEST = struct.Struct("<IQIIQI")
_REPLY = struct.Struct("<IQiBII")
REQUEST_BYTES = _REQUEST.size
REPLY_BYTES = _REPLY.size

HELLO_ID = 0
"""The job id of a zygote's first frame, which tells what its canaries observed."""
RAN_OUT, HIT_WALL, OVERFLOWED, NOT_STARTED = 0, 1, 2, 3
"""Why a child ended: by itself, by the wall deadline, because it wrote more than it may; or that none could start."""


@dataclass(frozen=True)
class RequestHeader:
    """What the zygote itself needs of a job. ``body_bytes`` of opaque job text follow."""

    body_bytes: int
    job_id: int
    cpu_ms: int
    wall_ms: int
    memory_bytes: int
    max_reply_bytes: int

    def pack(self) -> bytes:
        """The header's ``REQUEST_BYTES`` bytes."""
        return _REQUEST.pack(
            self.body_bytes, self.job_id, self.cpu_ms, self.wall_ms, self.memory_bytes, self.max_reply_bytes
        )


@dataclass(frozen=True)
class ReplyHeader:
    """How a child ended. ``wait_status`` is the kernel's; ``payload_bytes`` of whatever the child wrote follow."""

    payload_bytes: int
    job_id: int
    wait_status: int
    stopped: int
    cpu_us: int
    wall_us: int

    def pack(self) -> bytes:
        """The header's ``REPLY_BYTES`` bytes."""
        return _REPLY.pack(self.payload_bytes, self.job_id, self.wait_status, self.stopped, self.cpu_us, self.wall_us)


def unpack_request(data: bytes | bytearray) -> RequestHeader:
    """Read a request's header from its ``REQUEST_BYTES`` bytes."""
    return RequestHeader(*_REQUEST.unpack(data))


def unpack_reply(data: bytes | bytearray) -> ReplyHeader:
    """Read a reply's header from its ``REPLY_BYTES`` bytes."""
    return ReplyHeader(*_REPLY.unpack(data))
