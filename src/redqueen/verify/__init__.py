"""verify: candidate programs become tasks or rejections, and answers are graded, in a sandbox without torch."""

from redqueen.verify.grading import well_formed
from redqueen.verify.records import VERDICTS, Limits, Program, Result
from redqueen.verify.verifier import Verifier

__all__ = ["VERDICTS", "Limits", "Program", "Result", "Verifier", "well_formed"]
