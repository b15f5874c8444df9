"""One program in one child: compile it, run it on each input in a fresh namespace, write one record for each.

The cage is closed before this code runs. The job is in the only open file. Each input is read from it just before its
run, so that a program cannot find other inputs in the frames below its own. Records are appended to that file, each as
a header line ``nonce kind detail length`` and then ``length`` bytes of text; the judge accepts no other answer.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys

from . import gate, guards, inputs, syntax, wire
from .encode import NotPlain, TooLarge, encode
from .guards import PROGRAM_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import NoReturn

# To quote the line of a syntax error, the interpreter tries to open the file of this name, and would be killed for it.
# A name that cannot be encoded prevents the attempt.
_FILE_NAME = "<program\ud800>"
_RECURSION_LIMIT = 1_000  # frames for the program, without those of the harness
_EXTRA_FRAMES = 37  # in an odd run: an output that depends on the number of frames differs there
_type_name = type.__dict__["__name__"].__get__  # immune to metaclasses
_mro_of = type.__dict__["__mro__"].__get__
_BUILTIN_EXCEPTIONS = frozenset(
    id(kind)
    for kind in vars(sys.modules["builtins"]).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
)
_ModuleType = type(sys)
_frame_at, _frame_before = sys._getframe, vars(type(sys._getframe()))["f_back"].__get__  # closed to programs


class Replies:
    """Writes records to the judge. The final records are built in advance: later there may be no memory for them."""

    def __init__(self, fd: int, nonce: str) -> None:
        self.fd = fd
        self.nonce = nonce
        begin = nonce.encode()
        self.memory_record = begin + b" memory MemoryError 0\n\n"
        self.end_record = begin + b" end - 0\n\n"

    def frame(self, kind: str, detail: str, text: str) -> bytes:
        body = text.encode("utf-8", "backslashreplace")
        return f"{self.nonce} {kind} {detail or '-'} {len(body)}\n".encode() + body + b"\n"

    def send(self, kind: str, detail: str = "", text: str = "") -> None:
        self.write(self.frame(kind, detail, text))

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.fd, data) :]


class Job:
    """The job that the judge wrote: the program, its inputs and how to run them (see ``runs.Job``)."""

    __slots__ = (
        "code", "entry", "file", "gated", "inputs", "max_chars", "needs_tree", "next_at", "nonce", "odd", "stop_early",
    )  # fmt: skip

    def __init__(self, head: bytes, file: int = -1) -> None:
        """Read the head, which the judge wrote with ``marshal`` under the same Python version."""
        self.file = file
        self.next_at = wire.LENGTH_BYTES + len(head)
        self.nonce, self.code, self.inputs, *rest = marshal.loads(head)
        self.stop_early, self.entry, self.gated, self.max_chars, self.odd, self.needs_tree = rest

    def next_input(self, num_bytes: int) -> str:
        """Read the next input's text."""
        start = self.next_at
        self.next_at += num_bytes
        return os.pread(self.file, num_bytes, start).decode("utf-8", "surrogatepass")


def read_head(file: int) -> bytes:
    """Read the part of a job before the inputs: its length, then that many bytes."""
    return os.pread(file, int.from_bytes(os.pread(file, wire.LENGTH_BYTES, 0), "little"), wire.LENGTH_BYTES)


def run_job(file: int) -> NoReturn:
    """Run the job and exit without clean-up, so that no exit handler of a program is called."""
    job = Job(read_head(file), file)
    run_and_exit(compile_and_run, job, Replies(file, job.nonce))


def run_and_exit(work: Callable[[Job, Replies], None], job: Job, replies: Replies) -> NoReturn:
    """Do the work, write the final record and exit."""
    try:
        work(job, replies)
    except MemoryError:
        sys.modules.pop(PROGRAM_NAME, None)  # free the memory that the program still holds
        replies.write(replies.memory_record)
    replies.write(replies.end_record)
    os._exit(0)


def compile_and_run(job: Job, replies: Replies) -> None:
    """Do the work of ``run_job``: all records but the final one."""
    code = compile_program(job, replies)
    if code is not None:
        run_inputs(job, code, replies)


