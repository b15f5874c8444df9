"""The two children of a unit test: the player holds the program, the tester holds the tests, and neither the other's.

The tester's ``candidate`` is a stand-in: each call goes as literals to the judge, which has the player make it. So
the program never sees an expected value, and an assertion only ever compares plain values in a process that the
program is not in. Functions and iterators that the program returns have stand-ins too, and a test's own list, dict or
set is changed as a call that returned None left it.
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
    from typing import Any, NoReturn

NO_MORE = b"\xff\xff\xff\xff"
"""Instead of a length: no message follows."""
_BROKEN = (ImportError, NameError, SyntaxError)
"""What tests raise that no program passes."""
_ITER, _NEXT = 1, 2  # the numbers of functions in the player: ``iter``, and one that takes one item of an iterator
_MAX_LINES = 100_000  # that tests run with a stand-in: those that go on wait for a value it does not give (ours)


def run_role(socket: int) -> NoReturn:
    """Be the child that the job's inputs ask for: ("tester", helpers of the tests) or ("player",)."""
    size = int.from_bytes(_read_exactly(socket, wire.LENGTH_BYTES), "little")
    job = child.Job(_read_exactly(socket, size))
    work = _run_tests_role if job.inputs[0] == "tester" else _serve_calls
    child.run_and_exit(work, job, child.Replies(socket, job.nonce))


def _serve_calls(job: child.Job, replies: child.Replies) -> None:
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
    held: list[Any] = [function, iter, lambda iterator: [item for _, item in zip("1", iterator, strict=False)]]
    inputs.NAMES["Held"] = held.__getitem__

    def number_of(value: object) -> int:
        held.append(value)
        return len(held) - 1

    replies.send("ready")
    while (text := _read_message(replies.fd)) is not None:
        arguments = inputs.parse(text, literal=True)
        if arguments is None:
            replies.send("invalid-input")
            continue
        try:
            (call, *given), named = arguments
            value = call(*given, **named)  # type: ignore[operator]
            answer = (value, *given, *named.values()) if value is None else (value,)
            said = child.encode_value(answer, job.max_chars, number_of)
            if said[0] != "ok":
                said = ("ok", "", "(None,)") if value is None else (said[0], child.class_name(value), "")
        except MemoryError:
            raise
        except BaseException as error:
            said = ("error", child.exception_name(error), "")
        replies.send(*said)


class _RemoteValue:
    """A value that is not plain and stays in the program's child: results of calling it and its items come from there.

    It equals nothing else. No other attribute is passed on, so that no test asks the program whether it is right.
    """

    __slots__ = ("ask", "number")

    def __init__(self, ask: Callable[..., Any], number: Any) -> None:
        self.ask, self.number = ask, int(number)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.ask(self.number, *args, **kwargs)

    def __iter__(self) -> object:
        return self.ask(_ITER, self)

    def __next__(self) -> object:
        return next(iter(self.ask(_NEXT, self)))  # which is empty at the end


def _run_tests_role(job: child.Job, replies: child.Replies) -> None:
    """Run the tests against the stand-in and say whether they passed."""

    def ask(number: int, /, *args: object, **kwargs: object) -> object:
        number_of = vars(_RemoteValue)["number"].__get__  # raises TypeError for what is not held
        try:
            parts = [f"Held({number})", *[encode(value, job.max_chars, number_of) for value in args]]
            parts += [f"{name}={encode(value, job.max_chars, number_of)}" for name, value in kwargs.items()]
        except (NotPlain, TooLarge, TypeError):
            replies.send("unpassable")
            raise TypeError("a test called with something that is no plain value") from None
        replies.send("call", "", ", ".join(parts))
        answer = _read_message(replies.fd) or "?"
        if answer[0] == "!":
            raise _exception(answer[1:])
        told: Any = inputs.parse(answer[1:], literal=True)
        if told is None or answer[0] == "?":
            raise RuntimeError("no answer")
        value, *now = told[0][0]
        for old, new in zip((*args, *kwargs.values()), now if value is None else (), strict=False):
            if type(old) in (list, dict, set) and old != new:
                old.clear()  # type: ignore[attr-defined]
                (old.extend if isinstance(old, list) else old.update)(new)  # type: ignore[attr-defined]
        return value

    code = child.compile_program(job, replies)
    if code is None:
        return
    for always in (lambda *_, **__: None, lambda *_, **__: object):  # tests that pass with both test nothing
        sys.settrace(_stopping_trace())
        error = _run_tests(code, job, always)
        sys.settrace(None)
        if not (error is None or isinstance(error, _BROKEN)):
            break
    else:
        replies.send("untested" if error is None else "broken", child.class_name(error))
        return
    inputs.NAMES["Held"] = lambda number: _RemoteValue(ask, number)
    error = _run_tests(code, job, _RemoteValue(ask, 0))
    replies.send("passed" if error is None else "failed", child.class_name(error))


def _stopping_trace() -> Any:
    left = iter(range(_MAX_LINES))

    def trace(*_: object) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return trace

    return trace


def _run_tests(code: CodeType, job: child.Job, candidate: object) -> BaseException | None:
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


def _read_message(socket: int) -> str | None:
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
