"""What a server may answer, and how long: late, without an end, in pieces, with other things than were asked for."""

import gzip
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from unittest.mock import patch

import pytest

from redqueen.errors import UserError
from redqueen.remote.server import MAX_BYTES, Server, ServerLost

Reply = Callable[[socket.socket], None]
BODY = {"n": 1, "max_tokens": 3, "logprobs": 0}
OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def server_that(reply: Reply, answer_s: float = 0.5) -> Iterator[Server]:
    """Give a client of a server that reads a request and then does as ``reply`` says with the connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as request:  # the client may leave
            # read all of it: closing a connection with unread data resets the answer
            head = b"".join(iter(request.readline, b"\r\n")).lower()
            length = re.search(rb"content-length: (\d+)", head)
            request.read(int(length[1]) if length else 0)
            reply(connection)

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = Server(url, vocabulary=10)
    try:
        with patch("redqueen.remote.server.ANSWER_S", answer_s):
            yield server
    finally:
        server.close()
        listening.close()


def whole(text: str | bytes, headers: bytes = b"") -> Reply:
    data = text.encode() if isinstance(text, str) else text
    return lambda connection: connection.sendall(OK + headers + b"Content-Length: %d\r\n\r\n" % len(data) + data)


def pieces(start: bytes, piece: bytes, pause_s: float) -> Reply:
    def reply(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(piece)
            time.sleep(pause_s)

    return reply


def completion(tokens: object = (1, 2), logprobs: object = (-0.5, -0.25), ended: object = "stop") -> str:
    choice = {"index": 0, "token_ids": tokens, "logprobs": {"token_logprobs": logprobs}, "finish_reason": ended}
    return json.dumps({"choices": [choice]})


def test_a_good_answer_is_read() -> None:
    with server_that(whole(completion())) as server:
        (sampled,) = server.begin(BODY).result()
    assert (sampled.tokens, sampled.logprobs, sampled.stopped) == ((1, 2), (-0.5, -0.25), True)


@pytest.mark.parametrize(
    ("start", "piece"),
    [(OK, b"X-Wait: 1\r\n"), (OK + b"Content-Length: 100000\r\n\r\n", b" "), (OK + b"\r\n", b" ")],
    ids=["headers", "a body", "a body of no told length"],
)
def test_a_server_that_answers_piece_by_piece_has_no_more_time_than_one_that_hangs(
    start: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redqueen.remote.server.CONNECT_S", 0.5)
    with server_that(pieces(start, piece, 0.05)) as server:
        began = time.monotonic()
        with pytest.raises(ServerLost, match=r"no whole answer in 0\.5 s"):
            server.begin(BODY).result()
        assert time.monotonic() - began < 3
        with pytest.raises(ServerLost):
            server.models()


def test_an_answer_without_an_end_is_left() -> None:
    with server_that(pieces(OK + b"\r\n", b" " * 2**16, 0), answer_s=60) as server:
        with pytest.raises(ServerLost, match=f"more than {MAX_BYTES + 3 * 1024:,} bytes"):
            server.begin(BODY).result()
        with pytest.raises(ServerLost, match=f"more than {MAX_BYTES:,} bytes"):
            server.models()


def test_a_packed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * 10**7 + completion().encode())
    with server_that(whole(bomb, b"Content-Encoding: gzip\r\n")) as server, pytest.raises(UserError, match="recent"):
        server.begin(BODY).result()


STRANGE = {
    "no JSON": "no JSON",
    "JSON too deep to be read": "[" * 100_000,
    "a list": "[1]",
    "no list of completions": '{"choices": {}}',
    "more tokens than were asked for": completion(tokens=[1, 2, 3, 4], logprobs=[-1, -1, -1, -1]),
    "no token": completion(tokens=[], logprobs=[]),
    "a token behind the vocabulary": completion(tokens=[1, 10]),
    "a token before it": completion(tokens=[1, -1]),
    "a token that is none": completion(tokens=[1, True]),
    "a log-probability too few": completion(logprobs=[-1]),
    "null": completion(logprobs=[-1, None]),
    "not a number": completion(logprobs=[-1, float("nan")]),
    "an impossible token": completion(logprobs=[-1, float("-inf")]),
    "a probability above one": completion(logprobs=[-1, 0.5]),
    "a token less likely than any": completion(logprobs=[-1, -1e300]),
    "another completion": completion().replace('"index": 0', '"index": 1'),
    "an integer beyond all floats": completion(logprobs=[-1, -(10**400)]),
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_an_answer_that_was_not_asked_for_is_refused(text: str) -> None:
    with server_that(whole(text), 30) as server, pytest.raises(UserError, match="is it a recent vLLM server"):
        server.begin(BODY).result()


@pytest.mark.parametrize("ended", ["abort", None, "length", "\u202eevil"])
def test_a_completion_that_was_broken_off_counts_as_lost_and_not_as_an_answer(ended: str | None) -> None:
    with server_that(whole(completion(ended=ended))) as server, pytest.raises(ServerLost, match="of 2 tokens ended by"):
        server.begin(BODY).result()


@pytest.mark.parametrize("charset", ["zlib", "hex", "undefined", "none such"])
def test_a_refusal_is_read_whatever_it_says_of_its_letters(charset: str) -> None:
    answer = f"HTTP/1.1 400 Bad\r\nContent-Type: text/plain; charset={charset}\r\nContent-Length: 2\r\n\r\nno"
    refuse = lambda connection: connection.sendall(answer.encode())  # noqa: E731
    with server_that(refuse) as server, pytest.raises(UserError, match=r"refuses /v1/completions \(400\): no"):
        server.begin(BODY).result()
