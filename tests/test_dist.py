"""The wheel: what is in it, what it says of itself, and that it works in an environment that has only it."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email import message_from_string
from importlib.util import find_spec
from pathlib import Path

import pytest

from redqueen import __version__
from redqueen.commands.doctor import UNLISTED_EXTRAS
from redqueen.errors import how_to_install

ROOT = Path(__file__).parents[1]
PROJECT_FILE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PROJECT_FILE["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install hatchling")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    [made] = out.glob("*.whl")
    return made


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["version"] == __version__


def test_the_lowest_releases_that_are_tried_are_the_lower_bounds() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = dict(re.split(r">=|,", name)[:2] for name in PROJECT["dependencies"])
    assert {name: bound for name, bound in bounds.items() if name != "torch"} == {
        name: pinned.removesuffix(".0") for name, pinned in tried.items()
    }


@pytest.mark.slow
def test_the_wheel_carries_presets_types_and_the_embedded_base(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    presets = {f"redqueen/presets/{path.name}" for path in (ROOT / "configs").glob("*.toml")}
    assert presets and presets <= names
    assert {"redqueen/py.typed", "redqueen/embedded_base/model.safetensors", "redqueen/__main__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "recipes/"))]
    assert {"redqueen/docs/runs.md", "redqueen/experiments/smoke.toml"} <= names
    assert not [name for name in names if re.match(r"redqueen/(docs|presets)/.*\.py$", name)]


@pytest.mark.slow
def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = message_from_string(archive.read(f"redqueen-{__version__}.dist-info/METADATA").decode())
    assert metadata["License-Expression"] == "MIT" and metadata["Requires-Python"] == ">=3.11"
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Description-Content-Type"] == "text/markdown" and len(metadata["Keywords"]) > 20


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_of_ours_is(wheel: Path, tmp_path: Path) -> None:
    """The environment borrows this one's dependencies, and nothing of the clone; `make check-dist` installs them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
    zipfile.ZipFile(wheel).extractall(site)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    done = subprocess.run(
        [python, str(ROOT / "tests" / "check_wheel.py")], cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0 and "stands by itself" in done.stdout, done.stderr[-3000:]


def test_a_remedy_names_an_extra_that_exists() -> None:
    sources = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = {name for source in sources for name in re.findall(r"""how_to_install\(["'](\w+)["']\)""", source)}
    assert {"logic", "parquet", "ray"} <= named <= set(PROJECT["optional-dependencies"])


def test_the_command_for_an_extra_needs_no_index_that_knows_redqueen() -> None:
    """pip takes the redqueen that is installed, and looks elsewhere only for what is missing."""
    *words, extra = how_to_install("parquet").split()
    done = subprocess.run(
        [sys.executable, "-m", *words, "--dry-run", "--no-index", extra.strip("'")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_dockerfile_copies_what_is_there_and_all_that_the_wheel_is_made_of() -> None:
    lines = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    copied = {name for line in lines for name in line.split()}
    assert all((ROOT / name).exists() for name in copied)
    made_of = PROJECT_FILE["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert {"LICENSE", *(path.partition("/")[0] for path in made_of)} <= copied


def test_the_extra_all_has_every_extra_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    [line] = extras["all"]
    named = line.removeprefix("redqueen[").removesuffix("]").split(",")
    assert set(named) == set(extras) - {"gguf", *UNLISTED_EXTRAS}
