"""The error that a user can correct. ``redqueen.errors`` hands it on, so a program that uses both catches one class."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message names the file, field or flag and says what to do about it."""
