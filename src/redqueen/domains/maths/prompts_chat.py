"""Mathematics in plain English: statements in ``maths`` fences, word problems in ``problem`` fences."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import THINK_FIRST, fence, last_block, unfenced
from redqueen.records import Task

LANGUAGE = """A statement is what is asked for, and where needed the conditions that fix it:
- `3*(17 - 5) % 7` a number to be worked out; `%` is the remainder, `^` the power, `*` is always written;
- `x where 2*x + y = 7, x - y = 2` equations, which must have one answer; names are single letters; `x where x^2 = 9,
  x > 0`; whole numbers of a range: `x where 3*x % 7 = 5, x in 0..6`;
- `sum(k in 1..10, k^2)`, `prod(k in 2..5, k + 1)`, `count(j in 1..6, k in 1..6, j + k = 7)`, `count(k in 1..50,
  prime(k), k % 4 = 1)`;
- `a(8) where a(1) = 1, a(2) = 1, a(n) = a(n - 1) + a(n - 2)` a sequence by its first members and its rule;
- the functions abs, ceil, choose(n, k), digitsum, divisors (how many), fact, floor, gcd, lcm, max, min, phi, sigma
  (sum of divisors), sqrt.
There is nothing else in the language: no text, no units, no other functions."""
"""The language of statements in plain English, for models that were not trained on it."""

_RULES = """Rules:
- there is exactly one answer: a whole number, a fraction, or a short closed form with roots;
- a computer must find it in about a second: ranges and numbers stay small."""

_TEXT_RULES = """Rules for the text:
- it is a story or a question in plain prose and ends with one question, whose mark is the only one;
- it holds no formulas and no signs such as + or =;
- every number of the text stands in the statement and every number of the statement in the text, equally often; only 0
  and 1 may stand in the statement alone;
- it names what is done: gives away, each, shares equally, remainder, and so on;
- it says what the statement says and nothing else."""

_REFERENCE_ENDING = "Yours must differ from all of the above in what it asks, not only in names or numbers."


def _earlier(references: Sequence[Task], in_words: bool) -> list[str]:
    shown = []
    for number, task in enumerate(references, start=1):
        text = f"{fence('problem', task.message)}\n" if in_words and task.message else ""
        shown.append(f"Earlier task {number}:\n{text}{fence('maths', task.code)}")
    return [*shown, _REFERENCE_ENDING] if references else []


def _propose_formal(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "\n\n".join(
        [
            "Invent a problem in mathematics, as a formal statement. Someone else will see the statement and must find "
            "the number that it asks for.",
            LANGUAGE,
            _RULES,
            *_earlier(references, in_words=False),
            "Write something different and harder for the solver: several steps of reasoning, yet solvable with care. "
            "First plan between <think> and </think>. Then write the statement in a ```maths block.",
        ]
    )


def _propose_word(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    return "\n\n".join(
        [
            "Invent a word problem in mathematics: a text, and the same as a formal statement. Someone else will see "
            "the text alone and must find the number that it asks for; the right answer is the statement's.",
            LANGUAGE,
            _RULES,
            _TEXT_RULES,
            *_earlier(references, in_words=True),
            "Write something different and harder for the solver: several steps of reasoning, yet solvable with care. "
            "First plan between <think> and </think>. Then write the text in a ```problem block and the statement in a "
            "```maths block.",
        ]
    )


def _solve_formal(task: Task) -> str:
    return "\n\n".join(
        [
            "Find the number that this statement asks for.",
            fence("maths", task.code),
            "(`%` is the remainder, `^` the power; what stands after `where` are conditions; divisors, sigma and phi "
            "are the number of divisors, their sum, and Euler's function.)",
            f"{THINK_FIRST} The answer is the exact number, and nothing else.",
        ]
    )


def _solve_word(task: Task) -> str:
    return "\n\n".join(
        [
            "Solve this problem.",
            fence("problem", task.message),
            f"{THINK_FIRST} The answer is the exact number, without a unit, and nothing else.",
        ]
    )


def _read_formal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    code = last_block(text, "maths").strip()
    return ParsedProposal(code=code) if code else ParsedProposal(error="no maths block")


def _read_word(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    code, message = last_block(text, "maths").strip(), last_block(text, "problem").strip()
    if not (code and message):
        return ParsedProposal(error=f"no {'problem' if code else 'maths'} block")
    return ParsedProposal(code=code, message=message)


FORMAL_WORDS = Words(_propose_formal, _solve_formal, _read_formal, unfenced)
STORY_WORDS = Words(_propose_word, _solve_word, _read_word, unfenced)
