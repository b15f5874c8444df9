"""The house keeps its shape: small files, small functions, tests that stand where the code stands."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "redqueen"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 400, 60


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: num for name, num in lengths.items() if num > MOST_LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_sixty_lines() -> None:
    too_long = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                num_lines = (node.end_lineno or 0) - node.lineno + 1
                if num_lines > MOST_LINES_OF_A_FUNCTION:
                    too_long[f"{path.relative_to(PACKAGE)}: {node.name}"] = num_lines
    assert too_long == {}


def test_every_folder_of_tests_is_a_folder_of_the_package() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert [str(folder) for folder in sorted(folders) if not (PACKAGE / folder).is_dir()] == []
