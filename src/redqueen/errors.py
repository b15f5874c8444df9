"""Errors that the user can correct: one clear sentence, exit code 2, no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """Bad input. The message names the file, field or flag and says what to do about it."""


def first_fault(error: ValidationError) -> str:
    """Say the first thing that a validation found: the field, what is wrong, and what was given."""
    fault = error.errors()[0]
    place, message = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
    given = "" if fault["type"] in ("value_error", "missing") else f" (got {fault['input']!r})"
    return f"{place}: {message[0].lower()}{message[1:]}{given}" if place else message
