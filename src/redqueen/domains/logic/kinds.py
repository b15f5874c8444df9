"""The domain of puzzles: a teacher states clues, a student finds the one assignment that fits them all."""

from __future__ import annotations

import re

from redqueen.config import VerifyConfig
from redqueen.domains.domain import Domain, Shown, TaskKind
from redqueen.domains.logic import prompts_compact
from redqueen.domains.logic.deduction import TooHardError, solve
from redqueen.domains.logic.language import Puzzle, PuzzleError, read_puzzle, write_answer, write_puzzle
from redqueen.domains.logic.lessons import SEED_ANSWER, SEED_PUZZLE, lessons
from redqueen.domains.logic.normal import normal_form
from redqueen.nouns import Candidate, Grade, Rejection, Task
from redqueen.verify.programs import Rules

MAX_ANSWER_CHARS = 400
"""A longer answer is not read (ours): twelve names with their values are half as long."""
_PART = re.compile(r"([A-Za-z]{1,8})\s*=\s*([0-9]{1,4})", re.ASCII)


def check(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Task | Rejection:
    """Read a puzzle and solve it: it is a task when it has one solution, found in bounded work."""
    try:
        puzzle = read_puzzle(candidate.code)
        found = solve(puzzle)
    except PuzzleError as error:
        return Rejection(candidate, "unparsable", str(error))
    except TooHardError:
        return Rejection(candidate, "timeout", "needs too much work")
    if len(found.solutions) != 1:
        return Rejection(candidate, "ambiguous" if found.solutions else "contradictory")
    answer = write_answer(puzzle, found.solutions[0])
    head = (candidate.id, candidate.teacher, candidate.student, candidate.kind)
    return Task(*head, write_puzzle(puzzle), inputs=("",), outputs=(answer,))


def grade(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade an assignment: every name once, in any order, each with its value."""
    if len(answer) > MAX_ANSWER_CHARS:
        return Grade(False, "too-large", f"longer than {MAX_ANSWER_CHARS} characters")
    given: dict[str, int] = {}
    for part in re.split(r"[,\n;]", answer.strip()):
        found = _PART.fullmatch(part.strip())
        if found is None or found.group(1) in given:
            return Grade(False, "unparsable", "A = 1, B = 2 was wanted, every name once")
        given[found.group(1)] = int(found.group(2))
    truth = {name: int(value) for name, value in _PART.findall(task.outputs[0])}
    return Grade(given == truth, "ok")


def _puzzle(task: Task) -> Puzzle:
    return read_puzzle(task.code)


PUZZLE = TaskKind(
    name=prompts_compact.KIND,
    shown=Shown(
        "logic_puzzle (solve a puzzle)",
        "The student sees what is sought and the clues, and is asked for the one assignment that fits them.",
        "Which values fit all clues? (A = 1, B = 2)",
        "{}{}",
        "it is {}",
    ),
    words={"compact": prompts_compact.WORDS},
    check=check,
    grade=grade,
    gold=lambda task: task.outputs[0],
    statement=lambda task: task.code,
    normal_form=lambda task: normal_form(_puzzle(task)),
    behaviour=lambda task: normal_form(_puzzle(task)),
    behaviour_class=lambda task: f"{task.kind} {_puzzle(task).sort}",
)

SEED = Task("seed", "seed", "", PUZZLE.name, SEED_PUZZLE, ("",), (SEED_ANSWER,))
LOGIC = Domain("logic", (PUZZLE,), SEED, lessons=lessons)
