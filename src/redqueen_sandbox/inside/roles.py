"""The two children of a unit test: one runs the program, the other the tests, and neither has the other's code.

The tests' ``candidate`` is a proxy: each call goes as literals to the judge, which forwards it to the program's child.
So the program never sees an expected value, and assertions compare only plain values, in a process without the program.
Functions and iterators that the program returns have proxies too. After a call that returned None, the tests' own
lists, dicts and sets among its arguments get the contents that the call left in them.
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
"""Exceptions of tests that no program can pass."""
_ITER, _NEXT = 1, 2  # indices of objects in the program's child: ``iter``, and a function that takes one item
_MAX_LINES = 100_000  # lines that tests may run with a dummy, which never returns a value they may wait for (ours)


def run_role(socket: int) -> NoReturn:
    """Run the role in the job's inputs: ("tester", helpers) runs the tests, ("player",) the program."""
    size = int.from_bytes(_read_exactly(socket, wire.LENGTH_BYTES), "little")
    job = child.Job(_read_exactly(socket, size))
    work = _run_tests_role if job.inputs[0] == "tester" else _serve_calls
    child.run_and_exit(work, job, child.Replies(socket, job.nonce))


def _serve_calls(job: child.Job, replies: child.Replies) -> None:
    """Load the program once, then run the calls that the judge sends, until ``NO_MORE``."""
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
    objects: list[Any] = [function, iter, lambda iterator: [item for _, item in zip("1", iterator, strict=False)]]
    inputs.NAMES["Held"] = objects.__getitem__

    def number_of(value: object) -> int:
        objects.append(value)
        return len(objects) - 1

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
            record = child.encode_value(answer, job.max_chars, number_of)
            if record[0] != "ok":
                record = ("ok", "", "(None,)") if value is None else (record[0], child.class_name(value), "")
        except MemoryError:
            raise
        except BaseException as error:
            record = ("error", child.exception_name(error), "")
        replies.send(*record)


class _RemoteValue:
    """Proxy of a value that is not plain and stays in the program's child, which computes its calls and its items.

    It equals only itself and forwards no other attribute, so that no test asks the program whether it is right.
    """

    __slots__ = ("call", "number")

    def __init__(self, call: Callable[..., Any], number: Any) -> None:
        self.call, self.number = call, int(number)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.call(self.number, *args, **kwargs)

    def __iter__(self) -> object:
        return self.call(_ITER, self)

    def __next__(self) -> object:
        return next(iter(self.call(_NEXT, self)))  # an empty list at the end


def _run_tests_role(job: child.Job, replies: child.Replies) -> None:
    """Run the tests against the proxy and report whether they passed."""

    def call_remotely(number: int, /, *args: object, **kwargs: object) -> object:
        number_of = vars(_RemoteValue)["number"].__get__  # raises TypeError for other types
        try:
            parts = [f"Held({number})", *[encode(value, job.max_chars, number_of) for value in args]]
            parts += [f"{name}={encode(value, job.max_chars, number_of)}" for name, value in kwargs.items()]
        except (NotPlain, TooLarge, TypeError):
            replies.send("unpassable")
            raise TypeError("a test called the function with a value that is not plain") from None
        replies.send("call", "", ", ".join(parts))
        answer = _read_message(replies.fd) or "?"
        if answer[0] == "!":
            raise _exception(answer[1:])
        arguments: Any = inputs.parse(answer[1:], literal=True)
        if arguments is None or answer[0] == "?":
            raise RuntimeError("no answer")
        value, *changed = arguments[0][0]
        for old, new in zip((*args, *kwargs.values()), changed if value is None else (), strict=False):
            if type(old) in (list, dict, set) and old != new:
                old.clear()  # type: ignore[attr-defined]
                (old.extend if isinstance(old, list) else old.update)(new)  # type: ignore[attr-defined]
        return value

    code = child.compile_program(job, replies)
    if code is None:
        return
    for dummy in (lambda *_, **__: None, lambda *_, **__: object):  # tests that pass with both are useless
        sys.settrace(_stopping_trace())
        error = _run_tests(code, job, dummy)
        sys.settrace(None)
        if not (error is None or isinstance(error, _BROKEN)):
            break
    else:
        replies.send("untested" if error is None else "broken", child.class_name(error))
        return
    inputs.NAMES["Held"] = lambda number: _RemoteValue(call_remotely, number)
    error = _run_tests(code, job, _RemoteValue(call_remotely, 0))
    replies.send("passed" if error is None else "failed", child.class_name(error))


def _stopping_trace() -> Any:
    left = iter(range(_MAX_LINES))

    def trace(*_: object) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return trace

    return trace


def _run_tests(code: CodeType, job: child.Job, candidate: object) -> BaseException | None:
    """Run the tests in a new namespace, as a script. Returns the exception that they raise, or None."""
    try:
        helpers = syntax.to_code(syntax.parse(job.inputs[1], "<helpers>"), "<helpers>")
        namespace = child.load_program(helpers, gated=False)
        namespace |= {"__name__": "__main__", job.entry: candidate, "candidate": candidate}
        exec(code, namespace)
    except MemoryError:
        raise
    except BaseException as error:
        has_passed = isinstance(error, SystemExit) and not error.code  # success, as for a script
        return None if has_passed else error
    return None


def _exception(name: str) -> Exception:
    """Return an exception of the builtin class of that name, to raise in the tests what the program raised.

    StopIteration becomes RuntimeError, as in generators: otherwise it could end a loop of the tests without an error.
    """
    if name in ("StopIteration", "StopAsyncIteration"):
        return RuntimeError(name)
    kind = vars(sys.modules["builtins"]).get(name)
    try:
        return kind() if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError(name)
    except TypeError:  # its class needs arguments
        return RuntimeError(name)


def _read_message(socket: int) -> str | None:
    """Read one message: its length, then its text. Returns None after the last one."""
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
