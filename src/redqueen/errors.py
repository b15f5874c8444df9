"""Errors that are the user's to mend: one clear sentence, exit code 2, no traceback."""


class UserError(Exception):
    """Bad input. The message names the file, field or flag and says what to do about it."""
