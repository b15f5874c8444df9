"""Files: TOML with readable errors, atomic writes of files and folders, and safe reads of untrusted files."""

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
"""Maximum size of a JSON or text file of a run or an adapter that is read."""

MAX_TOML_BYTES, MAX_TOML_DEPTH = 1 << 20, 16
"""Maximum size of a TOML file, and maximum nesting of its tables and lists (ours)."""


def open_plain(path: Path, max_bytes: int) -> BufferedReader:
    """Open an untrusted file for reading.

    Raises FileNotFoundError when it does not exist, and UserError when it is a link, a pipe, a device or a folder, or
    larger than ``max_bytes``; it never follows a link or waits for a pipe.
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
    """Return the text of an untrusted file. Raises as ``open_plain`` does, and UserError when it is not UTF-8."""
    with open_plain(path, max_bytes) as file:
        try:
            return file.read(max_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8 text ({error}): restore it from a copy") from None


def open_data(path: Path, errors: str = "strict") -> TextIO:
    """Open a text file of data, gzipped or not (whatever its name is); a byte-order mark is skipped."""
    zipped = False
    if path.is_file():  # a pipe can be read only once
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors)
    return path.open(encoding="utf-8-sig", errors=errors)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to ``path`` atomically, replacing an existing file: see ``writing_whole``."""
    with writing_whole(path) as file:
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block ends without an error; a crash leaves the old or the new file.

    It is written in the same folder, flushed to the disk and renamed. A device or a pipe is written to directly.
    Raises OSError when it cannot be written; the old file is then unchanged.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    temporary = path.with_name(f".{path.name}.writing-{secrets.token_hex(8)}")  # so no link can be there
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


@contextmanager
def making_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill; it is renamed to ``path`` when the block ends without an error, and removed otherwise.

    Raises OSError when it cannot be written, when ``path`` exists and is not an empty folder, and when ``path`` is the
    current folder.
    """
    if not path.name:
        raise OSError(errno.EBUSY, "a folder to be made needs a name")
    temporary = path.with_name(f".{path.name}.making-{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in (one for one in temporary.rglob("*") if one.is_file() and not one.is_symlink()):
            file.chmod(temporary.stat().st_mode & 0o666)  # safetensors makes files readable by their owner only
        temporary.replace(path)
        flush_to_disk(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after success it no longer exists


@contextmanager
def naming_remedy(
    problem: str, remedy: str = "choose another place", errors: tuple[type[Exception], ...] = (OSError,)
) -> Iterator[None]:
    """Turn ``errors`` raised in this block into a UserError: the problem, the system's reason and the remedy."""
    try:
        yield
    except errors as error:
        raise UserError(f"{problem} ({getattr(error, 'strerror', None) or error}): {remedy}") from None


def flush_to_disk(path: Path) -> None:
    """Flush what was written to a file or a folder to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_toml(path: Path, what: str, example: str) -> dict[str, Any]:
    """Read a TOML file. Raises UserError that says what is wrong with it.

    The error for a missing file names ``what`` the file should contain and an ``example`` of a path.
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
    """Parse TOML. Raises ValueError when it is not valid, or nested more than ``MAX_TOML_DEPTH`` deep."""
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
    """Return a value that was read from TOML as TOML text, with inline tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {as_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one ``section.field=value`` in ``data``; the value is parsed as TOML, or taken as text if it is not TOML.

    Raises UserError when ``override`` does not have this form.
    """
    name, equals, text = override.partition("=")
    *parts, last = name.strip().split(".")
    if not equals or not 0 < len(parts) < MAX_TOML_DEPTH or not all((*parts, last)):
        raise UserError(f"--set {override:.200}: write it as section.field=value, for example --set run.num_steps=50")
    try:
        parsed = parse_toml(f"value = {text}")
        value = parsed["value"] if len(parsed) == 1 else text.strip()
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
    """Return a section with its unknown fields ``num_NAME_X`` moved into ``num_proposals`` as ``NAME_X``."""
    read: dict[str, Any] = {}
    for name, value in section.items():
        old = re.fullmatch(r"num_(\w+_\w)", name)
        new, found = ("num_proposals", {old[1]: value}) if old and name not in known else (name, value)
        both = isinstance(read.get(new), dict) and isinstance(found, dict)
        read[new] = {**read[new], **found} if both else found
    return read
