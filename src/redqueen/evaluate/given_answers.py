"""Grading given answers without a model: ``redqueen evaluate --suite NAME --answers FILE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redqueen.domains.rows import Row, rows_of_file
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import BENCHMARKS, TESTS, load_questions, read_item
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import Question, clusters_of
from redqueen.records import Grade
from redqueen.statistics import bootstrap_mean, wilson


def refuse_useless(given: Mapping[str, object]) -> None:
    """Raise UserError for a flag that has no effect with ``--answers``; ``given`` maps flags to their values."""
    if useless := [flag for flag, value in given.items() if value]:
        raise UserError(f"--answers grades existing answers: leave out {useless[0]}, or --answers")


def read_answers(path: Path, questions: Sequence[Question]) -> list[str | None]:
    """Read JSON lines ``{"id", "answer"}``; return one answer per question, None where there is none.

    If any line has an id of the suite, lines are matched by ``id``, else by order. Raises UserError for an unknown or
    repeated id, and for lines without ids whose number is not that of the questions.
    """
    rows = rows_of_file(path, "--answers")
    answers = [_answer(row) for row in rows]
    names = [str(row.fields.get("id")) for row in rows]
    known = {question.id for question in questions}
    if known.isdisjoint(names) and len(answers) == len(questions):
        return answers
    if not any(row.has("id") for row in rows):
        raise UserError(
            f"{path} has {len(answers)} answers and the suite {len(questions)} items: give every answer the id of its "
            "item, or give one answer for every item, in order"
        )
    by_name: dict[str, str | None] = {}
    for row, name, answer in zip(rows, names, answers, strict=True):
        if name not in known:
            raise UserError(
                f"{row.where}: none of the {len(questions)} items has the id {row.fields.get('id')!r}; use the "
                "suite's ids, or give one answer for every item, in order"
            )
        if name in by_name:
            raise UserError(f"{row.where}: the id {name!r} occurs twice; give every item one answer")
        by_name[name] = answer
    return [by_name.get(question.id) for question in questions]


def _answer(row: Row) -> str | None:
    if not row.has("answer"):
        if "answer" in row.fields:
            return None
        raise UserError(f'{row.where}: the field "answer" is missing; write it as a text, or null for none')
    return row.text("answer")


def grade_file(suite: str, data: Path | None, limit: int | None, answers: Path) -> dict[str, Any]:
    """Return the score of given answers as plain values: the share of correct ones, its interval, and each verdict.

    Answers whose grading was lost (infrastructure failure) do not count; ``num_graded`` counts the others.
    Raises UserError for a bad suite or file.
    """
    questions = load_questions(suite, data, limit)
    given = read_answers(answers, questions)
    with Judge() as judge:
        grades = judge.grade(list(zip(questions, given, strict=True)))
    return {
        "suite": suite,
        **summary_of(grades, list(clusters_of(questions).values())),
        "items": [_shown(question.id, grade) for question, grade in zip(questions, grades, strict=True)],
    }


def grade_lines(path: Path) -> list[dict[str, object]]:
    """Grade a file whose lines hold a task and an answer; a line that cannot be read gets ``invalid-input``.

    Raises UserError for a file that cannot be read.
    """
    read: list[tuple[object, tuple[Question, str | None] | str]] = []
    for row in rows_of_file(path, "FILE"):
        try:
            read.append((row.fields.get("id"), (read_item(BENCHMARKS[TESTS], row, row.text("id")), _answer(row))))
        except UserError as error:
            read.append((row.fields.get("id"), str(error)))
    with Judge() as judge:
        grades = iter(judge.grade([pair for _, pair in read if not isinstance(pair, str)]))
    return [
        _shown(name, Grade(False, "invalid-input", pair) if isinstance(pair, str) else next(grades))
        for name, pair in read
    ]


def _shown(name: object, grade: Grade) -> dict[str, object]:
    return {"id": name, "correct": grade.correct, "verdict": grade.verdict, "detail": grade.detail}


def summary_of(grades: Sequence[Grade], clusters: Sequence[str]) -> dict[str, object]:
    """Return counts, the share of correct answers (None when none could be graded) and its 95 % interval.

    ``clusters``: one label per item. The interval is Wilson's if no items share a cluster. Otherwise the items are not
    independent, and it is from the bootstrap over clusters.
    """
    own = [(grade.correct, label) for grade, label in zip(grades, clusters, strict=True) if not grade.lost]
    kept, labels = [correct for correct, _ in own], [label for _, label in own]
    interval = None
    if kept and len(set(labels)) == len(labels):
        interval = wilson(sum(kept), len(kept))
    elif kept:
        interval = bootstrap_mean(kept, np.random.default_rng(0), labels)
    return {
        "num_items": len(grades),
        "num_graded": len(kept),
        "num_correct": sum(kept),
        "score": sum(kept) / len(kept) if kept else None,
        "interval": [interval.low, interval.high] if interval else None,
    }
