"""The documentation keeps up: commands, options, paths, links and config fields that it names are there."""

import re
from functools import cache
from pathlib import Path

import click
import pytest
import typer.main

from redqueen.cli import app
from redqueen.config import Config

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").rglob("*.md")])
FOLDERS = ("src", "configs", "docs", "tests", "bench", "experiments")

BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?<![\w./-])redqueen ((?:tiny )?[a-z_]+)([^\n`|;&#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def code_of(text: str) -> list[str]:
    """Everything on a page that is set as code: blocks (line ends joined at a backslash), then spans."""
    blocks = [block.replace("\\\n", " ") for block in BLOCK.findall(text)]
    return [*blocks, *SPAN.findall(BLOCK.sub("", text))]


@cache
def commands() -> dict[str, set[str]]:
    """All commands, as ``tiny train``, with their options."""
    group = typer.main.get_command(app)
    found: dict[str, set[str]] = {}

    def walk(command: click.Command, name: str) -> None:
        found[name] = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for word, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {word}".strip())

    walk(group, "")
    return found


def pages() -> list[object]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES]


@pytest.mark.parametrize("page", pages())
def test_every_command_and_option_on_a_page_is_there(page: Path) -> None:
    for code in code_of(page.read_text(encoding="utf-8")):
        for name, rest in COMMAND.findall(code):
            known = name if name in commands() else name.split()[0]
            assert known in commands(), f"{page.name} names `redqueen {name}`"
            for option in OPTION.findall(rest):
                assert option in {*commands()[known], "--help"}, f"{page.name} names `redqueen {known} {option}`"


@pytest.mark.parametrize("page", pages())
def test_every_path_on_a_page_is_there(page: Path) -> None:
    for code in SPAN.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        path = code.split(":")[0].strip()
        if path.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and not re.search(r"[\s<>*{…]", path):
            assert (ROOT / path).exists(), f"{page.name} names {path}"


@pytest.mark.parametrize("page", pages())
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", pages())
def test_every_make_target_on_a_page_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for code in code_of(page.read_text(encoding="utf-8")):
        for target in re.findall(r"(?:^|\s)make ([a-z][a-z-]*)\b(?!=)", code):
            assert target in targets, f"{page.name} names `make {target}`"


def test_the_paper_map_mentions_every_field_of_the_config() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    named = set(SPAN.findall(text))
    fields = [
        f"{section}.{name}" for section, model in Config.model_fields.items() for name in model.annotation.model_fields
    ]
    assert [field for field in fields if field not in named] == []


def test_the_paper_map_mentions_no_field_that_is_not_there() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    sections = {name: set(field.annotation.model_fields) for name, field in Config.model_fields.items()}
    named = (code.split(".") for code in SPAN.findall(text) if re.fullmatch(r"[a-z]+\.[a-z_0-9]+", code))
    unknown = [f"{s}.{f}" for s, f in named if s in sections and f not in sections[s] and f not in ("py", "md", "toml")]
    assert unknown == []


def test_the_paper_map_states_the_defaults_that_the_config_has() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)\.([a-z_0-9]+)` \| `([^`]*)` \|", text, re.MULTILINE)
    assert len(rows) > 40
    config = Config()
    for section, name, stated in rows:
        value = getattr(getattr(config, section), name)
        assert agrees(stated, value), f"{section}.{name}: the page says {stated}, the config {value!r}"


def agrees(stated: str, value: object) -> bool:
    """Tell whether a default as a page writes it (TOML, or a fraction such as 25/3) is this value."""
    match value:
        case bool():
            return stated == str(value).lower()
        case int() | float():
            number, _, divisor = stated.replace(" ", "").replace(",", "").partition("/")
            return float(number) / float(divisor or 1) == pytest.approx(value)
        case tuple():
            return re.findall(r"\w+", stated) == [str(item) for item in value]
        case _:
            return stated.strip('"') == str(value)


def test_the_readme_names_the_two_commands_that_matter() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in text and "make test" in text
