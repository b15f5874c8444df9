"""One run of one child: the judge's job, and how the judge reads the reply.

Every reply is untrusted. It counts as an answer only if the child exited by itself and every byte is correct: records
under the job's own nonce, a final record, and outputs that the judge reads again as canonical literals.
"""

from __future__ import annotations

import functools
import marshal
import os
import signal
from dataclasses import dataclass

from redqueen_sandbox.inside import wire
from redqueen_sandbox.literals import is_canonical
from redqueen_sandbox.words import GATED_KINDS, needs_tree

_WARM_BYTES = 12 << 20  # resident memory of a child before it runs anything
_ITEM_KINDS = frozenset({"ok", "error", "forbidden", "too-large", "invalid-input", "invalid-output"})
_MAX_DETAIL_CHARS = 200
_MAX_HEADER_BYTES = 512
MAX_REPLY_BYTES = 8 << 20
_FILE_STEP_BYTES = 1 << 18  # file size limits are rounded up to it: a zygote prepares a cage for each limit


@dataclass(frozen=True)
class Job:
    """One program on its inputs in one child.

    ``inputs`` are pairs (``literal`` or ``expression``, text). Mode ``all`` stops at the first input that is not ok,
    ``each`` continues. ``kind``: the kind of zygote that has its modules; the kinds in ``GATED_KINDS`` use the gate.
    ``seed`` is the number of the required hash seed, -1 for any. ``again``: the gate has already passed the program.
    ``odd``: it runs with more frames, and sets in its inputs are built backwards.
    """

    code: str
    inputs: tuple[tuple[str, str], ...]
    mode: str
    cpu_ms: int
    wall_ms: int
    memory_bytes: int
    max_output_chars: int
    entry: str = "f"
    kind: str = "open"
    again: bool = False
    odd: bool = False
    seed: int = -1

    def request(self, job_id: int, nonce: str, file: int) -> tuple[wire.RequestHeader, int]:
        """Write the job into ``file``. Returns the header of its request, and the length of the job in bytes."""
        texts = [text.encode("utf-8", "surrogatepass") for _, text in self.inputs]
        places = tuple([(form, len(text)) for (form, _), text in zip(self.inputs, texts, strict=True)])
        content = b"".join([self.head(nonce, places), *texts])
        written = os.write(file, content)  # the child writes its reply behind it
        if written != len(content):
            raise OSError("no room for a job")
        reply_bytes = min(MAX_REPLY_BYTES, 65_536 + 4 * self.max_output_chars * max(1, len(self.inputs)))
        limit = -(-(written + reply_bytes) // _FILE_STEP_BYTES) * _FILE_STEP_BYTES
        return wire.RequestHeader(job_id, self.cpu_ms, self.wall_ms, self.memory_bytes, limit), written

    def head(self, nonce: str, inputs: tuple[tuple[str, int], ...] | tuple[str, ...]) -> bytes:
        """Return the first part of the job: its length, then everything except the texts of the inputs."""
        gated = self.kind in GATED_KINDS
        fields = (nonce, self.code, inputs, self.mode == "all", self.entry, gated, self.max_output_chars)
        head = marshal.dumps((*fields, self.odd, gated and needs_tree(self.code, self.again)))
        return len(head).to_bytes(wire.LENGTH_BYTES, "little") + head


@dataclass(frozen=True)
class Item:
    """The result of one input: a verdict, its detail and, when ok, the canonical output."""

    verdict: str
    detail: str
    text: str


@dataclass(frozen=True)
class Run:
    """How a job ended. ``ended`` is ok if the child sent its final record, else the verdict of its death or refusal.

    ``items`` are the results of the inputs that finished, in order; a child that dies leaves fewer items than inputs.
    """

    ended: str
    detail: str = ""
    items: tuple[Item, ...] = ()
    cpu_ms: float = 0.0
    seed: int = -1

    @property
    def verdict(self) -> str:
        """The first verdict of an item that is not ok, else ``ended``."""
        return next((item.verdict for item in self.items if item.verdict != "ok"), self.ended)

    @property
    def reason(self) -> str:
        """The detail that belongs to ``verdict``."""
        return next((item.detail for item in self.items if item.verdict != "ok"), self.detail)


def read_run(job: Job, header: wire.ReplyHeader, payload: bytes, nonce: str, seed: int) -> Run:
    """Turn a zygote's reply into a ``Run``."""
    cpu_ms = header.cpu_us / 1000
    verdict, detail = death(job, header)
    if verdict == "ok" and not payload:
        verdict, detail = "no-result", "the child ended without a reply"
    records = _read_records(payload, nonce)
    if verdict != "ok":
        items = _items(job, records[0]) if records else None
        return Run(verdict, detail, items or (), cpu_ms=cpu_ms, seed=seed)
    if records is None or records[1] is None:
        return Run("bad-frame", "not a valid reply", cpu_ms=cpu_ms, seed=seed)
    return _complete(job, records[0], cpu_ms, seed)


def death(job: Job, header: wire.ReplyHeader) -> tuple[str, str]:
    """Return verdict and detail that follow from the child's exit alone, ("ok", "") for exit status 0."""
    status = header.wait_status
    if header.stopped == wire.NOT_STARTED:
        return "infra", "no child could be started"
    if header.stopped == wire.HIT_WALL:
        return "timeout", "wall"
    if header.stopped == wire.ASLEEP:
        return "timeout", "asleep"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGSYS:
            return "forbidden", "system call"
        if number == signal.SIGUSR1:  # sent by ``fork_child``: a program cannot send signals
            return "infra", "the cage did not close"
        if number == signal.SIGXFSZ:
            return "too-large", "reply"
        if number in (signal.SIGPROF, signal.SIGXCPU):
            return _timeout_or_memory(job, header)
        if number == signal.SIGKILL:
            return ("timeout", "cpu") if header.cpu_us >= job.cpu_ms * 1000 else ("memory", "killed")
        return "crash", signal.Signals(number).name if number in set(signal.Signals) else str(number)
    code = os.WEXITSTATUS(status)
    return ("ok", "") if code == 0 else ("no-result", f"exit status {code}")


def _timeout_or_memory(job: Job, header: wire.ReplyHeader) -> tuple[str, str]:
    """Return ``memory`` for a child that the CPU limit stopped while it was filling its memory, else ``timeout``.

    Detail included, this equals the result of a run that exhausts its memory first: which limit such a program reaches
    first depends on the machine, and a journal must not depend on it.
    """
    filled = header.peak_kb * 1024 >= job.memory_bytes // 4 + _WARM_BYTES
    return ("memory", "MemoryError") if filled else ("timeout", "cpu")


_Record = tuple[str, str, str]


def split_record(data: bytes | bytearray, nonce: str, start: int = 0) -> tuple[str, str, str, int] | str:
    """Read the record that begins at ``start``. Returns (kind, detail, text, start of the next record).

    Returns ``more`` if the record is incomplete, ``forged`` if it is not a valid record.
    """
    end = data.find(b"\n", start, start + _MAX_HEADER_BYTES)
    if end < 0:
        return "more" if len(data) - start < _MAX_HEADER_BYTES else "forged"
    words = bytes(data[start:end]).split(b" ")
    if len(words) != 4 or words[0] != nonce.encode() or not words[3].isdigit() or len(words[3]) > 8:
        return "forged"
    size = int(words[3])
    if len(data) < end + size + 2:
        return "more"
    if data[end + 1 + size] != ord("\n"):
        return "forged"
    try:
        kind, detail = words[1].decode("ascii"), words[2].decode("ascii")
        text = bytes(data[end + 1 : end + 1 + size]).decode("utf-8")
    except UnicodeDecodeError:
        return "forged"
    return kind, "" if detail == "-" else detail, text, end + 2 + size


def _read_records(payload: bytes, nonce: str) -> tuple[list[_Record], str | None] | None:
    """Split a payload into (kind, detail, text) records and the detail of the final record (None: missing).

    Returns None if a record is not valid. A payload that is cut off in the middle of a record (its child was killed)
    gives the records before the cut.
    """
    records: list[_Record] = []
    position = 0
    while position < len(payload):
        found = split_record(payload, nonce, position)
        if found == "forged":
            return None
        if isinstance(found, str):
            return records, None
        kind, detail, text, position = found
        if kind == "end":
            return (records, detail) if position == len(payload) else None
        records.append((kind, detail, text))
    return records, None


@functools.lru_cache(maxsize=256)
def _is_output(text: str, max_chars: int) -> bool:
    """Return whether the text is a canonical literal. Cached: runs under other seeds usually return the same text."""
    return is_canonical(text, wide=True, max_chars=max_chars)


def _items(job: Job, records: list[_Record]) -> tuple[Item, ...] | None:
    """Return the checked records of the inputs, or None if one of them is not valid."""
    items: list[Item] = []
    for kind, detail, text in records:
        if kind not in _ITEM_KINDS:
            return None
        if kind == "ok" and not _is_output(text, job.max_output_chars):
            items.append(Item("invalid-output", "not canonical", ""))
        else:
            items.append(Item(kind, _clean(text if detail == "gate" else detail), text if kind == "ok" else text[:40]))
    return tuple(items) if len(items) <= len(job.inputs) else None


def _complete(job: Job, records: list[_Record], cpu_ms: float, seed: int) -> Run:
    """Return the run of a child that exited by itself."""
    if len(records) >= 1 and records[-1][0] == "memory":
        items = _items(job, records[:-1])
        return Run("memory", records[-1][1], items or (), cpu_ms=cpu_ms, seed=seed)
    if len(records) == 1 and records[0][0] == "syntax":
        return Run("syntax", _clean(records[0][1]), cpu_ms=cpu_ms, seed=seed)
    if len(records) == 1 and records[0][0] == "forbidden":
        return Run("forbidden", _clean(records[0][2]), cpu_ms=cpu_ms, seed=seed)
    items = _items(job, records)
    finished = items is not None and (
        len(items) == len(job.inputs) or (job.mode == "all" and bool(items) and items[-1].verdict != "ok")
    )
    if items is None or not finished:
        return Run("bad-frame", "not a valid reply", cpu_ms=cpu_ms, seed=seed)
    return Run("ok", "", items, cpu_ms=cpu_ms, seed=seed)


def _clean(text: str) -> str:
    """Bound a detail and make it printable: it is shown in logs and on pages."""
    return "".join([char if char.isprintable() else "?" for char in text[:_MAX_DETAIL_CHARS]])
