"""The frame of every command: priority on the machine, errors in one sentence, exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from redqueen.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BUSY_FRAC = 0.5
"""At this load for each core others are taken to want the cores too (ours)."""


def run_to_exit(command: Callable[[], object]) -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2, a fault is a traceback."""
    share_the_cores()
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except UserError as error:
        _refuse(str(error))
    except KeyboardInterrupt:
        print("redqueen: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            _refuse(f"{str(error.filename)[:80]}...: {error.strerror}: give a shorter one")
        if getattr(error, "errno", None) not in FULL and os.strerror(errno.ENOSPC) not in str(error):  # safetensors
            raise
        where = getattr(error, "filename", None)
        if where is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes what is left once more when it ends
        _refuse(
            f"{where or 'the output'} cannot be written ({getattr(error, 'strerror', None) or error}): free some space"
        )


def _refuse(why: str) -> None:
    """End with one sentence and the code of a user's mistake; ``why`` may quote an untrusted file."""
    from redqueen.display import visible

    print(f"redqueen: {visible(why)}", file=sys.stderr)
    sys.exit(2)


def share_the_cores() -> None:
    """Let the threads of numeric work sleep while they wait, where other programs keep the cores busy.

    A thread that spins takes its core from the one it waits for, which makes a small model's steps many times slower.
    Read by OpenMP when torch is imported, hence before any command; ``OMP_WAIT_POLICY`` in the environment prevails.
    The numbers that are computed are the same.
    """
    try:
        load = os.getloadavg()[0]
    except OSError:
        return
    if load >= BUSY_FRAC * (os.cpu_count() or 1):
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
