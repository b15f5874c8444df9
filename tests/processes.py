"""Processes that begin with torch imported; waiting for what others do, and which of them live, as /proc tells it."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory

APART = get_context("forkserver")
"""Starts processes that have imported torch and redqueen: the server of all of them does so once."""
APART.set_forkserver_preload(["redqueen.run.lifecycle", "transformers.models.qwen3.modeling_qwen3"])


def run_apart(
    code: str,
    *words: str,
    given: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> "CompletedProcess[str]":
    """Run code as ``python -c CODE WORDS`` does, where torch and redqueen need not be imported first.

    ``given`` is its standard input. Raises TimeoutExpired after ``timeout`` seconds.
    """
    with TemporaryDirectory() as name:
        streams = [Path(name) / stream for stream in ("in", "out", "err")]
        streams[0].write_text(given)
        process = APART.Process(target=_be_program, args=(code, words, streams, cwd, env))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired("python", timeout or 0.0)
        return CompletedProcess(words, process.exitcode, streams[1].read_text(), streams[2].read_text())


def _be_program(
    code: str, words: tuple[str, ...], streams: list[Path], cwd: Path | None, env: Mapping[str, str] | None
) -> None:
    for number, path in enumerate(streams):
        with path.open("w" if number else "r") as stream:
            os.dup2(stream.fileno(), number)
    sys.stdin = os.fdopen(0, closefd=False)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    os.chdir(cwd or ".")
    sys.argv[:], sys.path[:] = ["-c", *words], ["", *sys.path]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


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
