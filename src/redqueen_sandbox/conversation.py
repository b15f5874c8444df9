"""The judge's end of a conversation with one child: it sends messages, reads records, and gets the child's end.

The two use a socket of their own. The zygote that forked the child holds no end of it while it runs.
"""

from __future__ import annotations

import contextlib
import secrets
import socket

from redqueen_sandbox.inside import wire
from redqueen_sandbox.inside.cage import Stillness
from redqueen_sandbox.runs import Job, split_record
from redqueen_sandbox.zygotes import ZygoteHandle

_MAX_SAID_BYTES = 64 << 20


class Lost(OSError):
    """A zygote died or sent an invalid reply."""


class Peer:
    """One child of a conversation, as the judge sees it: records under its nonce, then its end.

    ``role`` is what the child is to be, see ``inside.roles``.
    """

    def __init__(self, zygote: ZygoteHandle, job: Job, role: tuple[str, ...], job_id: int) -> None:
        self.zygote = zygote
        self.job = job
        self.job_id = job_id
        self.nonce = secrets.token_hex(8)
        self.heard = bytearray()
        self.num_heard = 0
        self.end: wire.ReplyHeader | None = None
        self.is_forged = False
        self.stillness: Stillness | None = None
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
        """Whether the child's socket has not taken everything yet."""
        return bool(self._unsent)

    def listen(self) -> None:
        """Take in what has arrived. Raises ``Lost``."""
        if not self.zygote.receive():
            raise Lost
        while (reply := self.zygote.next_reply()) is not None:
            header, _ = reply
            if header.job_id != self.job_id:
                raise Lost
            if header.stopped == wire.STARTED:
                self.stillness = Stillness(header.wait_status)
            else:
                self.end = header
        if self.zygote.is_garbled:
            raise Lost
        self._hear()

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while said := self.socket.recv(1 << 18):
                self.heard += said
                self.num_heard += len(said)
                if self.num_heard > _MAX_SAID_BYTES:
                    self.is_forged = True
                    self.stop()
                    return

    def next_record(self) -> tuple[str, str, str] | None:
        """The next thing the child said, or None. Anything that is no record of ours marks it as forged."""
        found = split_record(self.heard, self.nonce)
        if found == "forged":
            self.is_forged = True
            return None
        if isinstance(found, str):
            return None
        kind, detail, text, size = found
        del self.heard[:size]
        return kind, detail, text

    def tell(self, message: bytes) -> None:
        """Tell the child something, as it stands."""
        self._unsent += message
        self.flush()

    def tell_text(self, text: str) -> None:
        """Tell the child a text."""
        data = text.encode("utf-8")
        self.tell(len(data).to_bytes(wire.LENGTH_BYTES, "little") + data)

    def flush(self) -> None:
        """Send what the child's socket takes."""
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent, socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            return
        except OSError:  # the child is ending; its zygote tells how
            self._unsent.clear()

    def stop(self) -> None:
        """Have the child ended."""
        self.zygote.queue(wire.RequestHeader(self.job_id, 0, 0, 0, 0, wire.STOP))

    def close(self) -> None:
        """Close this end."""
        self.socket.close()
