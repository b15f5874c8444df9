"""Turn a proposal into a puzzle with a computed solution; grade assignments."""

from __future__ import annotations

import re
from dataclasses import replace

from redqueen.config import VerifyConfig
from redqueen.domains.domain import task_of, worker_verdict
from redqueen.domains.logic.deduction import MAX_WORK, TooHardError, compile_clue, solve
from redqueen.domains.logic.language import Node, Puzzle, PuzzleError, read_puzzle, write_puzzle
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules, call_job, run_once

KILL_CPU_MS, ACCEPT_CPU_MS = 2_000, 1_000
"""CPU time after which the solver is killed, and CPU time up to which a puzzle is accepted as a task (ours). The second
is lower, so that no puzzle is accepted once and too slow the next time."""
MAX_ANSWER_CHARS = 450
"""Longer answers are not read (ours). It fits 25 names of eight letters with numbers of four digits."""
MAX_GIVEN = 2
"""Maximum number of values that ``repair`` adds as clues (ours); more would replace too much of the puzzle."""
_PART = re.compile(r"([A-Za-z]{1,8})\s*(?:=|is)\s*([0-9]{1,4}|knight|knave)", re.ASCII)
_KNIGHTS = {"knight": "1", "knave": "0"}


def check_puzzle(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Jobs[Task | Rejection]:
    """Verify one candidate: our own parser reads it, z3 in the sandbox finds its solution and shows that it is unique.

    The clues are then evaluated for the solution here, by code that is independent of z3.
    """
    try:
        text = write_puzzle(read_puzzle(candidate.code))
        read_puzzle(text)  # the limits apply to the puzzle as it is shown
    except PuzzleError as error:
        return Rejection(candidate, "syntax", str(error))
    run = yield from run_once(call_job("redqueen.domains.logic.smt", "judge", [text], KILL_CPU_MS, rules))
    verdict, *found = worker_verdict(run, ACCEPT_CPU_MS)
    if verdict != "ok":
        return Rejection(candidate, verdict, found[0])
    code, answer = found
    if not is_solution(read_puzzle(code), read_values(answer)):
        return Rejection(candidate, "disagreement", "the solver's answer does not fit the clues")
    return task_of(candidate, code=code, outputs=(answer,), protection=rules.protection)


def is_solution(puzzle: Puzzle, values: dict[str, int]) -> bool:
    """Return whether an assignment fits the first line and all clues."""
    names = puzzle.names
    if set(values) != set(names) or not all(puzzle.low <= value <= puzzle.high for value in values.values()):
        return False
    ordered = [values[name] for name in names]
    if any(len(set(ordered[start:end])) < end - start for start, end in puzzle.spans()):
        return False
    return all(compile_clue(clue)(ordered) for clue in puzzle.clues)


def read_values(answer: str) -> dict[str, int]:
    """Read ``A = 1, B = 2``, in any order. Raises ValueError for anything else, and for a name that occurs twice."""
    return _values(_read_assignment(answer))


def _values(written: dict[str, str]) -> dict[str, int]:
    return {name: int(_KNIGHTS.get(value, value)) for name, value in written.items()}


def _read_assignment(answer: str) -> dict[str, str]:
    """Return the value of each name as written: a number, ``knight`` or ``knave``. Raises ValueError."""
    written: dict[str, str] = {}
    for part in re.split(r"[,;\n]", answer.strip().rstrip(".")):
        found = _PART.fullmatch(part.strip())
        if found is None or found.group(1) in written:
            raise ValueError("A = 1, B = 2 was expected, every name once")
        written[found.group(1)] = found.group(2)
    return written


def grade_assignment(task: Task, answer: str, rules: Rules) -> Grade:
    """Grade an assignment: every name once, in any order, each with its value. No solver is used."""
    if len(answer) > MAX_ANSWER_CHARS:
        return Grade(False, "too-large", f"longer than {MAX_ANSWER_CHARS} characters")
    try:
        written = _read_assignment(answer)
    except ValueError as error:
        return Grade(False, "unparsable", str(error))
    if not task.code.startswith("knights ") and _KNIGHTS.keys() & set(written.values()):
        return Grade(False, "ok", "no person here is a knight or a knave")
    return Grade(_values(written) == read_values(task.outputs[0]), "ok")


def repair(plan: str, text: str) -> str:
    """Repair a puzzle by ``plan``, the assignment that its teacher wrote first; return ``text`` where that fails.

    Clues that are false for the plan are dropped. If other assignments fit the rest too, up to ``MAX_GIVEN`` values are
    added as clues. Never raises.
    """
    try:
        puzzle, values = read_puzzle(text), read_values(plan)
    except (PuzzleError, ValueError):
        return text
    if set(values) != set(puzzle.names):
        return text
    ordered = tuple(values[name] for name in puzzle.names)
    kept = tuple(clue for clue in puzzle.clues if compile_clue(clue)(ordered))
    repaired, work_left = replace(puzzle, clues=kept), MAX_WORK
    if not kept or not is_solution(repaired, values):
        return text
    for _ in range(MAX_GIVEN + 1):
        try:
            solved = solve(repaired, work_left)
        except TooHardError:
            return text
        found, work_left = solved.solutions, work_left - solved.counts.work
        if len(found) < 2:
            return write_puzzle(repaired)
        undecided = next(at for at, both in enumerate(zip(*found, strict=True)) if len(set(both)) > 1)
        repaired = replace(repaired, clues=(*repaired.clues, _value_clue(puzzle, ordered, undecided)))
    return text


def _value_clue(puzzle: Puzzle, ordered: tuple[int, ...], at: int) -> Node:
    """Return a clue that fixes the value of one name."""
    if puzzle.sort != "knights":
        return ("=", ("var", at), ("num", ordered[at]))
    # "We are of the same type" implies that the other is a knight, "of different types" that the other is a knave.
    other = at - 1 if at else 1
    relation = "=" if ordered[at] else "!="
    return ("says", other, (relation, ("var", at), ("var", other)))
