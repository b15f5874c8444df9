"""The archive of verified answers, from which students are distilled.

For each solved task it keeps one correct answer from the step in which the task was first solved, so that a rarely
solved task has the same weight as an easy one.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter

from redqueen.propose.buffer import task_key
from redqueen.records import Task
from redqueen.solve import GradedAttempts
from redqueen.streams import Streams

MAX_ANSWERS = 50_000
"""Maximum number of answers kept in a run: three times as many as 500 steps of mathematics give. Ours."""

MAX_PACKED_BYTES = 1 << 30
"""Maximum size of an archive that is unpacked from a checkpoint."""


@dataclass(frozen=True)
class VerifiedAnswer:
    """A correct answer (``text``, as a student wrote it) to a task that was first solved in ``step``."""

    task: Task
    text: str
    step: int


def _pack(answers: dict[str, VerifiedAnswer]) -> str:
    """Return the answers as compressed JSON: 17,000 answers of mathematics take 2 MB of a checkpoint instead of 6."""
    text = json.dumps(_ANSWERS.dump_python(answers))  # escapes lone surrogates, which UTF-8 cannot hold
    return b64encode(zlib.compress(text.encode(), 1)).decode()


def _unpack(packed: object) -> object:
    if not isinstance(packed, str):
        return packed
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(b64decode(packed), MAX_PACKED_BYTES)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the answers cannot be unpacked ({error})") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"the answers are larger than {MAX_PACKED_BYTES >> 30} GiB")
    return _ANSWERS.validate_python(json.loads(text))


_ANSWERS = TypeAdapter(dict[str, VerifiedAnswer])


@dataclass(frozen=True)
class AnswerArchive:
    """At most ``capacity`` answers (0: none) by ``task_key``, in the order in which their tasks were solved."""

    capacity: int = 0
    by_task: Annotated[
        dict[str, VerifiedAnswer], BeforeValidator(_unpack), PlainSerializer(_pack, when_used="json")
    ] = field(default_factory=dict)

    def add(self, answered: Iterable[GradedAttempts], streams: Streams) -> AnswerArchive:
        """Return the archive with an answer to each task that was first solved in the step of ``streams``.

        Seed, step and task determine which of the task's correct answers is kept. Beyond the capacity a uniform sample
        of the tasks stays: those with the smallest keys, which are digests.
        """
        if not self.capacity:
            return self
        correct: dict[str, list[tuple[Task, str]]] = defaultdict(list)
        for one in answered:
            texts = [outcome.attempt.text for outcome in one.outcomes if outcome.grade.correct]
            if texts and (key := task_key(one.task)) not in self.by_task:
                correct[key] += [(one.task, text) for text in texts]
        new = {
            key: VerifiedAnswer(*found[streams.seed("answer", key) % len(found)], streams.step)
            for key, found in correct.items()
        }
        kept = self.by_task | new
        if len(kept) > self.capacity:
            smallest = set(sorted(kept)[: self.capacity])
            kept = {key: answer for key, answer in kept.items() if key in smallest}
        return replace(self, by_task=kept)
