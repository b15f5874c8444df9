"""The behaviour class, the size class and the structural measures of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from redqueen.domains.maths.language import FUNCTIONS, Node, StatementError, free_names, normal_form, parse
from redqueen.records import Task

_SIGNS = frozenset({"+", "-", "*", "/", "%", "^", "neg"})


def behaviour_class(task: Task) -> str:
    """Return the class of a task: its kind, the form of its statement (value, equations, search, sequence), the
    operations beyond + - *, and the sort of its answer. Example: ``maths_formal equations-2 ^ whole``.
    """
    statement = _statement(task.code)
    operations = sorted(set(_operations(statement)) - {"+", "-", "*", "neg"})
    return f"{task.kind} {_form(statement)} {'+'.join(operations) or 'plain'} {_sort(task.outputs[0])}"


def size_class(task: Task) -> str:
    """Return the size of a task in coarse steps: octaves of its length and of its operations, digits of its numbers."""
    read = f"{task.message} {task.code}" if task.message else task.code
    operations = sum(1 for _ in _operations(_statement(task.code)))
    digits = max(map(len, re.findall(r"[0-9]+", f"{task.code} {task.outputs[0]}", re.ASCII)), default=0)
    octaves = f"length {len(read).bit_length()} operations {(operations + 1).bit_length()}"
    return f"{task.kind} {octaves} digits {min(9, digits)}"


def behaviour(task: Task) -> str:
    """Return a text equal for equal tasks: the statement up to names and order, and its answer."""
    return f"{task.kind} {maths_normal_form(task)} -> {task.outputs[0]}"


_normal_form = lru_cache(maxsize=4096)(normal_form)  # for the whole buffer at every step


def maths_normal_form(task: Task) -> str:
    """Return the statement's normal form; the text of a word problem is ignored."""
    return _normal_form(task.code)


def measure(task: Task) -> dict[str, float]:
    """Return measures of a statement: operations, unknowns and conditions, and the words that a student reads."""
    statement = _statement(task.code)
    return {
        "num_operations": float(sum(1 for _ in _operations(statement))),
        "num_unknowns": float(len(free_names(statement))),
        "num_conditions": float(len(statement[2])),
        "num_words": float(len(task.message.split())),
    }


@lru_cache(maxsize=4096)
def _statement(code: str) -> Node:
    try:
        return parse(code)
    except StatementError:
        return ("ask", ("num", "0"), ())


def _form(statement: Node) -> str:
    conditions = statement[2]
    if any(condition[0] == "in" for condition in conditions):
        return f"search-{len(free_names(statement))}"
    for condition in conditions:
        if condition[0] == "rel" and condition[2][0][0] == "call" and condition[2][0][1] not in FUNCTIONS:
            return "sequence"
    return f"equations-{len(free_names(statement))}" if conditions else "value"


def _operations(node: Any) -> Iterator[str]:
    """Yield the signs and functions of a statement, each as often as it occurs."""
    if not isinstance(node, tuple):
        return
    if node and node[0] in _SIGNS:
        yield node[0]
    elif node and node[0] == "call":
        yield node[1] if node[1] in FUNCTIONS else "sequence"
    elif node and node[0] in ("sum", "prod", "count"):
        yield node[0]
    for part in node[1:] if node and isinstance(node[0], str) else node:
        yield from _operations(part)


def _sort(answer: str) -> str:
    if re.fullmatch(r"-?[0-9]+", answer, re.ASCII):
        return "negative" if answer[0] == "-" else "whole"
    return "fraction" if re.fullmatch(r"-?[0-9]+/[0-9]+", answer, re.ASCII) else "root"
