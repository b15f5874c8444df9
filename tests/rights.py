"""What a test's process may not do for a moment: permissions count also for root, and files are limited in size."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_root_rights() -> Iterator[None]:
    """Root may write anywhere; be nobody for a moment so that permissions count."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def files_of_at_most(num_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: the system then breaks writes off as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
