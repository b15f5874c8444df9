"""Where the tests of the verifier find benchmark and hostile programs."""

import gzip
import json
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

HOST_MODULES = (
    "atexit", "builtins", "ctypes", "gc", "inspect", "marshal", "mmap", "multiprocessing", "multiprocessing.pool", "os",
    "pickle", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "unittest", "unittest.mock",
    "urllib.request", "uuid",
)  # fmt: skip
"""What a hostile program would import: preloaded where the cage is tried without its gate."""


def read_lines(path: Path) -> list[dict[str, object]]:
    """The JSON lines of a file of the data folder; skips the test where that is absent."""
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand (looked for {path})")
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
