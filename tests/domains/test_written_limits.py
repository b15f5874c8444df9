"""A text just short enough, whose normal writing with its blanks is too long, is refused and costs no sandbox."""

import pytest

from redqueen.domains.logic import language as logic
from redqueen.domains.maths import language as maths
from redqueen.domains.registry import check
from redqueen.records import Candidate, Rejection
from redqueen_sandbox import Sandbox, guard

PUZZLE = "order A B C\nA<B\nB<C\n" + "\n".join(["A+B+C" + "+A+B+C" * 11 + ">0"] * 20)
TEXTS = [
    ("maths_formal", "1234" + "+1234" * 79 + "5", maths.MAX_CHARS),
    ("maths_formal", "x where x=" + "1234+" * 77 + "12345", maths.MAX_CHARS),
    ("logic_puzzle", (PUZZLE + ("\nA" + "+A" * 78 + ">B") * 2).ljust(logic.MAX_CHARS), logic.MAX_CHARS),
]


@pytest.mark.parametrize(("kind", "text", "limit"), TEXTS)
def test_a_text_of_the_greatest_length_without_blanks_is_refused(
    verifier: Sandbox, kind: str, text: str, limit: int
) -> None:
    guard.faults.clear()
    jobs = verifier.num_jobs
    assert limit - 1 <= len(text) <= limit
    (found,) = check([Candidate("1", "T", "S", kind, "", text, ("",), "")], verifier)
    assert isinstance(found, Rejection) and (found.reason, found.detail[:11]) == ("syntax", "longer than")
    assert not guard.faults and verifier.num_jobs == jobs
