"""Files: TOML with readable errors; files and folders written as a whole or not at all; and
read only when they are plain files of a sane size, without waiting."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import secrets
import shutil
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from redqueen.errors import UserError

MAX_TEXT_BYTES = 64 << 20
"""Largest JSON or text file of a run or an adapter that is read."""

MAX_TOML_BYTES, MAX_TOML_DEPTH = 1 << 20, 16
"""Largest TOML file, and most tables and lists within each other in it (ours)."""


def open_plain(path: Path, max_bytes: int) -> BufferedReader:
    """Open a file for reading that may be untrusted.

    Raises FileNotFoundError when it is not there, and UserError when it is a link, a pipe, a device or a folder, or
    larger than ``max_bytes``: none of these is followed, waited for or read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.islink(path):
            raise UserError(f"{path} is a link; put the file itself there") from None
        raise UserError(f"{path} may not be read: ask for permission to read it ({error.strerror})") from None
    found = os.fstat(descriptor)
    problem = ""
    if not stat.S_ISREG(found.st_mode):
        problem = "is not a regular file; put the file itself there"
    elif found.st_size > max_bytes:
        problem = f"has {found.st_size:,} bytes, and at most {max_bytes:,} are read; give the original file"
    if problem:
        os.close(descriptor)
        raise UserError(f"{path} {problem}")
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the text of such a file. Raises as ``open_plain`` does, and UserError when it is not UTF-8."""
    with open_plain(path, max_bytes) as file:
        try:
            return file.read(max_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8 text ({error}): restore it from a copy") from None


def open_data(path: Path, errors: str = "strict") -> TextIO:
    """Open a text file of data, gzipped or not whatever its name says; a byte-order mark is left out."""
    zipped = False
    if path.is_file():  # a pipe can be read only once
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors)
    return path.open(encoding="utf-8-sig", errors=errors)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to ``path``, replacing what was there; as ``writing_whole`` does."""
    with writing_whole(path) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block ends without an error; a crash leaves the old or the new.

    It is written in the same folder, flushed to the disk and renamed. A device or a pipe is written to directly.
    Raises OSError when it cannot be written; what was there before is then untouched.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    aside = path.with_name(f".{path.name}.writing-{secrets.token_hex(8)}")  # so no link can be there
    try:
        with aside.open("xb") as file:
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
    """Yield a folder to fill; it is renamed to ``path`` when the block ends without an error, and removed otherwise.

    Raises OSError when it cannot be written, when ``path`` is there already and not an empty folder, and when it is the
    current one, which would then be replaced by another.
    """
    if not path.name:
        raise OSError(errno.EBUSY, "a folder to be made needs a name")
    aside = path.with_name(f".{path.name}.making-{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        yield aside
        for file in (one for one in aside.rglob("*") if one.is_file() and not one.is_symlink()):
            file.chmod(aside.stat().st_mode & 0o666)  # safetensors lets nobody else read its files
        aside.replace(path)
        flush_to_disk(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # gone already when all went well


@contextmanager
def naming_remedy(
    problem: str, remedy: str = "choose another place", errors: tuple[type[Exception], ...] = (OSError,)
) -> Iterator[None]:
    """Raise UserError, the problem with the system's reason and the remedy, for one of ``errors`` in this block."""
    try:
        yield
    except errors as error:
        raise UserError(f"{problem} ({getattr(error, 'strerror', None) or error}): {remedy}") from None


def flush_to_disk(path: Path) -> None:
    """Ask the disk to hold what was written to a file or a folder before anything else happens."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_toml(path: Path, what: str, example: str) -> dict[str, Any]:
    """Read a TOML file. Raises UserError that says what is wrong with it.

    ``what`` the file holds and an ``example`` of a path are named in the error for a missing file.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_TOML_BYTES + 1)
        if len(text) > MAX_TOML_BYTES:
            raise UserError(f"{path} has more than {MAX_TOML_BYTES:,} bytes: give a TOML file of a {what}")
        return parse_toml(text.decode("utf-8-sig"))
    except FileNotFoundError:
        raise UserError(f"no {what} file at {path}: give a path such as {example}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}): give a TOML file") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError when it is not valid, and when it is nested more than ``MAX_TOML_DEPTH`` deep."""
    too_deep = f"tables and lists are nested more than {MAX_TOML_DEPTH} deep"
    try:
        data = tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise ValueError(too_deep) from None
    level: list[Any] = [data]
    for _ in range(MAX_TOML_DEPTH):
        inside = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        if not (level := [part for part in inside if isinstance(part, dict | list)]):
            return data
    raise ValueError(too_deep)


def as_toml(value: object) -> str:
    """Return a value out of a TOML file as one: tables in a line; what no field takes, such as a date, as it is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {as_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one ``section.field=value`` in ``data``; the value is read as TOML, or as text when it is none.

    Raises UserError when it is not written so.
    """
    name, equals, text = override.partition("=")
    *parts, last = name.strip().split(".")
    if not equals or not 0 < len(parts) < MAX_TOML_DEPTH or not all((*parts, last)):
        raise UserError(f"--set {override:.200}: write it as section.field=value, for example --set run.num_steps=50")
    try:
        data_of_it = parse_toml(f"value = {text}")
        value = data_of_it["value"] if len(data_of_it) == 1 else text.strip()
    except ValueError as error:
        if not isinstance(error, tomllib.TOMLDecodeError):
            raise UserError(f"--set {override:.200}: {error}") from None
        value = text.strip()
    section = data
    for at, part in enumerate(parts):
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise UserError(f"--set {override}: {'.'.join(parts[: at + 1])} is not a section")
    section[last] = value


def by_kind(section: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return a section with its unknown fields ``num_NAME_X`` as entries ``NAME_X`` of ``num_proposals``."""
    read: dict[str, Any] = {}
    for name, value in section.items():
        old = re.fullmatch(r"num_(\w+_\w)", name)
        new, found = ("num_proposals", {old[1]: value}) if old and name not in known else (name, value)
        both = isinstance(read.get(new), dict) and isinstance(found, dict)
        read[new] = {**read[new], **found} if both else found
    return read
