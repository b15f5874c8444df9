# ruff: noqa: E501
"""Run folders that an attacker may prepare: each function damages a copy of an honest one in one way."""

from __future__ import annotations

import itertools
import os
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

from redqueen.run.store import JOURNAL

BIDI = "\u202eevil\u202c\u200b\x1b[31m\u2028\U000e0041"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT {} FROM n"


def edit(folder: Path, *statements: str, schema: bool = False) -> None:
    """Change the journal with every guard of SQLite off."""
    connection = sqlite3.connect(folder / JOURNAL, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    if schema:
        connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def loosely(folder: Path, *statements: str) -> None:
    """Change rows with the tables' strictness taken away meanwhile, so that any value goes into any column."""
    with sqlite3.connect(folder / JOURNAL, isolation_level=None) as connection:
        before = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    version = ["PRAGMA writable_schema = ON"]
    edit(folder, *version, "UPDATE sqlite_schema SET sql = replace(replace(replace(replace(replace(sql, 'STRICT, ', ''), "
         "') STRICT', ')'), 'INTEGER', 'BLOB'), 'REAL', 'BLOB'), 'TEXT', 'BLOB') "
         "WHERE type = 'table' AND name NOT IN ('run', 'step', 'health', 'candidate', 'task', 'attempt', 'session')",
         "UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql, ') STRICT', ')'), 'INTEGER NOT', 'BLOB NOT'), "
         "'REAL', 'BLOB'), 'TEXT NOT', 'BLOB') WHERE type = 'table' "
         "AND name IN ('run', 'health', 'candidate', 'task', 'attempt', 'session')")  # fmt: skip
    edit(folder, *statements)
    connection = sqlite3.connect(folder / JOURNAL, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    for name, sql in before:
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?", (sql, name))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def as_view(table: str, columns: str) -> Callable[[Path], None]:
    """Put a view that never ends in the place of a table."""

    def spoil(folder: Path) -> None:
        edit(folder, f"ALTER TABLE {table} RENAME TO other", f"CREATE VIEW {table} AS {ENDLESS.format(columns)}")

    return spoil


def sql(*statements: str) -> Callable[[Path], None]:
    return lambda folder: edit(folder, *statements)


def loose(*statements: str) -> Callable[[Path], None]:
    return lambda folder: loosely(folder, *statements)


def header(at: int, content: bytes) -> Callable[[Path], None]:
    """Write bytes into the file."""

    def spoil(folder: Path) -> None:
        with (folder / JOURNAL).open("r+b") as file:
            file.seek(at)
            file.write(content)

    return spoil


def rollback_journal(folder: Path, names: Path | None) -> Path:
    """Put a hot rollback journal beside the journal, naming a super-journal (or none), and set the file's mode."""
    header(18, b"\x01\x01")(folder)
    path = folder / f"{JOURNAL}-journal"
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 1, 1, 512, 4096)
    content = head.ljust(512, b"\0")
    if names is not None:
        name = os.fsencode(names)
        checksum = sum(byte if byte < 128 else byte - 256 for byte in name) & 0xFFFFFFFF
        content += struct.pack(">I", (0x40000000 // 4096) + 1) + name + struct.pack(">II", len(name), checksum)
        content += bytes.fromhex("d9d505f920a163d7")
    path.write_bytes(content)
    return path


def _replaced(make: Callable[[Path], None], name: str = JOURNAL) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return spoil


def _same_page(folder: Path) -> None:
    edit(folder, "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'task') "
         "WHERE name = 'candidate'", schema=True)  # fmt: skip


def _endless_tree(folder: Path) -> None:
    """Make the tree of a table refer to one leaf through 12 levels of 200 pages each: rows without end."""
    connection = sqlite3.connect(folder / JOURNAL, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("CREATE TABLE filler (x)")
    for _ in range(14):
        connection.execute("INSERT INTO filler VALUES (zeroblob(4000))")
    connection.execute("DROP TABLE filler")
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'session'").fetchone()[0]
    num_pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute("INSERT INTO session (started_at_s) VALUES (1.0)")
    connection.close()
    with (folder / JOURNAL).open("r+b") as file:
        file.seek((root - 1) * 4096)
        leaf = file.read(4096)
        pages = [root, *range(num_pages + 1, num_pages + 13)]
        for page, child in itertools.pairwise(pages):
            cells = [struct.pack(">I", child) + bytes([1 + min(at, 126)]) for at in range(200)]
            start = 4096 - 5 * len(cells)
            head = struct.pack(">BHHHBI", 5, 0, len(cells), start, 0, child)
            pointers = b"".join(struct.pack(">H", start + 5 * at) for at in range(len(cells)))
            file.seek((page - 1) * 4096)
            file.write((head + pointers).ljust(start, b"\0") + b"".join(cells))
        file.seek((pages[-1] - 1) * 4096)
        file.write(leaf)
    header(28, struct.pack(">I", num_pages + 12))(folder)
    header(18, b"\x02\x02")(folder)


def _deep(folder: Path) -> None:
    edit(folder, f"UPDATE run SET config = '{'[' * 100_000}'")


PREPARED: dict[str, Callable[[Path], None]] = {
    "an endless view for the table task": as_view("task", "i AS seq, i AS id, i AS step, 'x' AS kind"),
    "an endless view for the table run": as_view("run", "1 AS id, 'x' AS name, 'x' AS arm, '1' AS rng_seed, '{}' AS config, '{}' AS versions"),
    "an endless view for the table metric": as_view("metric", "i AS step, 'x' AS name, 1.0 AS value"),
    "an endless view for the table step": as_view("step", "i AS step"),
    "a view beside the tables": sql("CREATE VIEW extra AS SELECT * FROM task"),
    "a trigger on step": sql("CREATE TRIGGER t BEFORE DELETE ON step BEGIN DELETE FROM run; END"),
    "a virtual table": sql("CREATE VIRTUAL TABLE extra USING fts5(x)"),
    "another table": sql("CREATE TABLE extra (x)"),
    "another index": sql("CREATE INDEX extra ON task (length(code))"),
    "statistics that mislead": sql("ANALYZE"),
    "a missing table": sql("DROP TABLE hall"),
    "a missing index": sql("DROP INDEX task_step"),
    "a column more": sql("ALTER TABLE session ADD COLUMN x INTEGER"),
    "a generated column that computes": sql("ALTER TABLE session ADD COLUMN x BLOB AS (zeroblob(1000000000))"),
    "two tables on one page": _same_page,
    "a schema of no sense": lambda folder: edit(folder, "UPDATE sqlite_schema SET sql = 'CREATE TABLE task(' WHERE name = 'task'", schema=True),
    "a schema whose names are no UTF-8": lambda folder: edit(folder, "UPDATE sqlite_schema SET name = cast(x'ec20' AS TEXT), sql = 'CREATE TABLE task(' WHERE name = 'task'", schema=True),
    "a seed that is no number": sql("UPDATE run SET rng_seed = 'no number'"),
    "a seed of other digits": sql("UPDATE run SET rng_seed = '٣'"),
    "a seed of many digits": sql("UPDATE run SET rng_seed = '" + "9" * 5000 + "'"),
    "a config that is broken": sql("UPDATE run SET config = '{'"),
    "a config that is a list": sql("UPDATE run SET config = '[]'"),
    "a config that is deep": _deep,
    "a config with NaN": sql("UPDATE run SET config = '{\"a\": NaN}'"),
    "a config with an infinite number": sql("UPDATE run SET config = '{\"a\": 1e999}'"),
    "a config with a number of 5,000 digits": sql("UPDATE run SET config = '{\"a\": " + "9" * 5000 + "}'"),
    "versions that are numbers": sql("UPDATE run SET versions = '{\"a\": 1}'"),
    "no row about the run": sql("DELETE FROM run"),
    "two rows about the run": sql("INSERT INTO run SELECT 2, name, arm, rng_seed, config, versions FROM run"),
    "a name of a million characters": sql("UPDATE run SET name = replace(hex(zeroblob(500000)), '0', 'x')"),
    "an infinite metric": sql("UPDATE metric SET value = 9e999"),
    "an enormous metric": sql("UPDATE metric SET value = 1e300"),
    "a metric that is text": loose("UPDATE metric SET value = 'many'"),
    "a metric that is bytes": loose("UPDATE metric SET value = x'00ff'"),
    "a text that is no UTF-8": loose("UPDATE OR REPLACE metric SET name = cast(x'fffe80' AS TEXT)"),
    "a step below zero": sql("UPDATE metric SET step = -5 WHERE step = 1"),
    "a step beyond all bounds": sql("INSERT INTO step VALUES (9223372036854775807)"),
    "a negative number of tasks": sql("UPDATE task SET seq = -seq"),
    "a role that is none": sql("UPDATE individual SET role = 'king'"),
    "a slot out of all bounds": sql("UPDATE individual SET slot = 9007199254740993"),
    "a text of 20 MB": sql("UPDATE run SET config = replace(hex(zeroblob(10000000)), '0', ' ')"),
    "tasks of a kind that is no name": sql("UPDATE task SET kind = 'code <x>'"),
    "inputs that are an object": sql("UPDATE task SET inputs = '{}'"),
    "inputs without outputs": sql("UPDATE task SET outputs = '[]'"),
    "warnings that are numbers": sql("INSERT OR REPLACE INTO health (step, warnings) VALUES (1, '[1]')"),
    "constants that are texts": sql("UPDATE birth SET constants = '{\"a\": \"b\"}'"),
    "a birth whose seed is no number": sql("UPDATE birth SET rng_seed = 'x'"),
    "ratings that are infinite": sql("UPDATE rating SET mu = -9e999"),
    "another application's file": header(68, b"\0\0\0\1"),
    "another schema version": header(60, b"\0\0\0\x63"),
    "a page size of none": header(16, b"\0\3"),
    "a file of zeros": _replaced(lambda path: path.write_bytes(bytes(100_000))),
    "an empty file": _replaced(lambda path: path.write_bytes(b"")),
    "half a file": lambda folder: os.truncate(folder / JOURNAL, os.path.getsize(folder / JOURNAL) // 2),
    "random pages": header(8192, os.urandom(40_000)),
    "a pipe for the journal": _replaced(os.mkfifo),
    "a folder for the journal": _replaced(os.mkdir),
    "a link to a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link to nothing": _replaced(lambda path: path.symlink_to("/nowhere/at-all")),
    "a pipe for the log": lambda folder: os.mkfifo(folder / f"{JOURNAL}-wal"),
    "a link for the log": lambda folder: (folder / f"{JOURNAL}-wal").symlink_to("/dev/zero"),
    "a link for the index of the log": lambda folder: (folder / f"{JOURNAL}-shm").symlink_to("/dev/zero"),
    "a rollback journal": lambda folder: rollback_journal(folder, None) and None,
    "a log of 2 GB": lambda folder: _sparse(folder / f"{JOURNAL}-wal", 2 << 30),
    "a tree without end": _endless_tree,
}  # fmt: skip
"""What must be told in a sentence wherever the spoilt part is read, and hide nothing else."""

ODD: dict[str, Callable[[Path], None]] = {
    "a log of no sense": lambda folder: (folder / f"{JOURNAL}-wal").write_bytes(os.urandom(50_000)) and None,
    "a pipe for the lock": lambda folder: os.mkfifo(folder / "lock"),
    "a link for the lock": lambda folder: (folder / "lock").symlink_to("/dev/zero"),
    "births in a circle": sql("UPDATE OR REPLACE parent SET parent = child", "UPDATE individual SET born_step = 0"),
    "a member that replaced itself": sql("UPDATE birth SET replaced = child"),
    "parents that are nobody": sql("UPDATE OR REPLACE parent SET parent = 'nobody'"),
    "attempts of nobody": sql("UPDATE attempt SET student = 'nobody'"),
    "no member": sql("DELETE FROM individual"),
    "no metric": sql("DELETE FROM metric"),
    "one step, far away": sql("UPDATE OR REPLACE step SET step = 9007199254740992 WHERE step = 1"),
    "a change without its interval": sql("UPDATE OR REPLACE evaluation SET low_frac = NULL, individual = 'change'"),
    "negative counts of attempts": sql("UPDATE task SET num_attempts = -3"),
    "places in text out of all bounds": sql("UPDATE attempt SET answer_at = 9007199254740992, answer_apart = NULL"),
    "matches with nobody": sql("UPDATE OR IGNORE match SET teacher = 'x', student = 'y'"),
    "texts that command": sql(
        *(f"UPDATE OR REPLACE {table} SET {column} = '{BIDI}'" for table, column in [
            ("run", "name"), ("run", "arm"), ("task", "code"), ("task", "message"), ("task", "behaviour"),
            ("task", "protection"), ("task", "behaviour_class"), ("candidate", "text"), ("candidate", "detail"),
            ("attempt", "text"), ("attempt", "detail"), ("attempt", "verdict"), ("birth", "operator"),
            ("individual", "operator"), ("evaluation", "suite"), ("candidate", "verdict"), ("attempt", "student")]),
        f"UPDATE OR REPLACE metric SET name = name || '{BIDI}'", f"UPDATE timing SET phase = phase || '{BIDI}'",
        *(f"UPDATE OR REPLACE {table} SET {column} = {column} || '{BIDI}'" for table, column in [
            ("individual", "id"), ("birth", "child"), ("parent", "child"), ("parent", "parent"), ("birth", "replaced"),
            ("match", "teacher"), ("match", "student"), ("task", "teacher"), ("task", "student"), ("rating", "individual"),
            ("candidate", "teacher"), ("candidate", "student"), ("task", "id"), ("candidate", "id")]),
        'UPDATE run SET config = \'{"a": "\\u202e"}\', versions = \'{"\\u202e": "\\u202e"}\'',
        'UPDATE task SET inputs = \'["\\u202e"]\', outputs = \'["\\ud800\\u202e"]\'',
        'UPDATE health SET warnings = \'["\\u202e"]\''),
}  # fmt: skip
"""What may be shown or refused, but must neither break a page nor wait."""


def _sparse(path: Path, num_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(num_bytes)
