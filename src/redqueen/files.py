"""Files: TOML that users write, explained where it is wrong; files and folders written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from redqueen.errors import UserError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to ``path``, replacing what was there; as ``writing_whole`` does."""
    with writing_whole(path) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write that takes its place when the block ends well; after a crash it is the old or the new.

    It is written beside the place, flushed to the disk and renamed. A device or a pipe is written to as it stands.
    Raises OSError when it cannot be written; what was there before is then untouched.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    aside = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


@contextmanager
def making_folder(path: Path) -> Iterator[Path]:
    """Give a folder to fill that takes its place at ``path`` when the block ends well, and is gone when it does not.

    Raises OSError when it cannot be written, or when ``path`` is there already and not an empty folder.
    """
    aside = path.with_name(f".{path.name}.making-{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        yield aside
        aside.replace(path)
        flush_to_disk(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # gone already when all went well


@contextmanager
def naming_another_file(what: str) -> Iterator[None]:
    """Raise UserError, with the remedy, when ``what`` a command was to write cannot be written in this block."""
    try:
        yield
    except OSError as error:
        raise UserError(f"Cannot write {what}: {error.strerror}; name another file with --out.") from error


def flush_to_disk(path: Path) -> None:
    """Ask the disk to hold what was written to a file or a folder before anything else happens."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
    *parts, last = name.strip().split(".")
    if not equals or not parts or not all((*parts, last)):
        raise UserError(f"--set {override}: write it as section.field=value, for example --set run.num_steps=50")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    section = data
    for at, part in enumerate(parts):
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise UserError(f"--set {override}: {'.'.join(parts[: at + 1])} is not a section")
    section[last] = value
