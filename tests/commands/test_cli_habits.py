"""Habits of the command line: quick help, completion, exit codes, a page that agrees with the commands, no torch."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import redqueen, redqueen_afresh
from task_run import write_task_run

from redqueen import __version__, cli
from redqueen.errors import UserError

ROOT = Path(__file__).parents[2]
LONG = "a" * 300
MAIN = "from redqueen.cli import main; main()"


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "write_cli.py"))["page"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == written, "run: python docs/write_cli.py"


def test_help_is_quick_since_it_imports_nothing_that_is_slow_to_import() -> None:
    slow = {"torch", "transformers", "numpy", "pydantic", "jinja2", "starlette", "scipy", "sqlite3", "redqueen.config"}
    told = f"import atexit, sys; atexit.register(lambda: print(*sorted({slow} & {{*sys.modules}}), file=sys.stderr)); "
    done = subprocess.run([sys.executable, "-c", told + MAIN, "--help"], capture_output=True, text=True, check=True)
    assert done.stderr.split() == [] and "train" in done.stdout


def complete(words: str) -> list[str]:
    """What the shell is offered for the last word of a line."""
    env = {"_REDQUEEN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    program = "import sys; sys.argv[0] = 'redqueen'; " + MAIN
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_the_shell_completes_commands_and_options() -> None:
    assert complete("redqueen res") == ["resume"]
    assert complete("redqueen replay --ju") == ["--judge"]


def test_the_package_is_a_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "redqueen", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"redqueen {__version__}\n"


def test_the_doctor_writes_one_block_for_a_bug_report_that_names_nobody() -> None:
    _, out, _ = redqueen("doctor", "--copy")
    lines = out.strip().splitlines()
    assert (lines[0], lines[-1]) == ("```text", "```") and lines[1].startswith("system: Linux")
    assert any(line.startswith("ok   redqueen: ") for line in lines)
    assert str(Path.home()) not in out and str(ROOT) not in out


def test_commands_that_only_read_the_journal_import_no_torch(tmp_path: Path) -> None:
    folder = str(write_task_run(tmp_path / "small"))
    lines = [
        ["tasks", folder],
        ["replay", folder, "--task", "1-T1-0", "--judge"],
        ["report", folder, "--table", "task"],
        ["diff", folder, folder],
    ]
    told = redqueen_afresh(*lines)
    assert [(one.code, one.heavy) for one in told] == [(0, [])] * len(lines)


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (UserError("the field is wrong: mend it"), 2, "redqueen: the field is wrong: mend it"),
        (KeyboardInterrupt(), 130, "redqueen: stopped"),
    ],
)
def test_failures_end_with_the_documented_codes(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int, said: str
) -> None:
    def fail(args: list[str]) -> None:
        raise failure

    monkeypatch.setattr(cli, "app", fail)
    assert redqueen() == (code, "", f"{said}\n")
    assert f"\n| {code} |" in (ROOT / "docs" / "cli.md").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("words", [["init", "smoke"], ["--version"]], ids=["much", "little"])
def test_a_full_disk_behind_the_output_is_one_sentence(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", MAIN, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "redqueen: the output cannot be written (No space left on device): free some space\n"


@pytest.mark.parametrize(
    "words",
    [
        ["report", LONG],
        ["train", LONG],
        ["train", "smoke", "--run-dir", LONG],
        ["train", "smoke", "--dry-run", "--set", f"model.base={LONG}"],
        ["evaluate", "base", "--suite", "mini", "--data", LONG],
    ],
    ids=["a run", "a config", "a new run", "a base", "a suite"],
)
def test_a_name_longer_than_a_file_may_have_is_one_sentence(words: list[str]) -> None:
    code, out, said = redqueen(*words)
    assert (code, out) == (2, "")
    assert re.fullmatch(
        r"redqueen: (\S{80}\.\.\.: File name too long|model\.base is a+, .* no such folder): give .*\n", said
    )


@pytest.mark.parametrize(
    ("load", "already", "asked"), [(0.4, None, None), (1.7, None, "PASSIVE"), (9.0, "ACTIVE", "ACTIVE")]
)
def test_threads_do_not_spin_where_other_programs_want_the_cores(
    load: float, already: str | None, asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(cli, "app", lambda args: None)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if already is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", already)
    assert redqueen("train", "smoke") == (0, "", "")
    assert os.environ.get("OMP_WAIT_POLICY") == asked
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)


def test_who_reads_the_output_may_leave(tmp_path: Path) -> None:
    folder = write_task_run(tmp_path / "small")
    words = [sys.executable, "-c", MAIN, "tasks", str(folder), "--json", "--limit", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Traceback" not in said
