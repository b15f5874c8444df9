"""What the tests of the verifier share: the data folder, and what hostile programs import."""

from benchmark_data import DATA, read_lines

__all__ = ["DATA", "HOST_MODULES", "read_lines"]

HOST_MODULES = (
    "atexit", "builtins", "ctypes", "gc", "inspect", "marshal", "mmap", "multiprocessing", "multiprocessing.pool",
    "os",
    "pickle", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "unittest", "unittest.mock",
    "urllib.request", "uuid",
)  # fmt: skip
"""What a hostile program would import: preloaded where the cage is tried without its gate."""
