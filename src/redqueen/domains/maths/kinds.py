"""The domain of mathematics: find the number that a formal statement, or a text with a formal twin, defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from redqueen.domains.domain import Domain, Item, Shown, TaskKind, task_with_truth
from redqueen.domains.maths import prompts_chat, prompts_compact
from redqueen.domains.maths.answers import grade_number
from redqueen.domains.maths.checking import check_statement
from redqueen.domains.maths.language import free_names, parse
from redqueen.domains.maths.measures import behaviour, behaviour_class, maths_normal_form, measure, size_class
from redqueen.domains.rows import load_frozen
from redqueen.records import Task

SEED = "1 + 1"
SUITES = Path(__file__).parent / "suites"

FORMAL = TaskKind(
    name=prompts_compact.FORMAL,
    shown=Shown(
        "maths_formal (a statement)",
        "The student sees the statement and is asked for the number.",
        "{}= {}",
    ),
    words={"compact": prompts_compact.FORMAL_WORDS, "chat": prompts_chat.FORMAL_WORDS},
    check=check_statement,
    grade=grade_number,
    gold=lambda task: task.outputs[0],
    statement=lambda task: task.code,
    normal_form=maths_normal_form,
    behaviour=behaviour,
    behaviour_class=behaviour_class,
    size_class=size_class,
    measure=measure,
)
WORD = replace(
    FORMAL,
    name=prompts_compact.WORD,
    shown=Shown(
        "maths_word (a word problem)",
        "The student sees the text and is asked for the number; the statement is its formal twin, which counts.",
        "{}= {}",
    ),
    words={"compact": prompts_compact.STORY_WORDS, "chat": prompts_chat.STORY_WORDS},
    check=partial(check_statement, in_words=True),
    statement=lambda task: task.message,
)


def read_task(name: str, kind: str, fields: Mapping[str, object]) -> Task:
    """Read a task's plain fields: ``output``, a number in the formal language, and optionally ``code``, its statement.

    Raises ValueError for a damaged field.
    """
    task = task_with_truth(name, kind, fields)
    _, truth, conditions = parse(task.outputs[0])
    if conditions or free_names(truth):
        raise ValueError('the field "output" is not a number')
    if task.code:
        parse(task.code)
    return task


def load_suite() -> list[Item]:
    """Load the frozen exercises, formal ones and word problems."""
    return load_frozen(SUITES, FORMAL.name, WORD.name)


MATHS = Domain(
    "maths",
    (FORMAL, WORD),
    seed=Task("seed", "seed", "", FORMAL.name, SEED, ("",), ("2",)),
    suite=load_suite,
    read_task=read_task,
)
