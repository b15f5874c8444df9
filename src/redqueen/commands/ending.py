"""Runs a command: waiting policy of threads, errors in one sentence, exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from redqueen.errors import UserError

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BUSY_FRAC = 0.5
"""From this load per core on, other programs are assumed to need the cores too (ours)."""


def run_to_exit(command: Callable[[], object]) -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2, a bug is a traceback."""
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
            _refuse(f"{str(error.filename)[:80]}...: {error.strerror}: give a shorter name")
        if getattr(error, "errno", None) not in NO_SPACE and os.strerror(errno.ENOSPC) not in str(error):  # safetensors
            raise
        where = getattr(error, "filename", None)
        if where is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # at exit Python flushes the rest again
        _refuse(
            f"{where or 'the output'} cannot be written ({getattr(error, 'strerror', None) or error}): free some space"
        )


def _refuse(why: str) -> None:
    """Exit with one sentence and the code of a user's mistake; ``why`` may quote an untrusted file."""
    from redqueen.display import visible

    print(f"redqueen: {visible(why)}", file=sys.stderr)
    sys.exit(2)


def share_the_cores() -> None:
    """Let OpenMP threads sleep while they wait, if other programs keep the cores busy.

    A spinning thread takes its core from the thread it waits for, which makes a small model's steps many times slower.
    OpenMP reads the setting when torch is imported, so this runs before any command; an ``OMP_WAIT_POLICY`` in the
    environment takes precedence. Computed numbers do not change.
    """
    try:
        load = os.getloadavg()[0]
    except OSError:
        return
    if load >= BUSY_FRAC * (os.cpu_count() or 1):
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
