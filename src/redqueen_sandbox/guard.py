"""The judge's guard: an exception that a text raises in the judge's own code becomes one verdict, and is counted.

No exception should ever get here: the fuzzing tests assert that ``faults`` stays empty. One that does is a bug of the
judge that a model found. It must not stop a run or earn a reward, and it is logged with its traceback.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from redqueen_sandbox.errors import UserError

if TYPE_CHECKING:
    from redqueen_sandbox.runs import Job, Run

Answer = TypeVar("Answer")

VERDICT = "invalid-input"
"""The verdict for a text that made the judge itself raise an exception."""

_PASSED = (UserError, OSError)  # re-raised: the user's mistakes, and failures of the machine

faults: Counter[str] = Counter()
"""Exceptions that the guard caught in this process, counted by caller and exception class."""

_log = logging.getLogger(__name__)


def note_fault(place: str, error: Exception) -> str:
    """Count a fault, log the first of its kind with its traceback, and return the verdict's detail."""
    name = f"{place}: {type(error).__name__}"
    faults[name] += 1
    if faults[name] == 1:
        _log.error("the judge failed on a text (%s)", name, exc_info=error)
    return f"the judge failed on it ({type(error).__name__})"


def guarded(place: str, work: Callable[[], Answer], otherwise: Callable[[str], Answer]) -> Answer:
    """Return what ``work`` returns, or ``otherwise(detail)`` when it raises anything but ``_PASSED``."""
    try:
        return work()
    except _PASSED:
        raise
    except Exception as error:  # see the module's docstring
        return otherwise(note_fault(place, error))


def guarded_jobs(
    place: str, jobs: Generator[Job, Run, Answer], otherwise: Callable[[str], Answer]
) -> Generator[Job, Run, Answer]:
    """Do the same as ``guarded`` for a generator of jobs."""
    try:
        return (yield from jobs)
    except _PASSED:
        raise
    except Exception as error:  # see the module's docstring
        return otherwise(note_fault(place, error))
