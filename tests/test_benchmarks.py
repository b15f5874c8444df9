"""What benchmarks read out of journals, where no test of theirs would notice."""

import sys
from pathlib import Path

import pytest
from task_run import write_task_run

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import large_populations


def test_the_tokens_of_a_step_are_those_of_its_proposals_and_answers(tmp_path: Path) -> None:
    (tmp_path / "members-2").mkdir()
    found = large_populations.read(write_task_run(tmp_path / "members-2" / "run"), num_steps=2)
    # Step 2 of the run: two proposals of 12 tokens, a rejected one of 4, and three answers of 5.
    assert found["tokens"] == pytest.approx(2 * 12 + 4 + 3 * 5)
    assert found["journal_mb"] > 0
