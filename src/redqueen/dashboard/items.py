"""The items of a suite: who answered them right, the base beside a member, from what ``redqueen evaluate`` kept.

The files lie in the run's folder ``evaluations`` and are untrusted like everything there: a line that is none of ours
is counted and left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from redqueen.errors import UserError
from redqueen.files import open_plain
from redqueen.nouns import Task
from redqueen.run.store import EVALUATIONS

BASE = "base"
MODE = "greedy"
MAX_FILES, MAX_BYTES, MAX_LINES = 50, 64 << 20, 400_000
PAGE_ITEMS = 50
FLIPS = {"": "all items", "flips": "all that flipped", "gained": "now right", "lost": "now wrong"}
"""What the list can be narrowed to, by the word in its address."""


@dataclass(frozen=True)
class Answered:
    """One greedy answer (untrusted). ``correct`` is None where the judgement was lost."""

    correct: bool | None
    verdict: str
    text: str
    answer: str | None


@dataclass(frozen=True)
class Answers:
    """All greedy answers of a file, by examinee and question; ``num_strange`` lines were not of our form.

    ``roles`` are those of the examinees.
    """

    of: dict[str, dict[str, Answered]]
    num_strange: int
    roles: dict[str, str]

    @property
    def members(self) -> list[str]:
        """All examinees but the base, in the order of the file."""
        return [name for name in self.of if name != BASE]

    @property
    def first(self) -> str:
        """Who is shown unless somebody is asked for: the first who solves."""
        return next((name for name in self.members if self.roles[name] != "teacher"), BASE)


@dataclass(frozen=True)
class Item:
    """One question: what the base made of it, and what the member did. None: not answered."""

    question: str
    base: Answered | None
    member: Answered | None

    @property
    def flip(self) -> str:
        """``gained``, ``lost``, or "" when both are right or both wrong, or one was not judged."""
        if self.base is None or self.member is None or None in (self.base.correct, self.member.correct):
            return ""
        return "" if self.base.correct == self.member.correct else "gained" if self.member.correct else "lost"


@dataclass(frozen=True)
class ItemPage:
    """One page of the items of a member. ``by_chance``: how often as uneven flips come about by chance (0..1)."""

    member: str
    items: list[Item]
    num_items: int
    num_shown: int
    num_base_right: int
    num_member_right: int
    num_gained: int
    num_lost: int
    page: int
    num_pages: int
    show: str = ""
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Items gained and lost by the last part of their names, which is their kind."""

    @property
    def by_chance(self) -> float:
        return sign_test(self.num_gained, self.num_lost)


def answer_files(run: Path) -> list[str]:
    """Return the names of the files of answers in a run's folder, the newest first."""
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(run / EVALUATIONS) as entries:
            for entry in entries:
                plain = re.fullmatch(r"[\w.-]{1,120}\.jsonl", entry.name) and entry.is_file(follow_symlinks=False)
                if plain:
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
    except OSError:
        return []
    return [name for _, name in sorted(found, reverse=True)[:MAX_FILES]]


def read_answers(path: Path) -> Answers:
    """Read a file of answers. Raises UserError when it is too large or no plain file."""
    if os.path.islink(path.parent):
        raise UserError(f"{path.parent} is a link; put the folder itself there")
    try:
        found = path.lstat()
    except OSError:
        raise UserError(f"{path} is not there any more; load the page again") from None
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{path} is no plain file; put the file itself there")
    return _read(path, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, *_: int) -> Answers:
    of: dict[str, dict[str, Answered]] = {}
    roles: dict[str, str] = {}
    num_strange = 0
    with open_plain(path, MAX_BYTES) as lines:
        for number, line in enumerate(lines):
            if number == MAX_LINES:
                break
            row = _row(line)
            if row is None:
                num_strange += 1
            elif row["mode"] == MODE:
                verdict = Answered(None if row["lost"] else row["correct"], row["verdict"], row["text"], row["answer"])
                of.setdefault(row["examinee"], {})[row["question"]] = verdict
                roles[row["examinee"]] = row["role"]
    return Answers(of, num_strange, roles)


TEXTS, TRUTHS = ("examinee", "role", "question", "mode", "verdict", "text"), ("correct", "lost")


def _row(line: bytes) -> dict | None:  # type: ignore[type-arg]
    """Return a line's fields when they are of the types that ``redqueen evaluate`` writes."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not isinstance(row.get("answer"), str | None):
        return None
    whole = all(isinstance(row.get(name), str) for name in TEXTS) and all(type(row.get(n)) is bool for n in TRUTHS)
    return row if whole else None


def item_page(answers: Answers, member: str, show: str, page: int) -> ItemPage:
    """Return one page of the items, in the order of the file. Raises UserError for a member or a word there is not."""
    if member not in answers.of:
        raise UserError("This file has no answers of that member; choose one from the list.")
    if show not in FLIPS:
        raise UserError(f"The list can show {', '.join(FLIPS.values())}.")
    base, own = answers.of.get(BASE, {}), answers.of[member]
    every = [Item(name, base.get(name), own.get(name)) for name in {**base, **own}]
    wanted = [item for item in every if not show or item.flip == show or (show == "flips" and item.flip)]
    num_pages = max(1, -(-len(wanted) // PAGE_ITEMS))
    page = min(max(1, page), num_pages)
    counted: dict[str, tuple[int, int]] = {}
    for item in every:
        kind = item.question.rpartition("/")[2] if item.question.count("/") == 2 else ""
        gained, lost = counted.get(kind, (0, 0))
        counted[kind] = (gained + (item.flip == "gained"), lost + (item.flip == "lost"))
    return ItemPage(
        member=member,
        items=wanted[(page - 1) * PAGE_ITEMS : page * PAGE_ITEMS],
        num_items=len(every),
        num_shown=len(wanted),
        num_base_right=_num_right(base),
        num_member_right=_num_right(own),
        num_gained=sum(gained for gained, _ in counted.values()),
        num_lost=sum(lost for _, lost in counted.values()),
        page=page,
        num_pages=num_pages,
        show=show,
        counted=dict(sorted(counted.items())) if len(counted) > 1 and len(counted) < 20 else {},
    )


def _num_right(answers: Mapping[str, Answered]) -> int:
    return sum(one.correct is True for one in answers.values())


def sign_test(num_gained: int, num_lost: int) -> float:
    """Return the two-sided p of the exact sign test: how likely flips as uneven as these are if either way is."""
    num = num_gained + num_lost
    tail = term = 1
    for k in range(1, min(num_gained, num_lost) + 1):
        term = term * (num - k + 1) // k  # the binomial coefficient of k, from that of k - 1
        tail += term
    return min(1.0, 2 * tail / 2**num)


def question_task(file: str, question: str) -> Task | None:
    """Return the task behind a question of the embedded suite, None for other suites: those lie elsewhere."""
    return _embedded().get(question) if file.startswith("mini-") else None


@lru_cache(maxsize=1)
def _embedded() -> dict[str, Task]:
    from redqueen.evaluate.benchmarks import MINI, load_questions  # it loads what takes a second, for this page alone
    from redqueen.evaluate.questions import TaskQuestion

    return {one.id: one.task for one in load_questions(MINI) if isinstance(one, TaskQuestion)}


def evaluate_command(run: Path) -> str:
    """Return the command that makes such a file, quoted for a shell."""
    return shlex.join(["redqueen", "evaluate", str(run), "--suite=mini"])
