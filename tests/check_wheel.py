"""What an installed wheel must do by itself, far from any clone: run by the interpreter that it is installed for.

``make check-dist`` runs it in environments that have nothing but the wheel and its dependencies, at pinned, lowest and
newest releases; the slow test ``tests/test_dist.py`` in one that borrows the dependencies.
"""

import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import requires, version
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / "configs"
SMALL = ["run.num_steps=1", "run.num_threads=1", "evaluate.max_items=3", "propose.num_seed_proposals=1"]
SMALL += ["propose.num_proposals={code_o=2,code_i=1,code_f=1}", "solve.num_attempts=2", "verify.num_workers=1"]


def redqueen(*words: str, cwd: Path) -> str:
    """Run the command as a new user would, without a source folder on the path; return what it prints."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "redqueen", *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"redqueen {' '.join(words)}: {done.stderr[-2000:]}"
    return done.stdout


def main() -> None:
    needed = [re.split(r"[^\w-]", line)[0] for line in requires("redqueen") or () if "extra ==" not in line]
    print("python", sys.version.split()[0], *(f"{name} {version(name)}" for name in needed))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where = "import redqueen, pathlib; print(pathlib.Path(redqueen.__file__).parent)"
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        told = subprocess.run([sys.executable, "-c", where], cwd=folder, env=env, capture_output=True, text=True)
        package = Path(told.stdout.strip())
        assert "site-packages" in package.parts, f"this is no installed wheel: {package}{told.stderr}"
        assert (package / "py.typed").is_file()
        presets = {path.name for path in (package / "presets").glob("*.toml")}
        assert presets == {path.name for path in CONFIGS.glob("*.toml")}, presets
        assert redqueen("--version", cwd=folder).startswith("redqueen ")
        for command in ((), ("train",), ("export",)):
            assert "--help" in redqueen(*command, "--help", cwd=folder)
        assert "[population]" in redqueen("train", "smoke", "--dry-run", cwd=folder)
        (folder / "my.toml").write_text(redqueen("init", "smoke", cwd=folder))
        settings = [word for one in SMALL for word in ("--set", one)]
        assert "report: " in redqueen("train", "my.toml", "--run-dir", "run", *settings, cwd=folder)
        assert "S1" in redqueen("export", "run", "--member", "S1", "--out", "S1", cwd=folder)
        redqueen("report", "run", "--json", cwd=folder)
        assert "4 runs in" in redqueen("experiment", "smoke", "--dry-run", cwd=folder)
        assert redqueen("docs", cwd=folder).startswith("real-models ")
        assert (package / "docs" / "runs.md").is_file() and (package / "docs" / "notebook.ipynb").is_file()
        assert "expected duration: " in redqueen("train", "maths", "--measure", cwd=folder)
        assert "sandbox" in redqueen("doctor", cwd=folder)
    print("the wheel stands by itself")


if __name__ == "__main__":
    main()