def compile_program(job: Job, replies: Replies) -> CodeType | None:
    """Parse, screen and compile the program. If it is refused, write the record and return None."""
    try:
        if not job.needs_tree:
            return syntax.to_code(job.code, _FILE_NAME)
        tree = syntax.parse(job.code, _FILE_NAME)
        if job.gated:
            refusal = gate.screen(syntax.group(tree))
            if refusal:
                replies.send("forbidden", "gate", refusal)
                return None
        return syntax.to_code(tree, _FILE_NAME)
    except syntax.UNPARSABLE as error:
        replies.send("syntax", class_name(error))
        return None


def run_inputs(job: Job, code: CodeType, replies: Replies) -> None:
    """Run the program afresh on each input and write a record for each."""
    num_left = len(job.inputs)
    for form, num_bytes in job.inputs:
        record = _run_one(code, job, form, num_bytes)
        replies.send(*record)
        if job.stop_early and record[0] != "ok":
            return
        num_left -= 1
        if num_left:
            # Remove all objects of this run, so that the next one finds none, in the frames below it or elsewhere.
            del record
            sys.modules.pop(PROGRAM_NAME, None)
            gc.collect()


def load_program(code: CodeType, gated: bool, more_frames: int = 0) -> dict[str, object]:
    """Execute a program's module code in a new namespace and return that. Raises whatever the program raises."""
    module = _ModuleType(PROGRAM_NAME)
    namespace = module.__dict__
    namespace["__builtins__"] = guards.PROGRAM_BUILTINS if gated else vars(sys.modules["builtins"])
    sys.modules[PROGRAM_NAME] = module
    guards.harness_frames = more_frames + _depth()
    sys.setrecursionlimit(_RECURSION_LIMIT + guards.harness_frames)
    exec(code, namespace)
    return namespace


def _run_one(code: CodeType, job: Job, form: str, num_bytes: int) -> tuple[str, str, str]:
    """Run the program afresh on one input. Returns (verdict, detail, canonical text)."""
    arguments = inputs.parse(job.next_input(num_bytes), literal=form == "literal", backwards=job.odd)
    if arguments is None:
        return "invalid-input", "", ""
    guards.forget_violations()
    try:
        function = load_program(code, job.gated, _EXTRA_FRAMES if job.odd else 0).get(job.entry)
        if function is None:
            return "error", "NameError", "no entry function"
        value = function(*arguments[0], **arguments[1])  # type: ignore[operator]
        _restore_recursion_limit()
    except MemoryError:
        raise
    except BaseException as error:
        _restore_recursion_limit()
        return ("forbidden", "gate", guards.violation()) if guards.violation() else ("error", class_name(error), "")
    if guards.violation():
        return "forbidden", "gate", guards.violation()
    return encode_value(value, job.max_chars)


def _restore_recursion_limit() -> None:
    """Undo a change of the recursion limit by the program: the harness needs its frames."""
    if sys.getrecursionlimit() != _RECURSION_LIMIT + guards.harness_frames:
        sys.setrecursionlimit(_RECURSION_LIMIT + guards.harness_frames)


def encode_value(
    value: object, max_chars: int, number_of: Callable[[object], int] | None = None
) -> tuple[str, str, str]:
    """Return (verdict, detail, canonical text) of a value."""
    try:
        return "ok", "", encode(value, max_chars, number_of)
    except TooLarge:
        return "too-large", "output", ""
    except NotPlain:
        return "invalid-output", class_name(value), ""


def _depth() -> int:
    """Return the number of frames on the stack."""
    frame = _frame_at(0)
    depth = 0
    while frame is not None:
        depth += 1
        frame = _frame_before(frame)
    return depth


def class_name(value: object) -> str:
    """Return the name of the value's class, as a short plain word, without calling code of the program."""
    name = _type_name(type(value))
    kept = "".join([char for char in name[:60] if char.isascii() and (char.isalnum() or char == "_")])
    return kept or "object"


def exception_name(error: BaseException) -> str:
    """Return the name of the error's class if that is builtin, else of its nearest builtin base class."""
    return next(_type_name(kind) for kind in _mro_of(type(error)) if id(kind) in _BUILTIN_EXCEPTIONS)
