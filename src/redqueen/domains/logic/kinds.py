"""The domain of puzzles: a teacher states clues, a student finds the one assignment that fits them all."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from redqueen.config import Config
from redqueen.domains.domain import Domain, Shown, TaskKind, task_with_truth
from redqueen.domains.logic import measures, prompts_chat, prompts_compact
from redqueen.domains.logic.checking import check_puzzle, grade_assignment, is_solution, read_values
from redqueen.domains.logic.language import read_puzzle
from redqueen.domains.rows import load_frozen
from redqueen.errors import UserError, how_to_install
from redqueen.records import Task

SUITES = Path(__file__).parent / "suites"
SEED_PUZZLE, SEED_ANSWER = "order A B\nA < B", "A = 1, B = 2"

PUZZLE = TaskKind(
    name=prompts_compact.KIND,
    shown=Shown(
        "logic_puzzle (find the assignment)",
        "The student sees what is sought and the clues, and is asked for the one assignment that fits them.",
        "{}{}",
    ),
    words={"compact": prompts_compact.WORDS, "chat": prompts_chat.WORDS},
    check=check_puzzle,
    grade=grade_assignment,
    gold=lambda task: task.outputs[0],
    statement=lambda task: task.code,
    normal_form=lambda task: measures.form_of(task.code),
    behaviour=lambda task: measures.form_of(task.code),
    behaviour_class=measures.sort_of,
    size_class=measures.size_of,
    measure=measures.measure,
)


def refuse(config: Config, format_name: str, num_proposals: Mapping[str, int]) -> None:
    """Raise UserError when the solver is not installed."""
    if find_spec("z3") is None:
        raise UserError(f"puzzles are solved by z3, which is not installed: {how_to_install('logic')}")


def read_task(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Read a task's plain fields: ``code``, the puzzle, and ``output``, the assignment that fits it.

    Raises ValueError for a damaged field.
    """
    task = task_with_truth(name, kind, fields)
    if not is_solution(read_puzzle(task.code), read_values(task.outputs[0])):
        raise ValueError('the field "output" does not fit the clues')
    return task


SEED = Task("seed", "seed", "", PUZZLE.name, SEED_PUZZLE, ("",), (SEED_ANSWER,))
LOGIC = Domain("logic", (PUZZLE,), SEED, lambda: load_frozen(SUITES, PUZZLE.name), read_task, refuse)
