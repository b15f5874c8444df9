"""One program in one child: compile it, run it on its inputs in fresh namespaces, write one record for each.

By the time anything here runs, the cage is closed. Records go to one pipe, each as a header line
``nonce kind detail length`` and then ``length`` bytes of text; the judge takes nothing else for an answer.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
from types import CodeType, ModuleType
from typing import NoReturn, TypedDict

from . import gate, inputs
from .encode import NotPlain, TooLarge, encode

PROGRAM_NAME = "program"
"""What ``__name__`` is for a program: it was imported, not started, so its main block does not run."""
# To quote the line of a syntax error, the interpreter tries to open the file of this name, and would be killed for it:
# a name that has no bytes is one it cannot even ask for.
_FILE_NAME = "<program\ud800>"
_RECURSION_LIMIT = 1_000  # frames that the program has for itself
_type_name = type.__dict__["__name__"].__get__  # immune to metaclasses


class Replies:
    """Writes records to the judge. Holds back one megabyte to give up when memory has run out."""

    def __init__(self, fd: int, nonce: str) -> None:
        self.fd = fd
        self.nonce = nonce
        self.reserve = bytearray(1 << 20)
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


class _Job(TypedDict):
    nonce: str
    code: str
    inputs: list[tuple[str, str]]
    mode: str
    entry: str
    gate: bool
    max_chars: int


def run_job(job_bytes: bytes, reply_fd: int) -> NoReturn:
    """Run the job and leave this process without clean-up (nothing a program registered is ever called)."""
    job: _Job = json.loads(job_bytes)
    replies = Replies(reply_fd, job["nonce"])
    try:
        code = _compile(job["code"], job["gate"], replies)
        if code is not None:
            _run_inputs(job, code, replies)
        replies.write(replies.end_record)
    except MemoryError:
        replies.reserve = bytearray()
        replies.write(replies.memory_record)
        replies.write(replies.end_record)
    os._exit(0)


def _compile(source: str, gated: bool, replies: Replies) -> CodeType | None:
    """Parse, screen and compile. On a refusal write its record and return None."""
    try:
        tree = ast.parse(source, _FILE_NAME)
        if gated:
            refusal = gate.screen(tree)
            if refusal:
                replies.send("forbidden", "gate", refusal)
                return None
        replies.send("flags", "unordered" if gate.uses_hash_order(tree) else "")
        return compile(tree, _FILE_NAME, "exec", dont_inherit=True)  # type: ignore[no-any-return]
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        # The parser says MemoryError for nesting it cannot hold, ValueError for NUL and lone surrogates.
        replies.send("syntax", class_name(error))
        return None


def _run_inputs(job: _Job, code: CodeType, replies: Replies) -> None:
    stop_early = job["mode"] == "all"
    for entry in job["inputs"]:
        kind, detail, text = _run_one(code, job, entry)
        replies.send(kind, detail, text)
        if stop_early and kind != "ok":
            return


def _run_one(code: CodeType, job: _Job, entry: tuple[str, str]) -> tuple[str, str, str]:
    """Run the program afresh on one input. Returns (verdict, detail, canonical text)."""
    arguments = inputs.parse(entry[1], literal=entry[0] == "literal")
    if arguments is None:
        return "invalid-input", "", ""
    module = ModuleType(PROGRAM_NAME)
    namespace = module.__dict__
    namespace["__builtins__"] = gate.program_builtins() if job["gate"] else dict(vars(builtins))
    sys.modules[PROGRAM_NAME] = module
    gate.forget_violations()
    sys.setrecursionlimit(_RECURSION_LIMIT + _depth())
    try:
        exec(code, namespace)
        function = namespace.get(job["entry"])
        if function is None:
            return "error", "NameError", "no entry function"
        value = function(*arguments[0], **arguments[1])
    except MemoryError:
        raise
    except BaseException as error:
        return ("forbidden", "gate", gate.violation()) if gate.violation() else ("error", class_name(error), "")
    if gate.violation():
        return "forbidden", "gate", gate.violation()
    try:
        return "ok", "", encode(value, job["max_chars"])
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
