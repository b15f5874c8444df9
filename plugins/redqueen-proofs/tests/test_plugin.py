"""The plug-in as a package: its entry point, its config, its frozen suite."""

import gzip
import hashlib
import tomllib
from pathlib import Path

import pytest

from redqueen.config import load_config
from redqueen.domains.registry import GROUP, check, import_named, num_proposals
from redqueen.domains.rows import frozen_files
from redqueen.propose.filters import reject_held_out
from redqueen.records import Candidate, Rejection
from redqueen_proofs import formulas
from redqueen_proofs.kinds import LEMMA, PROOFS, SUITES
from redqueen_sandbox import Sandbox, guard

FOLDER = Path(__file__).parents[1]


def test_the_entry_point_is_the_domain() -> None:
    points = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert {name: import_named(value) for name, value in points.items()} == {PROOFS.name: PROOFS}


def test_the_config_asks_for_lemmas_in_whole_prompts() -> None:
    config = load_config(FOLDER / "proofs.toml", ["propose.domains=['redqueen_proofs.kinds:PROOFS']"])
    assert num_proposals(config.propose) == {LEMMA.name: 192}
    assert 192 % config.propose.num_per_prompt == 0


def test_the_lines_of_the_suite_are_those_that_were_frozen() -> None:
    [path] = frozen_files(SUITES)
    digest = hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    assert digest == "7959049d7c9b663c78090dce48351cffe39fb0eb61dc9425afcd014e63c36851"


def test_every_item_of_the_suite_is_refused_as_a_task() -> None:
    tasks = [item.task for item in PROOFS.suite()[::7]]
    candidates = [Candidate(task.id, "T1", "S1", task.kind, "text") for task in tasks]
    judged = reject_held_out(candidates, tasks)
    assert {one.reason if isinstance(one, Rejection) else "ok" for one in judged} == {"held-out"}


def test_a_lemma_of_the_greatest_length_without_blanks_is_refused() -> None:
    text = ",".join([">".join(["~" * 20 + "p"] * 5)] * 9) + "|-p>p>p>p>p"
    assert formulas.MAX_CHARS - 1 <= len(text) <= formulas.MAX_CHARS
    guard.faults.clear()
    with Sandbox(workers=1) as verifier:
        (found,) = check([Candidate("1", "T", "S", LEMMA.name, "", text, ("",), "")], verifier)
    assert isinstance(found, Rejection) and (found.reason, found.detail[:11]) == ("syntax", "longer than")
    assert not guard.faults


@pytest.mark.parametrize("output", ["mp 1 1", "wk 1"])
def test_a_task_of_a_file_with_a_wrong_proof_is_refused(output: str) -> None:
    with pytest.raises(ValueError, match="is no proof of the lemma"):
        PROOFS.read_task("a", LEMMA.name, {"code": "p, p>q |- q", "output": output})
