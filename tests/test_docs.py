"""The documentation keeps up: what it names is there, its links lead somewhere, its blocks of code run.

A block of Python on a page is run, in order, in one fresh process a page; shell lines are parsed by the real command
line, and run where the block is marked so. The marks stand on the line before a block:

    <!-- not executed: REASON -->    Python that is not run
    <!-- slow: REASON -->            Python that only `make test-slow` runs
    <!-- executed -->                shell lines that are run
"""

import json
import re
import runpy
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
import typer.main
from processes import run_apart
from task_run import write_task_run

from redqueen.cli import _repeat_flags, app
from redqueen.config import Config
from redqueen.run.store import JOURNAL

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(p for f in ("docs", "experiments", "recipes") for p in (ROOT / f).rglob("*.md"))])
FOLDERS = ("src", "configs", "docs", "tests", "bench", "experiments", "recipes")
PACKAGE = ROOT / "src" / "redqueen"
ROOMS = "|".join(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
SHELLS = ("sh", "bash", "console", "shell")

BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
MARK = re.compile(r"<!-- (?:(not executed|slow): (\S[^\n]{8,})|(executed)) -->")
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?<![\w./-])redqueen ([a-z_]+)([^\n`|;&#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*")

DRIVER = """
import json, sys
namespace = {"__name__": "__main__"}
for kind, where, line, code in json.loads(sys.stdin.read()):
    if kind == "python":
        exec(compile("\\n" * (line - 1) + code, where, "exec"), namespace)
        continue
    from redqueen import cli
    sys.argv = ["redqueen", *code]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"{where}, line {line}: {code} ended with {end.code}")
"""
"""Runs the blocks of one page in one namespace, and shell lines through the command line's own entry."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line it begins on, and what the mark before it says (or "")."""

    language: str
    code: str
    line: int
    mark: str

    def commands(self) -> Iterator[list[str]]:
        """The arguments of each line that calls redqueen, without comments, pipes and redirections."""
        if self.language not in SHELLS:
            return
        for line in self.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words and words[0] in ("redqueen", ".venv/bin/redqueen"):
                end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";", "&")), len(words))
                yield words[1:end]


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCED.finditer(text):
        before = text[: fence.start()].rstrip("\n").rpartition("\n")[2]
        mark = MARK.fullmatch(before)
        line = text.count("\n", 0, fence.start(2)) + 1
        found.append(Block(fence[1], fence[2], line, (mark[1] or mark[3]) if mark else ""))
    return found


def code_of(text: str) -> list[str]:
    """Everything on a page that is set as code: blocks (line ends joined at a backslash), then spans."""
    blocks = [block.replace("\\\n", " ") for block in BLOCK.findall(text)]
    return [*blocks, *SPAN.findall(BLOCK.sub("", text))]


@cache
def commands() -> dict[str, set[str]]:
    """All commands with their options."""
    group = typer.main.get_command(app)
    found: dict[str, set[str]] = {}

    def walk(command: click.Command, name: str) -> None:
        found[name] = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for word, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {word}".strip())

    walk(group, "")
    return found


def pages(keep: Iterator[Path] | list[Path] = PAGES) -> list[object]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in keep]


def anchors_of(page: Path) -> set[str]:
    """What a link to a page may have behind its #, as the site makes it from the headings."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", pages())
def test_every_command_and_option_on_a_page_is_there(page: Path) -> None:
    for code in code_of(page.read_text(encoding="utf-8")):
        for name, rest in COMMAND.findall(code):
            known = name if name in commands() else name.split()[0]
            assert known in commands(), f"{page.name} names `redqueen {name}`"
            for option in OPTION.findall(rest):
                assert option in {*commands()[known], "--help"}, f"{page.name} names `redqueen {known} {option}`"


def test_the_notebook_runs_and_is_stored_without_outputs(tmp_path: Path) -> None:
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    blocks = [("python", "before", 1, "from redqueen.run import duration; duration.NUM_ROWS = 1")]  # few texts to time
    blocks += [("python", f"cell {number}", 1, "".join(cell["source"])) for number, cell in enumerate(code)]
    blocks.append(("python", "the end", 1, "print(repr(run.plot()), len(written[0]) > len(asked['input_ids'][0]))"))
    done = run_apart(DRIVER, given=json.dumps(blocks), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("Figures() True\n"), done.stderr[-2000:]


@pytest.mark.parametrize("page", pages())
def test_every_path_on_a_page_is_there(page: Path) -> None:
    for code in SPAN.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path = code.split(":")[0].strip()
        if path.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and not re.search(r"[\s<>*{…]", path):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        elif page.name != "CHANGELOG.md" and re.fullmatch(rf"({ROOMS})/[\w/]+\.py", path):
            assert (PACKAGE / path).exists(), f"{page.name} names {path}"


@pytest.mark.parametrize("page", pages())
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", pages([page for page in PAGES if page.is_relative_to(ROOT / "docs")]))
def test_a_page_that_the_wheel_carries_links_to_nothing_outside_its_folder(page: Path) -> None:
    for target, _ in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        inside = (page.parent / target).resolve().is_relative_to(ROOT / "docs") and not target.endswith(".py")
        assert inside or ":" in target, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", pages())
def test_every_make_target_on_a_page_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for code in code_of(page.read_text(encoding="utf-8")):
        for target in re.findall(r"(?:^|\s)make ([a-z][a-z-]*)\b(?!=)", code):
            assert target in targets, f"{page.name} names `make {target}`"


def test_the_paper_map_is_what_the_docstrings_of_the_config_say() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "write_paper_map.py"))["page"](text) == text


@pytest.mark.parametrize("docstring", ["Steps.", "Steps. Paper", "Steps. Theirs: 10.", "Ours."])
def test_a_field_without_a_ground_is_named(docstring: str) -> None:
    grounded = runpy.run_path(str(ROOT / "docs" / "write_paper_map.py"))["grounded"]
    with pytest.raises(ValueError, match=r"run\.num_steps ends with no ground"):
        grounded(docstring, "run.num_steps")


def test_the_paper_map_mentions_no_field_that_is_not_there() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    sections = {name: set(field.annotation.model_fields) for name, field in Config.model_fields.items()}
    named = (code.split(".") for code in SPAN.findall(text) if re.fullmatch(r"[a-z]+\.[a-z_0-9]+", code))
    unknown = [f"{s}.{f}" for s, f in named if s in sections and f not in sections[s] and f not in ("py", "md", "toml")]
    assert unknown == []


def test_the_readme_names_the_two_commands_that_matter() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in text and "make test" in text


def test_the_first_screen_of_the_readme_says_what_it_is_what_came_of_it_and_how_to_begin() -> None:
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45])
    assert screen.startswith("# redqueen\n") and "## Results" in screen and "2.9 million parameters" in screen
    assert "pip install ." in screen and "redqueen train smoke" in screen
    assert "(docs/images/report.png)" in screen and (ROOT / "docs/images/report.png").is_file()


# Blocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages())
def test_every_command_line_on_a_page_is_one(page: Path) -> None:
    for block in blocks_of(page):
        for words in block.commands():
            parse(words, f"{page.name}, line {block.line}")


def parse(words: list[str], where: str) -> None:
    """Let the real command line read these arguments; placeholders in capitals stand for anything."""
    command: click.Command = typer.main.get_command(app)
    words = [PLACEHOLDER.sub("1", word) if PLACEHOLDER.fullmatch(word) else word for word in _repeat_flags(words)]
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]  # type: ignore[attr-defined]
    assert not getattr(command, "commands", None) or words[:1] in ([], ["--help"], ["--version"]), f"{where}: {words}"
    if "--help" in words or "--version" in words:
        return
    try:
        command.make_context(command.name or "", list(words))
    except Exception as error:  # whichever the command line raises for its usage
        pytest.fail(f"{where}: redqueen {command.name} {words}: {error}")


def test_arguments_that_the_command_line_does_not_have_are_noticed() -> None:
    for wrong in (["trian"], ["train", "--dryrun"], ["breed", "--operator", "M1"]):
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            parse(wrong, "nowhere")
    parse(["train", "CONFIG", "--set", "run.rng_seed=1"], "nowhere")
    parse(["breed", "--operator", "X2", "--parents", "a", "b", "--out", "c"], "nowhere")


@pytest.mark.parametrize("page", pages())
def test_every_mark_before_a_block_has_a_form_and_a_reason(page: Path) -> None:
    prose = SPAN.sub("", BLOCK.sub("", page.read_text(encoding="utf-8")))
    comments = [comment[0] for comment in COMMENT.finditer(prose)]
    for comment in comments:
        assert MARK.fullmatch(comment), f"{page.name}: {comment} is no mark, or lacks its reason"
    marked = [block for block in blocks_of(page) if block.mark]
    assert len(marked) == len(comments), f"{page.name}: a mark stands before no block"
    for block in marked:
        assert block.mark != "slow" or block.language == "python", f"{page.name}, line {block.line}"
        assert block.mark != "executed" or list(block.commands()), f"{page.name}, line {block.line}"


def plan_of(page: Path, slow: bool) -> list[tuple[str, str, int, object]]:
    """What is run of a page, in order: (python, page, line, code) or (command, page, line, arguments)."""
    name, plan = str(page.relative_to(ROOT)), []
    for block in blocks_of(page):
        if block.language == "python" and (block.mark == "" or (slow and block.mark == "slow")):
            plan.append(("python", name, block.line, block.code))
        if block.mark == "executed":
            plan += [("command", name, block.line, words) for words in block.commands()]
    return plan


def run_page(page: Path, folder: Path, slow: bool) -> None:
    """Run a page's blocks in ``folder``, where there are the configs, the experiments and a small run to look at."""
    for name in ("configs", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    write_task_run(folder / "runs" / "population-0")
    done = run_apart(
        DRIVER,
        given=json.dumps(plan_of(page, slow)),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(folder)},
        timeout=900 if slow else 300,  # against a page that hangs; a crowded machine takes five minutes
    )
    assert done.returncode == 0, f"{page.name}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("page", pages([page for page in PAGES if plan_of(page, slow=False)]))
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages([p for p in PAGES if any(block.mark == "slow" for block in blocks_of(p))]))
def test_the_slow_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, slow=True)


def test_a_block_that_fails_is_noticed_with_its_page_and_line(tmp_path: Path) -> None:
    plan = [("python", "page.md", 3, "one = 1\n"), ("python", "page.md", 9, "two = 2\nassert one == two\n")]
    done = run_apart(DRIVER, given=json.dumps(plan))
    assert done.returncode == 1 and 'File "page.md", line 10' in done.stderr and "AssertionError" in done.stderr
    plan = [("command", "page.md", 4, ["breed", "--operator", "none"])]
    done = run_apart(DRIVER, given=json.dumps(plan))
    assert done.returncode == 1 and "page.md, line 4" in done.stderr


def test_every_query_on_a_page_runs_on_a_journal(tmp_path: Path) -> None:
    journal = write_task_run(tmp_path / "run") / JOURNAL
    queries = [(page, block) for page in PAGES for block in blocks_of(page) if block.language == "sql"]
    assert len(queries) >= 5
    with sqlite3.connect(journal) as connection:
        answered = {(page.name, block.line): len(connection.execute(block.code).fetchall()) for page, block in queries}
    assert sum(num_rows > 0 for num_rows in answered.values()) >= 3, answered


# The whole -----------------------------------------------------------------------------------------------------


def test_every_command_is_mentioned_on_a_page_that_is_not_generated() -> None:
    mentioned = set()
    for page in (page for page in PAGES if page.name != "cli.md"):
        spans = [name for code in code_of(page.read_text(encoding="utf-8")) for name, _ in COMMAND.findall(code)]
        lines = [" ".join(words[:2]) for block in blocks_of(page) for words in block.commands()]
        mentioned |= {*spans, *lines, *(text.split()[0] for text in (*spans, *lines) if text)}
    assert [name for name in commands() if name and name not in mentioned] == []


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) >= len(list((ROOT / "docs").rglob("*.md")))
    elsewhere = r"=[\"']?(?:https?:)?//"
    loaded = re.compile(rf"<(?:script|img|iframe|source)\b[^>]*\bsrc{elsewhere}|<link\b[^>]*\bhref{elsewhere}")
    for page in built:
        assert not loaded.search(page.read_text(encoding="utf-8")), page.name
    assert not list((tmp_path / "site").rglob("*.py"))
