"""Checking what comes out of a journal: An attacker can prepare a file in which any column holds any value.

Columns are known by their names, which mean the same in every table and query; what else a query computes must be a
finite number, a text or nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from redqueen.errors import UserError
from redqueen.journal.known import known_tables

LARGEST_INTEGER = 2**53
"""Beyond it a number is not the same in JSON, in a figure and in Parquet."""

LARGEST_REAL = 1e100
MAX_NAME_CHARS = 20_000
"""Longest name; the column ``student`` of a task may list a whole population."""

MAX_JSON_DEPTH = 32

CHOICES = {
    "role": frozenset({"teacher", "student", "both"}),
    "winner": frozenset({"teacher", "student", "draw", "none"}),
    "space": frozenset({"delta", "factor", "none"}),
    "mode": frozenset({"sampled", "greedy"}),
    "correct": frozenset({0, 1}),
    "lost": frozenset({0, 1}),
}
NAMES = frozenset(
    {
        "id", "name", "arm", "operator", "child", "replaced", "parent", "member", "individual", "teacher", "student",
        "suite", "stratum", "kind", "phase", "verdict", "protection", "rng_seed",
    }
)  # fmt: skip
TEXT_PATTERNS = {"rng_seed": r"-?[0-9]{1,100}", "kind": r"[A-Za-z][A-Za-z0-9_]{0,63}"}
"""Columns of text whose values all match one regular expression."""

MEANS = frozenset({"ast_depth", "cyclomatic", "num_lines", "num_variables"})
"""Whole numbers that some queries average under their own name."""

SIGNED = frozenset({"after_step"})

NUMBERS = frozenset({int, float})
_TEXT = frozenset({str})
ANY = NUMBERS | {str, type(None)}
TYPES: Mapping[str, frozenset[type]] = {
    "TEXT": frozenset({str}),
    "INTEGER": frozenset({int}),
    "REAL": frozenset({int, float}),
}


@cache
def allowed_types() -> dict[str, frozenset[type]]:
    """Return which types of Python a column's values may have, by the column's name."""
    found: dict[str, frozenset[type]] = {}
    for columns in known_tables().values():
        for column in columns:
            types = TYPES[column.type] | ({type(None)} if column.nullable else frozenset())
            types |= {float} if column.name in MEANS else frozenset()
            found[column.name] = found.get(column.name, frozenset()) | types
    return found


def check_rows(path: Path, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
    """Raise UserError when a value is not of its column's type, range or choice. Returns how much text there is."""
    return sum(_check_column(path, name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True))


def _check_column(path: Path, name: str, values: tuple[Any, ...]) -> int:
    known = allowed_types().get(name)
    types = set(map(type, values))
    strange = types - (known or ANY)
    if strange:
        _refuse(path, name, f"a value of the type {min(kind.__name__ for kind in strange)}")
    if name in CHOICES and set(values) - CHOICES[name]:
        _refuse(path, name, f"the value {min(map(repr, set(values) - CHOICES[name]))[:80]}")
    if not types.isdisjoint(NUMBERS) and name not in CHOICES:
        numbers = values if types <= NUMBERS else [value for value in values if type(value) in NUMBERS]
        _check_numbers(path, name, known, numbers)
    if str not in types:
        return 0
    texts = values if len(types) == 1 else [value for value in values if type(value) is str]
    num_chars = sum(map(len, texts))
    if name in NAMES and num_chars > MAX_NAME_CHARS and max(map(len, texts)) > MAX_NAME_CHARS:
        _refuse(path, name, f"a name of more than {MAX_NAME_CHARS:,} characters")
    if name in TEXT_PATTERNS and not all(re.fullmatch(TEXT_PATTERNS[name], text) for text in set(texts)):
        _refuse(path, name, "a text of another form")
    return num_chars


def _check_numbers(path: Path, name: str, known: frozenset[type] | None, numbers: Sequence[int | float]) -> None:
    whole = known is not None and float not in known
    largest = LARGEST_INTEGER if whole else LARGEST_REAL
    if not math.hypot(*numbers) <= largest:  # none is larger than the length of all: one pass for the honest
        least, greatest = min(numbers), max(numbers)
        if not (math.isfinite(least) and math.isfinite(greatest)):
            _refuse(path, name, "an infinite number")
        if greatest > largest or least < -largest:
            _refuse(path, name, "a number out of all bounds")
    if known is not None and (whole or name in MEANS) and name not in SIGNED and min(numbers) < 0:
        _refuse(path, name, f"the negative number {min(numbers)}")


def _refuse(path: Path, name: str, what: str) -> NoReturn:
    raise UserError(
        f"The journal {path} holds {what} in its column {name}, which no run writes; restore it from a copy."
    )


# ---- columns that hold JSON ------------------------------------------------------------------------------------------


def _texts(value: object) -> bool:
    return isinstance(value, list) and {*map(type, value)} <= _TEXT


def _texts_by_name(value: object) -> bool:
    return isinstance(value, dict) and {*map(type, value.values())} <= _TEXT


def _numbers_by_name(value: object) -> bool:
    return isinstance(value, dict) and {*map(type, value.values())} <= NUMBERS


JSON_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "config": (lambda value: isinstance(value, dict), "an object"),
    "versions": (_texts_by_name, "an object of texts"),
    "constants": (_numbers_by_name, "an object of numbers"),
    "layer_changes": (_numbers_by_name, "an object of numbers"),
    "warnings": (_texts, "an array of texts"),
    "inputs": (_texts, "an array of texts"),
    "outputs": (_texts, "an array of texts"),
}
"""For each column of JSON: what its value must be, and that in words."""


def json_of(row: Mapping[str, Any], column: str) -> Any:
    """Return the value of a row's JSON column. Raises UserError when it is broken or of another shape."""
    is_right, words = JSON_KINDS[column]
    try:
        value = _DECODER.decode(row[column])
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"The journal's column {column} holds no JSON that a run writes ({str(error)[:200]}); restore the journal "
            "from a copy."
        ) from None
    if not is_right(value) or (is_right not in _SHALLOW and _is_deep(value)):
        raise UserError(f"The journal's column {column} does not hold {words}; restore the journal from a copy.")
    return value


def json_pairs(row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return a task's inputs and outputs. Raises UserError unless there are as many of each, and some."""
    inputs, outputs = json_of(row, "inputs"), json_of(row, "outputs")
    if len(inputs) != len(outputs) or not inputs:
        raise UserError("The journal has a task with inputs and outputs that do not match; restore it from a copy.")
    return inputs, outputs


def _finite(text: str) -> float:
    value = float(text)
    if not abs(value) <= LARGEST_REAL:
        raise ValueError(f"the number {text[:40]} is out of all bounds")
    return value


def _whole(text: str) -> int:
    if len(text) > 100:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _is_deep(value: object) -> bool:
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_JSON_DEPTH:
            return True
        parts = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        waiting += [(part, depth + 1) for part in parts]
    return False


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_finite)
_SHALLOW = frozenset({_texts, _texts_by_name, _numbers_by_name})
"""Kinds of value that leave no room for depth."""


@contextmanager
def naming_contradictions(what: object) -> Iterator[None]:
    """Turn what breaks while rows are put together into one sentence about the run that they come from.

    Rows that are right one by one may contradict each other in more ways than can be listed (a birth without a child, a
    step without its number), and a prepared journal must not hide other runs by raising an exception.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            f"The journal of {what} contradicts itself ({type(error).__name__}: {str(error)[:200]}); "
            "it was damaged or changed: restore it from a copy."
        ) from error
