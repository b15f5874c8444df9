"""Runs untrusted Python programs in caged processes: ``Sandbox().run(programs)``. See docs/sandbox.md."""

from typing import TYPE_CHECKING, Any

from redqueen_sandbox.errors import UserError
from redqueen_sandbox.records import VERDICTS, Grade, Limits, Program, Result

if TYPE_CHECKING:
    from redqueen_sandbox.sandbox import Sandbox

__all__ = ["VERDICTS", "Grade", "Limits", "Program", "Result", "Sandbox", "UserError"]


def __getattr__(name: str) -> Any:
    """Import ``Sandbox`` on first access: programs that only use the records start faster."""
    if name != "Sandbox":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from redqueen_sandbox.sandbox import Sandbox

    return Sandbox
