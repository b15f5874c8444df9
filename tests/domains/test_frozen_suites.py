"""A frozen suite that has grown still has, line by line, what older figures were measured on."""

import hashlib
import json

import pytest

from redqueen.domains.logic.suite import SUITES as PUZZLES
from redqueen.domains.proofs.suite import SUITES as LEMMAS


@pytest.mark.parametrize(
    ("path", "digest"),
    [
        (PUZZLES / "puzzles.jsonl", "c26c90900c8ce0d1ad705d3f88a5313f489e0eb0289705dd1da7353eb7bde866"),
        (LEMMAS / "lemmas.jsonl", "7d11c71bec05b908fd241b1003a89ef67e2c45900fbb48119f48ba154ad92951"),
    ],
    ids=["puzzles", "lemmas"],
)
def test_the_first_three_hundred_of_each_level_are_those_that_were_drawn_first(path, digest):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    first = [line for line in lines if int(json.loads(line)["id"].rsplit("-", 1)[1]) <= 300]
    assert len(first) == 1_200
    assert hashlib.sha256("".join(first).encode()).hexdigest() == digest
