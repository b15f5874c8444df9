"""Mathematics in the compact format of the embedded base.

::

    solve maths_formal    BOS statement ASK maths_formal OUT               ->  [THINK steps /THINK] number EOS
    solve maths_word      BOS MSG text ASK maths_word OUT                  ->  [THINK twin steps /THINK] number EOS
    propose maths_formal  BOS REF statement ... NEW maths_formal OUT       ->  statement EOS
    propose maths_word    BOS REF MSG text IN twin ... NEW maths_word OUT  ->  text IN twin EOS

Among the references of a word problem, a task without a text is shown as ``REF statement``.
"""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import IN, MSG, REF, asked, has_mark, new
from redqueen.records import Task

FORMAL, WORD = "maths_formal", "maths_word"
"""The names of the kinds."""


def formal_reference(code: str) -> str:
    """Return an earlier task as a reference in a prompt for a statement."""
    return REF + code


def word_reference(text: str, code: str) -> str:
    """Return an earlier task as a reference in a prompt for a word problem."""
    return f"{REF}{MSG}{text}{IN}{code}" if text else formal_reference(code)


def _propose_formal(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "".join(formal_reference(task.code) for task in references) + new(FORMAL)


def _propose_word(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "".join(word_reference(task.message, task.code) for task in references) + new(WORD)


def _read_formal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    if has_mark(text) or not text.strip():
        return ParsedProposal(error="a mark where text should be" if text.strip() else "nothing is there")
    return ParsedProposal(code=text.strip())


def _read_word(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    message, mark, code = text.partition(IN)
    if not mark or has_mark(message) or has_mark(code):
        return ParsedProposal(error="a mark where text should be" if mark else "no formal twin")
    if not message.strip() or not code.strip():
        return ParsedProposal(error="nothing is there")
    return ParsedProposal(code=code.strip(), message=message.strip())


FORMAL_WORDS = Words(_propose_formal, lambda task: task.code.strip("\n") + asked(FORMAL), _read_formal, str.strip)
STORY_WORDS = Words(_propose_word, lambda task: MSG + task.message + asked(WORD), _read_word, str.strip)
