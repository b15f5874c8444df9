"""The house keeps its shape: small files, small functions, tests where the code stands, a README that finds them."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from redqueen.config import Config
from redqueen.domains.registry import kinds

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "redqueen"
SANDBOX = ROOT / "src" / "redqueen_sandbox"
FILES = sorted([*PACKAGE.rglob("*.py"), *SANDBOX.rglob("*.py")])
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 400, 60
GENERATED = ("cli.md", "paper_map.md")


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    files = [*FILES, *(ROOT / "recipes").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: num for name, num in lengths.items() if num > MOST_LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_sixty_lines() -> None:
    too_long = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                num_lines = (node.end_lineno or 0) - node.lineno + 1
                if num_lines > MOST_LINES_OF_A_FUNCTION:
                    too_long[f"{path.relative_to(ROOT)}: {node.name}"] = num_lines
    assert too_long == {}


def words(*paths: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def tracked(folder: str = ".") -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_package_without_the_sandbox_has_at_most_33_000_lines() -> None:
    files = PACKAGE.rglob("*.py")
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 33_000


def test_the_sandbox_has_at_most_4_500_lines() -> None:
    files = SANDBOX.rglob("*.py")
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 4_500


def test_the_config_has_at_most_100_fields_in_six_files() -> None:
    sections = [field.annotation for field in Config.model_fields.values()]
    assert sum(len(section.model_fields) for section in sections) <= 100  # type: ignore[union-attr]
    assert len(list((PACKAGE / "config").glob("*.py"))) <= 6


def test_documents_keep_to_their_budgets_of_words() -> None:
    assert words(ROOT / "README.md") <= 900
    assert words(ROOT / "CHANGELOG.md") <= 1_500
    assert words(*(path for path in tracked("docs") if path.suffix == ".md" and path.name not in GENERATED)) <= 30_000


def test_the_prose_of_experiments_has_at_most_12_000_words() -> None:
    assert words(*(path for path in tracked("experiments") if path.suffix == ".md")) <= 12_000


def test_the_repository_without_history_has_at_most_15_megabytes() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    assert sum(path.stat().st_size for path in tracked()) <= 15_000_000


def test_every_folder_of_tests_is_a_folder_of_the_package_or_beside_it() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    folders -= {Path("sandbox")}  # the tests of the package redqueen_sandbox
    assert [str(f) for f in sorted(folders) if not (PACKAGE / f).is_dir() and not (ROOT / f).is_dir()] == []


def test_only_domains_name_a_kind_of_task() -> None:
    names = re.compile("|".join(rf"\b{name}\b|num_{name}" for name in kinds()))
    inside = PACKAGE / "domains"
    texts = [
        p
        for p in PACKAGE.rglob("*")
        if p.suffix in (".py", ".j2", ".js") and inside not in p.parents and p.suffixes != [".min", ".js"]
    ]
    assert len(texts) > 100 and names.search("num_code_o") and names.search("'code_f'")
    assert [str(p.relative_to(PACKAGE)) for p in texts if names.search(p.read_text(encoding="utf-8"))] == []


def test_the_readme_says_where_things_are_and_they_are_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("| where is ...?", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| ([^|]+) \| `([\w/.]+)` \| (`[^|]+`) \|$", table, re.MULTILINE)
    assert len(rows) == table.count("\n") - 1 >= 12, "a row of the table cannot be read"
    for question, file, names in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert name in defined_in(PACKAGE / file), f"{question}: {file} defines no {name}"


def defined_in(path: Path) -> set[str]:
    """The names that a file itself defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            each = [part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
            found |= {target.id for target in each if isinstance(target, ast.Name)}
    return found
