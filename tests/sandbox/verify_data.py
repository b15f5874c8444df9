"""What the tests of the verifier share: the data folder, and what hostile programs import."""

from collections.abc import Iterator
from pathlib import Path

from benchmark_data import DATA, read_lines

__all__ = ["DATA", "HOST_MODULES", "honest_programs", "read_lines"]

CORPUS = Path(__file__).parent / "honest"

HOST_MODULES = (
    "atexit", "builtins", "ctypes", "gc", "inspect", "marshal", "mmap", "multiprocessing", "multiprocessing.pool",
    "os",
    "pickle", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "unittest", "unittest.mock",
    "urllib.request", "uuid",
)  # fmt: skip
"""What a hostile program would import: preloaded where the cage is tried without its gate."""


def honest_programs() -> Iterator[tuple[str, str, str]]:
    """(name, code, argument list) of every honest program: in ``honest/*.txt``, each under a line ``#: arguments``."""
    for path in sorted(CORPUS.glob("*.txt")):
        for number, part in enumerate(path.read_text().split("#: ")[1:]):
            given, _, code = part.partition("\n")
            yield f"{path.stem}:{number}", code, given
