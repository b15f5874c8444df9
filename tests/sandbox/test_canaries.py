"""Canaries on a busy machine: what the clock stopped is tried again; one that lives where it must die is no proof."""

import signal
from types import SimpleNamespace

import pytest

from redqueen_sandbox.inside import canaries, wire

SIGSYS_STATUS, SIGPROF_STATUS = int(signal.SIGSYS), int(signal.SIGPROF)


class ScriptedZygote:
    """Forks nothing; its children end one after another as told: (wait status, why stopped)."""

    def __init__(self, *ends: tuple[int, int]):
        self.ends = list(ends)
        self.libc = SimpleNamespace()

    def cage_for(self, *_: object, **__: object) -> None:
        return None

    def fork_child(self, *_: object) -> int:
        return 1

    def collect(self, *_: object) -> wire.ReplyHeader:
        status, stopped = self.ends.pop(0)
        return wire.ReplyHeader(0, 0, status, stopped)


@pytest.mark.parametrize(
    ("ends", "seen"),
    [
        ([(SIGSYS_STATUS, wire.NOT_STOPPED)], True),
        ([(SIGPROF_STATUS, wire.NOT_STOPPED), (SIGSYS_STATUS, wire.NOT_STOPPED)], True),
        ([(9, wire.HIT_WALL), (SIGPROF_STATUS, wire.NOT_STOPPED), (SIGSYS_STATUS, wire.NOT_STOPPED)], True),
        ([(0, wire.NOT_STOPPED)] * 3, False),
        ([(SIGPROF_STATUS, wire.NOT_STOPPED)] * 3, False),
    ],
)
def test_a_filter_is_seen_when_a_canary_dies_of_it_within_three_tries(ends: list[tuple[int, int]], seen: bool) -> None:
    zygote = ScriptedZygote(*ends)
    assert canaries._ends_by(zygote, lambda libc: True, signal.SIGSYS) is seen
    assert zygote.ends == []
