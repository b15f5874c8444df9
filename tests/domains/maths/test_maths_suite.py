"""The frozen suite of mathematics: drawn once, unchanged, right, and each item a task that the judge would accept."""

import hashlib
import json
from collections import Counter

import pytest

from redqueen.domains.maths.kinds import MATHS
from redqueen.domains.maths.suite import SUITES, draw_suite, load_suite
from redqueen.domains.registry import check, grade
from redqueen.domains.rows import checksum, read_checksums
from redqueen.errors import UserError
from redqueen.nouns import Candidate, Task
from redqueen.verify import Verifier


def test_the_file_is_what_the_command_draws_and_has_not_changed() -> None:
    written = (SUITES / "exercises.jsonl").read_text(encoding="utf-8")
    assert written == "".join(json.dumps(record) + "\n" for record in draw_suite())
    assert read_checksums(SUITES) == {"exercises.jsonl": checksum(SUITES / "exercises.jsonl")}


def test_every_level_has_as_many_statements_as_word_problems() -> None:
    counts = Counter((item.stratum, item.kind) for item in load_suite())
    by_level = {"exercises/1": 200, "exercises/2": 700, "exercises/3": 700}
    assert counts == {(level, kind): n for level, n in by_level.items() for kind in ("maths_formal", "maths_word")}
    assert len({item.id for item in load_suite()}) == 3_200 == len(MATHS.suite())


def test_the_first_twelve_hundred_are_those_that_were_drawn_first() -> None:
    lines = (SUITES / "exercises.jsonl").read_bytes().splitlines(keepends=True)
    digest = hashlib.sha256(b"".join(lines[:1_200])).hexdigest()
    assert digest == "995e1bca0b6a4e50976c6d002825ebf1f1d0fc758d03dc4064c472653cb62568"


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_items_are_tasks_for_the_judge_with_the_recorded_answers(every: int) -> None:
    items = load_suite()[::every]
    with Verifier(workers=1) as verifier:
        proposed = [Candidate(i.id, "T1", "S1", i.kind, "", i.task.code, message=i.task.message) for i in items]
        judged = check(proposed, verifier)
        assert [v.outputs if isinstance(v, Task) else v for v in judged] == [item.task.outputs for item in items]
        grades = grade([(item.task, MATHS.kinds[0].gold(item.task)) for item in items], verifier)
        assert all(one.correct for one in grades)
        changed = grade([(item.task, item.task.outputs[0] + "1") for item in items], verifier)
        assert not any(one.correct for one in changed)


def test_a_changed_file_is_refused(tmp_path) -> None:
    (tmp_path / "exercises.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "CHECKSUMS").write_text((SUITES / "CHECKSUMS").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UserError, match="has changed since it was frozen"):
        load_suite(tmp_path)
