"""One program in one child: compile it, run it on its inputs in fresh namespaces, write one record for each.

By the time anything here runs, the cage is closed. Records go to one pipe, each as a header line
``nonce kind detail length`` and then ``length`` bytes of text; the judge takes nothing else for an answer.
"""

from __future__ import annotations

import marshal
import os
import sys

from . import equal, gate, inputs, runtime, syntax
from .encode import NotPlain, TooLarge, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import NoReturn

PROGRAM_NAME = "program"
"""What ``__name__`` is for a program: it was imported, not started, so its main block does not run."""
# To quote the line of a syntax error, the interpreter tries to open the file of this name, and would be killed for it:
# a name that has no bytes is one it cannot even ask for.
_FILE_NAME = "<program\ud800>"
_RECURSION_LIMIT = 1_000  # frames that the program has for itself
_type_name = type.__dict__["__name__"].__get__  # immune to metaclasses
_ModuleType = type(sys)


class Replies:
    """Writes records to the judge. The last words are ready before the program can have used up all memory."""

    def __init__(self, fd: int, nonce: str) -> None:
        self.fd = fd
        self.nonce = nonce
        self.memory_record = self.frame("memory", "MemoryError", "")
        self.end_record = self.frame("end", "", "")

    def frame(self, kind: str, detail: str, text: str) -> bytes:
        body = text.encode("utf-8", "backslashreplace")
        return f"{self.nonce} {kind} {detail or '-'} {len(body)}\n".encode() + body + b"\n"

    def send(self, kind: str, detail: str = "", text: str = "") -> None:
        self.write(self.frame(kind, detail, text))

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.fd, data) :]


class Job:
    """What the judge wrote: the program, its inputs and how to run them (see ``runs.Job``)."""

    __slots__ = ("code", "entry", "gated", "inputs", "loose", "max_chars", "nonce", "screened", "stop_early")

    def __init__(self, body: bytes) -> None:
        """Read the judge's own bytes, which it made with ``marshal`` for this interpreter's twin."""
        (
            self.nonce,
            self.code,
            self.inputs,
            self.stop_early,
            self.entry,
            self.gated,
            self.max_chars,
            self.loose,
            self.screened,
        ) = marshal.loads(body)


def run_job(body: bytes, reply_fd: int) -> NoReturn:
    """Run the job and leave this process without clean-up (nothing a program registered is ever called)."""
    job = Job(body)
    replies = Replies(reply_fd, job.nonce)
    try:
        code = compile_program(job, replies)
        if code is not None:
            run_inputs(job, code, replies)
        replies.write(replies.end_record)
    except MemoryError:
        sys.modules.pop(PROGRAM_NAME, None)  # what it still holds
        replies.write(replies.memory_record)
        replies.write(replies.end_record)
    os._exit(0)


def compile_program(job: Job, replies: Replies) -> CodeType | None:
    """Parse, screen and compile. On a refusal write its record and return None."""
    equal.remember_classes(takes_records=job.gated or job.loose)
    try:
        if job.screened:
            code = syntax.to_code(job.code, _FILE_NAME)
            replies.send("flags")
            return code
        tree = syntax.parse(job.code, _FILE_NAME)
        nodes = syntax.group(tree)
        refusal = gate.screen(nodes) if job.gated else ""
        if refusal:
            replies.send("forbidden", "gate", refusal)
            return None
        code = syntax.to_code(tree, _FILE_NAME)
        replies.send("flags", "unordered" if gate.uses_hash_order(nodes) else "")
        return code
    except syntax.UNPARSABLE as error:
        replies.send("syntax", class_name(error))
        return None


def run_inputs(job: Job, code: CodeType, replies: Replies) -> None:
    """Run the program afresh on each input and write a record for each."""
    for form, text in job.inputs:
        kind, detail, output = _run_one(code, job, form, text)
        replies.send(kind, detail, output)
        if job.stop_early and kind != "ok":
            return


def load_program(code: CodeType, gated: bool) -> dict[str, object]:
    """Execute a program's module code in a new namespace and return that. Raises whatever the program raises."""
    module = _ModuleType(PROGRAM_NAME)
    namespace = module.__dict__
    namespace["__builtins__"] = runtime.program_builtins() if gated else vars(sys.modules["builtins"])
    sys.modules[PROGRAM_NAME] = module
    if gated:
        sys.modules["time"] = runtime.clockless_time
    sys.setrecursionlimit(_RECURSION_LIMIT + _depth())
    exec(code, namespace)
    return namespace


def _run_one(code: CodeType, job: Job, form: str, text: str) -> tuple[str, str, str]:
    """Run the program afresh on one input. Returns (verdict, detail, canonical text)."""
    arguments = inputs.parse(text, literal=form == "literal")
    if arguments is None:
        return "invalid-input", "", ""
    runtime.forget_violations()
    try:
        function = load_program(code, job.gated).get(job.entry)
        if function is None:
            return "error", "NameError", "no entry function"
        value = function(*arguments[0], **arguments[1])  # type: ignore[operator]
    except MemoryError:
        raise
    except BaseException as error:
        return ("forbidden", "gate", runtime.violation()) if runtime.violation() else ("error", class_name(error), "")
    if runtime.violation():
        return "forbidden", "gate", runtime.violation()
    return encode_value(value, job.max_chars, job.loose)


def encode_value(value: object, max_chars: int, loose: bool) -> tuple[str, str, str]:
    """Returns (verdict, detail, canonical text) of a value."""
    try:
        return "ok", "", encode(value, max_chars, loose)
    except TooLarge:
        return "too-large", "output", ""
    except NotPlain:
        return "invalid-output", class_name(value), ""


def _depth() -> int:
    frame = sys._getframe()
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back  # type: ignore[assignment]
    return depth


def class_name(value: object) -> str:
    """The name of the value's class, as a short plain word, without calling anything the program defined."""
    name = _type_name(type(value))
    kept = "".join([char for char in name[:60] if char.isascii() and (char.isalnum() or char == "_")])
    return kept or "object"
