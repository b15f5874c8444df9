"""The frozen held-out suite: functions on disk, and the three tasks (code_o, code_i, code_f) made from each.

A suite file is JSONL, one function per line: ``id`` ("suite/name"), ``level`` (difficulty, a whole number), ``tags``,
``code``, ``input`` and ``output``, ``io_inputs`` and ``io_outputs`` (ten pairs), ``message``. Inputs are argument lists
and outputs literals; both are made canonical on reading, as by the verifier. ``suites/CHECKSUMS`` (as sha256sum writes
it) freezes the shipped files: no run trains or selects on them, and results of different runs are comparable only while
the files do not change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, TypeAdapter, ValidationError

from redqueen.domains.domain import Item
from redqueen.domains.rows import Row, frozen_files, rows_of_file
from redqueen.errors import UserError, first_fault
from redqueen.records import Task
from redqueen_sandbox.literals import canonical, canonical_args

SUITES = Path(__file__).parent / "suites"
KINDS = ("code_o", "code_i", "code_f")
NUM_PAIRS = 10
NUM_SHOWN = 5
"""Pairs of a ``code_f`` task, and how many of them the solver sees (AZR: ten, the first half)."""

Value = Annotated[str, AfterValidator(canonical)]
Arguments = Annotated[str, AfterValidator(canonical_args)]
"""Texts, made canonical on reading."""


@dataclass(frozen=True)
class Function:
    """One held-out function with what the tasks need. ``id`` is "suite/name"; ``level`` is its difficulty."""

    id: str
    level: int
    tags: tuple[str, ...]
    code: str
    input: Arguments
    output: Value
    io_inputs: tuple[Arguments, ...]
    io_outputs: tuple[Value, ...]
    message: str


_FUNCTION = TypeAdapter(Function)


def load_suite(folder: Path = SUITES, kinds: Sequence[str] = KINDS) -> list[Item]:
    """Load every suite that ``CHECKSUMS`` lists, verified against it, in its order.

    Raises UserError when a file is missing, has changed, or cannot be read.
    """
    return [item for path in frozen_files(folder) for item in build_items(load_functions(path), kinds)]


def load_functions(path: Path) -> list[Function]:
    """Read one suite file. Raises UserError naming the file, the line and the field that is wrong."""
    functions: dict[str, Function] = {}
    for row in rows_of_file(path):
        function = _read_function(row)
        if function.id in functions:
            raise UserError(f"{row.where}: the id {function.id} was used before; give every function its own id.")
        functions[function.id] = function
    return list(functions.values())


def build_items(functions: Iterable[Function], kinds: Sequence[str] = KINDS) -> list[Item]:
    """Make one task of every kind from every function: items of a function are adjacent."""
    return [_item(function, kind) for function in functions for kind in kinds]


def _item(function: Function, kind: str) -> Item:
    pairs = kind == "code_f"
    item_id = f"{function.id}/{kind}"
    task = Task(
        id=item_id,
        teacher="",
        student="",
        kind=kind,
        code=function.code,
        inputs=function.io_inputs if pairs else (function.input,),
        outputs=function.io_outputs if pairs else (function.output,),
        message=function.message if pairs else "",
        num_shown=NUM_SHOWN if pairs else 0,
    )
    stratum = f"{function.id.split('/')[0]}/{function.level}"
    return Item(id=item_id, cluster=function.id, stratum=stratum, kind=kind, task=task)


def _read_function(row: Row) -> Function:
    try:
        function = _FUNCTION.validate_json(json.dumps(row.fields), strict=True)
    except ValidationError as error:
        raise UserError(f"{row.where}: the field {first_fault(error)}; correct it.") from None
    if "/" not in function.id:
        raise UserError(f"{row.where}: the id must have the form suite/name, got {function.id!r}; correct it.")
    inputs, outputs = function.io_inputs, function.io_outputs
    if not len(inputs) == len(outputs) == len(set(inputs)) == NUM_PAIRS:
        raise UserError(f"{row.where}: io_inputs must hold {NUM_PAIRS} different inputs and io_outputs their outputs.")
    return function
