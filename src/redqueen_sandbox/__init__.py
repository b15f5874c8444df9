"""verify: programs that nobody trusts are run in a sandbox, for whoever has jobs for it, without torch."""

from redqueen_sandbox.records import VERDICTS, Limits, Program, Result, well_formed
from redqueen_sandbox.verifier import Verifier

__all__ = ["VERDICTS", "Limits", "Program", "Result", "Verifier", "well_formed"]
