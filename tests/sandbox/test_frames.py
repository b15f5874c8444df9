"""What a child wrote is hostile: forged, cut, garbled and random replies never become an answer."""

import random
import signal
import socket

import pytest

from redqueen_sandbox.inside import wire
from redqueen_sandbox.inside.child import Replies
from redqueen_sandbox.records import VERDICTS
from redqueen_sandbox.runs import Job, Run, read_run
from redqueen_sandbox.zygotes import ZygoteHandle

NONCE = "0123456789abcdef"
JOB = Job("def f(x): return x", (("literal", "1"), ("literal", "2")), "all", 100, 2000, 1 << 26, 1000)
END = ("end", "", "")


def payload(*records: tuple[str, str, str], nonce: str = NONCE) -> bytes:
    replies = Replies(-1, nonce)
    return b"".join(replies.frame(*record) for record in records)


def read(data: bytes, status: int = 0, stopped: int = wire.NOT_STOPPED, job: Job = JOB) -> Run:
    return read_run(job, wire.ReplyHeader(len(data), 1, status, stopped, 2000, 3000), data, NONCE, 0)


def test_a_whole_reply_is_read_in_order() -> None:
    run = read(payload(("ok", "", "1"), ("ok", "", "[2]"), END))
    assert (run.verdict, [item.text for item in run.items], run.cpu_ms) == ("ok", ["1", "[2]"], 2.0)


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (b"", "no-result"),
        (b"\xff\xfe\x00" * 10, "bad-frame"),
        (b"A" * 5000, "bad-frame"),
        (payload(("ok", "", "1"), ("ok", "", "2")), "bad-frame"),  # no last word
        (payload(("ok", "", "1"), END), "bad-frame"),  # an answer is missing
        (payload(("ok", "", "1"), ("ok", "", "2"), ("ok", "", "3"), END), "bad-frame"),
        (payload(("ok", "", "1"), ("ok", "", "2"), END) + b"x", "bad-frame"),
        (payload(("ok", "", "1"), ("ok", "", "2"), END) * 2, "bad-frame"),
        (b"junk" + payload(("ok", "", "1"), ("ok", "", "2"), END), "bad-frame"),
        (payload(("ok", "", "1"), ("ok", "", "2"), END, nonce="f" * 16), "bad-frame"),
        (payload(("passed", "", ""), ("ok", "", "2"), END), "bad-frame"),
        (payload(("infra", "", ""), END), "bad-frame"),  # not a child's word to say
        (payload(("ok", "", "__import__('os')"), ("ok", "", "2"), END), "invalid-output"),
        (payload(("ok", "", "{2, 1}"), ("ok", "", "2"), END), "invalid-output"),
        (payload(("ok", "", "'" + "a" * 2000 + "'"), ("ok", "", "2"), END), "invalid-output"),
    ],
)
def test_a_reply_that_is_not_whole_and_ours_is_no_answer(data: bytes, verdict: str) -> None:
    assert read(data).verdict == verdict


def test_a_perfect_reply_from_a_child_that_died_is_no_answer() -> None:
    whole = payload(("ok", "", "1"), ("ok", "", "2"), END)
    for status, verdict in ((31, "forbidden"), (27, "timeout"), (11, "crash"), (9, "memory"), (1 << 8, "no-result")):
        assert read(whole, status).ended == verdict
    assert read(whole, stopped=wire.HIT_WALL).ended == "timeout"
    assert read(whole, stopped=wire.ASLEEP).ended == "timeout"
    assert read(whole, status=25).ended == "too-large"  # the file's limit
    assert read(whole, stopped=wire.NOT_STARTED).ended == "infra"


def test_a_program_that_fills_its_memory_is_told_alike_whichever_limit_it_met_first() -> None:
    met_memory = payload(("memory", "MemoryError", ""), END)
    first = read_run(JOB, wire.ReplyHeader(len(met_memory), 1, 0, wire.NOT_STOPPED, 2000, 3000), met_memory, NONCE, 0)
    met_clock = b""
    header = wire.ReplyHeader(len(met_clock), 1, signal.SIGPROF, wire.NOT_STOPPED, 2000, 3000, 1 << 20)
    second = read_run(JOB, header, met_clock, NONCE, 0)
    assert (first.verdict, first.reason) == (second.verdict, second.reason) == ("memory", "MemoryError")


def test_a_detail_is_bounded_and_printable() -> None:
    run = read(payload(("forbidden", "gate", "\x1b[31m" + "x" * 900), END))
    assert run.verdict == "forbidden"
    assert run.reason.isprintable() and len(run.reason) <= 200


def test_ten_thousand_random_replies_get_one_verdict_each_and_never_an_answer_that_was_not_given() -> None:
    rng = random.Random(20260501)
    whole = payload(("ok", "", "1"), ("ok", "", "[2]"), END)
    for _ in range(10_000):
        data = bytearray(whole if rng.random() < 0.7 else rng.randbytes(rng.randrange(200)))
        for _ in range(rng.randrange(1, 4)):
            cut = rng.randrange(len(data) + 1)
            change = rng.randrange(4)
            if change == 0:
                del data[cut : cut + rng.randrange(1, 20)]
            elif change == 1:
                data[cut:cut] = rng.randbytes(rng.randrange(1, 8))
            elif change == 2 and data:
                data[cut % len(data)] = rng.randrange(256)
            else:
                data[cut:cut] = data[: rng.randrange(len(data) + 1)]
        run = read(bytes(data), rng.choice((0, 0, 0, 0, 9, 31)))
        assert run.verdict in VERDICTS
        if run.verdict == "ok":
            assert len(run.items) == 2


def test_ten_thousand_random_frames_from_a_zygote_are_cut_off_or_read_without_harm() -> None:
    rng = random.Random(7)
    for _ in range(100):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        handle = ZygoteHandle("plain", 0, None, ours)  # type: ignore[arg-type]
        for _ in range(100):
            size = rng.randrange(0, 60)
            header = wire.ReplyHeader(size, rng.randrange(3), rng.randrange(-9, 99), rng.randrange(256)).pack()
            theirs.send((header if rng.random() < 0.8 else rng.randbytes(rng.randrange(40))) + rng.randbytes(size))
        assert handle.receive()
        while (reply := handle.next_reply()) is not None:
            assert len(reply[1]) == reply[0].payload_bytes
        ours.close()
        theirs.close()
