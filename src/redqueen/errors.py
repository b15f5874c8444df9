"""Errors that the user can correct: one clear sentence, exit code 2, no traceback."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from redqueen_sandbox.errors import UserError as UserError

if TYPE_CHECKING:
    from pydantic import ValidationError


def command(*words: object) -> str:
    """Return ``redqueen WORDS`` as it can be pasted into a shell, also when a word is a path with spaces."""
    return shlex.join(["redqueen", *map(str, words)])


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of redqueen."""
    return f"pip install 'redqueen[{extra}]'"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or the name of its type if it has no text."""
    return [*str(error).strip().splitlines(), type(error).__name__][0]


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a validation: the field, what is wrong, and the given value."""
    fault = error.errors()[0]
    place, message = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
    given = "" if fault["type"] in ("value_error", "missing") else f" (got {fault['input']!r})"
    return f"{place}: {message[0].lower()}{message[1:]}{given}" if place else message
