"""The two children of a unit test: the player holds the program, the tester holds the tests, and neither the other's.

The tester's ``candidate`` is a stand-in: each call goes as literals to the judge, which has the player make it. So
the program never sees an expected value, and an assertion only ever compares plain values in a process that the
program is not in.
"""

from __future__ import annotations

import os
import sys

from . import child, inputs, syntax, wire
from .encode import NotPlain, TooLarge, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import NoReturn

NO_MORE = b"\xff\xff\xff\xff"
"""Instead of a length: no message follows."""
_BROKEN = (ImportError, NameError, SyntaxError)
"""What tests raise that no program passes."""
_OBJECT = object()


def play_role(socket: int) -> NoReturn:
    """Be the child that the job's inputs ask for: ("tester", helpers of the tests) or ("player",)."""
    size = int.from_bytes(_read_exactly(socket, wire.LENGTH_BYTES), "little")
    job = child.Job(_read_exactly(socket, size))
    work = _be_tester if job.inputs[0] == "tester" else _be_player
    child.leave_after(work, job, child.Replies(socket, job.nonce))


def _be_player(job: child.Job, replies: child.Replies) -> None:
    """Load the program once, then make the calls one is told, until told nothing more."""
    code = child.compile_program(job, replies)
    if code is None:
        return
    try:
        function = child.load_program(code, job.gated).get(job.entry)
    except MemoryError:
        raise
    except BaseException as error:
        replies.send("error", child.class_name(error))
        return
    if function is None:
        replies.send("error", "NameError", "no entry function")
        return
    replies.send("ready")
    while (text := _told(replies.fd)) is not None:
        arguments = inputs.parse(text, literal=True)
        if arguments is None:
            replies.send("invalid-input")
            continue
        try:
            value = function(*arguments[0], **arguments[1])  # type: ignore[operator]
            said = child.encode_value(value, job.max_chars, job.loose)
        except MemoryError:
            raise
        except BaseException as error:
            said = ("error", child.exception_name(error), "")
        replies.send(*said)


def _be_tester(job: child.Job, replies: child.Replies) -> None:
    """Run the tests against the stand-in and say whether they passed."""

    def candidate(*args: object, **kwargs: object) -> object:
        try:
            parts = [encode(value, job.max_chars, loose=True) for value in args]
            parts += [f"{name}={encode(value, job.max_chars, loose=True)}" for name, value in kwargs.items()]
        except (NotPlain, TooLarge):
            raise TypeError("a test called with something that is no plain value") from None
        replies.send("call", "", ", ".join(parts))
        answer = _told(replies.fd)
        if answer is None:
            raise RuntimeError("no answer")
        if answer[0] == "!":
            raise _exception(answer[1:])
        told = inputs.parse(answer[1:], literal=True)
        if told is None:
            raise RuntimeError("no answer")
        return told[0][0]

    code = child.compile_program(job, replies)
    if code is None:
        return
    for always in (lambda *_, **__: None, lambda *_, **__: _OBJECT):  # tests that pass with both test nothing
        error = _run_tests(code, job, always)
        if not (error is None or isinstance(error, _BROKEN)):
            break
    else:
        replies.send("untested" if error is None else "broken", child.class_name(error))
        return
    error = _run_tests(code, job, candidate)
    replies.send("passed" if error is None else "failed", child.class_name(error))


def _run_tests(code: CodeType, job: child.Job, candidate: Callable[..., object]) -> BaseException | None:
    """Run the tests in a new namespace, as a script, and return what they raise."""
    try:
        helpers = syntax.to_code(syntax.parse(job.inputs[1], "<helpers>"), "<helpers>")
        namespace = child.load_program(helpers, gated=False)
        namespace |= {"__name__": "__main__", job.entry: candidate, "candidate": candidate}
        exec(code, namespace)
    except MemoryError:
        raise
    except BaseException as error:
        has_passed = isinstance(error, SystemExit) and not error.code  # as of a script
        return None if has_passed else error
    return None


def _exception(name: str) -> Exception:
    """An exception of the builtin class of that name, as the program raised it in the other child.

    One that would end a loop of the tests as if all were done comes as a RuntimeError, as generators turn it into one.
    """
    if name in ("StopIteration", "StopAsyncIteration"):
        return RuntimeError(name)
    kind = vars(sys.modules["builtins"]).get(name)
    try:
        return kind() if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError(name)
    except TypeError:  # one that cannot be made without arguments
        return RuntimeError(name)


def _told(socket: int) -> str | None:
    """Read one message: its length, then its text. None: there are no more."""
    head = _read_exactly(socket, wire.LENGTH_BYTES)
    if len(head) < wire.LENGTH_BYTES or head == NO_MORE:
        return None
    return _read_exactly(socket, int.from_bytes(head, "little")).decode("utf-8")


def _read_exactly(socket: int, num_bytes: int) -> bytes:
    data = b""
    while len(data) < num_bytes:
        chunk = os.read(socket, num_bytes - len(data))
        if not chunk:
            break
        data += chunk
    return data
