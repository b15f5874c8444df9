"""Puzzles in plain English, in fenced blocks. The wording is ours."""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.config import VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import THINK_FIRST, fence, last_block, unfenced
from redqueen.records import Task

LANGUAGE = """A puzzle is written in a small language. The first line says what is sought:
- `order A B C`: A, B and C are the places 1, 2 and 3 in some order;
- `order A B C, P Q R`: two such orders of the same places, a grid of who has what (A = P: A has P);
- `number x y, 1 9`: x and y are whole numbers from 1 to 9, which may be equal;
- `knights A B C`: each is a knight (1), whose statements are all true, or a knave (0), whose statements are all false.
Below it stands one clue on each line. A clue compares with = != < > <= >=; it may use + - * and % by a number, bars for
the absolute value (`|A - B| = 1`), and `and`, `or`, `not` with brackets. Among knights a clue is a statement:
`A: B and not C` is A saying that B is a knight and C a knave; `A: B + C = 1` is A saying that one of them is a knight.
Names are of letters only; there are at most 25 names and 24 clues."""

_ANSWER_RULE = "The answer is the assignment, every name once, such as A = 2, B = 1, C = 3, and nothing else."


def _propose(references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    parts = ["Invent a logic puzzle that has exactly one solution. A solver will see it and must find it.", LANGUAGE]
    for number, task in enumerate(references, start=1):
        parts.append(f"Earlier puzzle {number}:\n{fence('puzzle', task.code)}")
    if references:
        parts.append("Your puzzle must differ from all of the above in its reasoning, not only in names or numbers.")
    parts.append(
        "Make it hard for the solver: several steps of deduction that build on each other, yet solvable with care. "
        "First plan between <think> and </think>: choose the solution, write clues that are true of it, and make sure "
        "that no other assignment fits. Then write the puzzle in a ```puzzle block."
    )
    return "\n\n".join(parts)


def _solve(task: Task) -> str:
    return "\n\n".join(
        [
            "Solve this logic puzzle. Exactly one assignment fits all clues.",
            LANGUAGE,
            fence("puzzle", task.code),
            f"{THINK_FIRST} {_ANSWER_RULE}",
        ]
    )


def _read_proposal(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the last puzzle."""
    code = last_block(text, "puzzle")
    return ParsedProposal(code=code.strip()) if code else ParsedProposal(error="no puzzle block")


WORDS = Words(_propose, _solve, _read_proposal, unfenced)
