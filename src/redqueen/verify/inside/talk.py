"""The zygote's part in a conversation: it passes on, unread, what the judge tells a child and what the child says."""

from __future__ import annotations

import os
import select
import time

from . import cage, roles, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .zygote import Zygote


def converse(zygote: Zygote, request: wire.RequestHeader, body: bytearray) -> tuple[wire.ReplyHeader, bytes]:
    """Run one job whose child may be told things while it runs. Returns how it ended; all it said has been sent."""
    told_end, telling_end = os.pipe()
    try:
        child_cage = zygote.cage_for(request.cpu_ms, request.memory_bytes, frozenset(), talks=True)
        pid, fd = zygote.fork_child(child_cage, told_end)
        if pid == 0:
            roles.play_role(bytes(body), fd)
        body[:] = bytes(len(body))
        os.close(told_end)
        told_end = -1
        os.set_blocking(telling_end, False)
        return _Relay(zygote, request, pid, fd, telling_end).run(), b""
    finally:
        if told_end >= 0:
            os.close(told_end)
        os.close(telling_end)


class _Relay:
    """One conversation: bytes wait here only when the child is slow to read them."""

    def __init__(
        self, zygote: Zygote, request: wire.RequestHeader, pid: int, saying_end: int, telling_end: int
    ) -> None:
        self.zygote = zygote
        self.request = request
        self.pid = pid
        self.saying_end = saying_end
        self.telling_end = telling_end
        self.untold = bytearray()
        self.num_said = 0
        self.start_s = time.monotonic()

    def run(self) -> wire.ReplyHeader:
        """Relay until the child ends, its time is up or it has said too much."""
        poller = select.poll()
        poller.register(self.saying_end, select.POLLIN)
        poller.register(self.zygote.control, select.POLLIN)
        while True:
            left_ms = self.request.wall_ms - (time.monotonic() - self.start_s) * 1000
            events = dict(poller.poll(left_ms)) if left_ms > 0 else {}
            if not events:
                return self.zygote.bury(self.pid, self.saying_end, wire.HIT_WALL, self.start_s)
            if self.zygote.control in events:
                self.untold += self.next_message()
            if self.telling_end in events or self.untold:
                self.tell()
                if self.untold:
                    poller.register(self.telling_end, select.POLLOUT)
                elif self.telling_end in events:
                    poller.unregister(self.telling_end)
            if self.saying_end in events:
                said = os.read(self.saying_end, 65_536)
                self.num_said += len(said)
                if not said:
                    return self.zygote.bury(self.pid, self.saying_end, wire.RAN_OUT, self.start_s)
                if self.num_said > self.request.max_reply_bytes:
                    return self.zygote.bury(self.pid, self.saying_end, wire.OVERFLOWED, self.start_s)
                header = wire.ReplyHeader(len(said), self.request.job_id, stopped=wire.SAYS)
                self.zygote.send(header.pack() + said)

    def next_message(self) -> bytearray:
        """Read one thing to tell the child. When the judge is gone, the child goes too."""
        try:
            header = wire.unpack_request(self.zygote.receive(wire.REQUEST_BYTES))
            return self.zygote.receive(header.body_bytes)
        except SystemExit:
            os.kill(self.pid, cage.SIGKILL)
            raise

    def tell(self) -> None:
        """Write what the child's pipe takes now."""
        try:
            while self.untold:
                del self.untold[: os.write(self.telling_end, self.untold)]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the child is ending; its end is told on the other pipe
            self.untold.clear()
