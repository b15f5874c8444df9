"""TOML files that users write, and ``section.field=value`` on the command line: what cannot be read is explained."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from redqueen.errors import UserError


def read_toml(path: Path, what: str, example: str) -> dict[str, Any]:
    """Read a TOML file. Raises UserError that says what is wrong with it.

    ``what`` the file holds and an ``example`` of a path stand in the sentence for a file that is not there.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no {what} file at {path}: give a path such as {example}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}): give a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one ``section.field=value`` in ``data``; the value is read as TOML, or as text when it is none.

    Raises UserError when it is not written so.
    """
    name, equals, text = override.partition("=")
    parts = name.strip().split(".")
    if not equals or len(parts) != 2 or not all(parts):
        raise UserError(f"--set {override}: write it as section.field=value, for example --set run.num_steps=50")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    section = data.setdefault(parts[0], {})
    if not isinstance(section, dict):
        raise UserError(f"--set {override}: {parts[0]} is not a section")
    section[parts[1]] = value
