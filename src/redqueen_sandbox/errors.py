"""The error that a user can correct. ``redqueen.errors`` re-exports it, so both packages raise the same class."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message names the file, field or flag and says what to do about it."""
