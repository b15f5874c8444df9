"""What the shell completes: the values that a command takes, found only when a shell asks for them."""

from __future__ import annotations

from pathlib import Path

import typer


def presets(incomplete: str) -> list[str]:
    """Return presets by name; where none begins so, the shell goes on with files."""
    from redqueen.config.load import presets as known

    return _beginning(incomplete, known())


def fields(incomplete: str) -> list[str]:
    """Return ``section.field=`` of the config."""
    from redqueen.config import Config

    sections = {name: field.annotation for name, field in Config.model_fields.items() if field.annotation}
    names = (f"{section}.{field}=" for section, kind in sections.items() for field in kind.model_fields)
    return _beginning(incomplete, names)


def operators(incomplete: str) -> list[str]:
    """Return the ids of the evolutionary operators."""
    from redqueen.config import OPERATORS

    return _beginning(incomplete, OPERATORS)


def suites(incomplete: str) -> list[str]:
    """Return the names of the benchmarks."""
    from redqueen.evaluate.benchmarks import SUITES

    return _beginning(incomplete, SUITES)


def members(context: typer.Context, incomplete: str) -> list[str]:
    """Return who lives in the run that the line names, by its journal."""
    from redqueen.errors import UserError
    from redqueen.journal import Journal, read
    from redqueen.run.store import JOURNAL

    written = [context.params.get("run_dir"), *context.args]  # on an unfinished line it is not bound yet
    folder = next((Path(str(word)) for word in written if word), Path())
    try:
        with Journal.open(folder / JOURNAL, read_only=True) as journal:
            alive = [row["id"] for row in read.individuals(journal) if row["left_step"] is None]
    except UserError:
        return []
    return _beginning(incomplete, alive)


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of task."""
    from redqueen.domains.registry import kinds as known

    return _beginning(incomplete, known())


def tables(incomplete: str) -> list[str]:
    """Return the tables of a journal."""
    from redqueen.journal.known import known_tables

    return _beginning(incomplete, known_tables())


def _beginning(incomplete: str, words: object) -> list[str]:
    return [str(word) for word in words if str(word).startswith(incomplete)]  # type: ignore[attr-defined]
