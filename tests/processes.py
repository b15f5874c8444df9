"""Waiting for what other processes do, and which of them live, as /proc tells it."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def comes_true(holds: Callable[[], bool], patience_s: float) -> bool:
    """Wait until something holds, at most so long; tell whether it does then."""
    deadline_s = time.monotonic() + patience_s
    while not (held := holds()) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return held


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid: int | None = None) -> list[int]:
    """The process ids of a process's children, of this one's by default; none where it has ended."""
    pid = pid or os.getpid()
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
