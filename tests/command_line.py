"""Command lines in a test: one in this process, or several in a fresh one that tells what they imported."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from redqueen import cli

FRESH = """
import contextlib, io, json, sys
from redqueen.cli import main
seen = []
for line in json.loads(sys.argv[1]):
    sys.argv = ["redqueen", *line]
    out, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(out):
            main()
    except SystemExit as stop:
        code = stop.code or 0
    seen.append([code, out.getvalue(), [name for name in ("torch", "transformers") if name in sys.modules]])
print(json.dumps(seen))
"""


class Told(NamedTuple):
    """What one command line came to in a fresh process."""

    code: int
    out: str
    heavy: list[str]
    """Those of torch and transformers that had been imported by its end."""


def redqueen(*words: str | Path) -> tuple[int, str, str]:
    """Run ``redqueen WORDS`` in this process; return exit code, standard output and standard error."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["redqueen", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def redqueen_afresh(
    *lines: list[str], given: str = "", cwd: Path | None = None, env: dict[str, str] | None = None
) -> list[Told]:
    """Run command lines one after the other in one new process, which reads ``given`` on its standard input."""
    command = [sys.executable, "-c", FRESH, json.dumps(lines)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=cwd, env=env)
    sys.stderr.write(done.stderr)  # shown when a test fails
    assert done.returncode == 0
    return [Told(*one) for one in json.loads(done.stdout)]
