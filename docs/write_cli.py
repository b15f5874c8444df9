"""Write docs/cli.md from the command line's own definitions; a test holds the two together.

.venv/bin/python docs/write_cli.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click
import typer.main

from redqueen.cli import app

PAGE = Path(__file__).parent / "cli.md"

HEAD = """# The command line: every command, its options, exit codes

This page is written by `docs/write_cli.py` from the commands themselves.

## Exit codes

| code | means |
|---|---|
| 0 | done |
| 1 | `diff` or `replay --judge` found a difference, `doctor` or `validate` a fault, `train` or `resume` no task |
| 2 | a mistake in what was given, or a full disk: a sentence on standard error names it and the remedy |
| 130 | stopped by Ctrl-C or SIGTERM; what was begun can be resumed |
| 141 | whoever read the output went away |

## Habits

- `train` and `resume` end with a checkpoint at the first Ctrl-C or SIGTERM, and at once at the second. A step that
  has begun to learn is finished first, an earlier one dropped.
- Progress goes to standard error: a changing block with the time left on a terminal, one line a step and every ten
  seconds everywhere else, and under `NO_COLOR` or `TERM=dumb`.
- Where other programs keep the cores busy, threads of numeric work sleep while they wait instead of spinning
  (`OMP_WAIT_POLICY=PASSIVE`); set `OMP_WAIT_POLICY` to decide yourself.
- `--json` prints JSON in plain ASCII: an object or an array; `tasks` prints one object a line.
- What a model wrote is shown with control and bidi characters written out; nothing in it moves a cursor.
- In a CSV table, a text that begins with `=`, `+`, `-`, `@`, a tab or a line end gets an apostrophe in front, since a
  spreadsheet would calculate it; NULL is an empty cell. Parquet (extra `parquet`) keeps everything as it is.
- `redqueen --install-completion` completes commands and options in the shell.

## Commands
"""


def page() -> str:
    """Return the page as markdown."""
    group = typer.main.get_command(app)
    return HEAD + "".join(section for name, command in _commands(group, "") for section in _section(name, command))


def _commands(group: click.Command, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for word, command in getattr(group, "commands", {}).items():
        name = f"{prefix} {word}".strip()
        if getattr(command, "commands", None):
            yield from _commands(command, name)
        else:
            yield name, command


def _section(name: str, command: click.Command) -> Iterator[str]:
    arguments = [p for p in command.params if isinstance(p, click.Argument) or p.param_type_name == "argument"]
    options = [p for p in command.params if p not in arguments and p.name != "help"]
    words = " ".join(_argument(p) for p in arguments)
    yield f"\n### {name}\n\n{inspect.cleandoc(command.help or '')}\n"
    yield f"\n```text\nredqueen {name}{f' {words}' if words else ''}{' [OPTIONS]' if options else ''}\n```\n"
    if command.params and (arguments or options):
        yield "\n| | default | |\n|---|---|---|\n"
    for parameter in (*arguments, *options):
        label = _argument(parameter) if parameter in arguments else ", ".join(parameter.opts)
        yield f"| `{label}` | {_default(parameter)} | {_cell(getattr(parameter, 'help', '') or '')} |\n"


def _argument(parameter: click.Parameter) -> str:
    name = (parameter.name or "").upper()
    name = f"{name}..." if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _default(parameter: click.Parameter) -> str:
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        return ""
    value = parameter.default
    return "" if callable(value) or value in (None, "", (), []) or "UNSET" in repr(value) else f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
