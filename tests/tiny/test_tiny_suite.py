"""The generated half of the frozen suite can be written again, and training never sees a program of either half."""

import hashlib
import json
import re
from pathlib import Path
from random import Random

from redqueen.evaluate.suite import SUITES, checksum, read_checksums
from redqueen.tiny.corpus import IDENTITY, Author
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.problems import skeleton, write_problem
from redqueen.tiny.suite import SUITE_SEED, held_out_skeletons, write_suite


def test_the_frozen_suite_is_what_the_generator_writes_today(tmp_path: Path) -> None:
    assert write_suite(tmp_path / "again.jsonl") == 300
    assert (tmp_path / "again.jsonl").read_bytes() == (SUITES / "generated.jsonl").read_bytes()
    assert checksum(tmp_path / "again.jsonl") == read_checksums(SUITES)["generated.jsonl"]


def test_the_suite_has_as_many_programs_of_every_level_and_no_two_alike(tmp_path: Path) -> None:
    assert write_suite(tmp_path / "small.jsonl", programs_per_level=3) == 15
    records = [json.loads(line) for line in (tmp_path / "small.jsonl").read_text().splitlines()]
    assert [r["level"] for r in records] == [level for level in LEVELS for _ in range(3)]
    assert len({skeleton(r["code"]) for r in records}) == 15


def test_what_is_held_out_are_the_programs_of_both_halves() -> None:
    lines = [line for path in SUITES.glob("*.jsonl") for line in path.read_text().splitlines()]
    held = held_out_skeletons(SUITES)
    assert {skeleton(json.loads(line)["code"]) for line in lines} == held
    assert len(held) > 450


def test_the_author_of_the_corpus_never_writes_a_held_out_program() -> None:
    held = held_out_skeletons(SUITES)
    # With the suite's own seed the first draws are programs of the suite, so this author meets many of them.
    free, bound = Random(SUITE_SEED), Author(Random(SUITE_SEED), held)
    drawn = [p for p in (write_problem(free, 1) for _ in range(60)) if p is not None]
    assert sum(skeleton(p.code) in held for p in drawn) > 10
    written = [bound.problem(1) for _ in range(40)] + [bound.problem(level) for level in LEVELS for _ in range(10)]
    assert not any(skeleton(p.code) in held for p in written)


def test_no_prompt_or_completion_of_the_corpus_holds_a_program_of_the_suite() -> None:
    # The identity program is shown as a reference, as self-play's first buffer shows it; it is the one exception.
    held = held_out_skeletons(SUITES) - {skeleton(IDENTITY)}
    author = Author(Random("corpus test"), held_out_skeletons(SUITES))
    samples = [sample for _ in range(60) for sample in author.samples()]
    texts = [s.prompt + "".join(text for segment in s.completions for text, _ in segment) for s in samples]
    programs = {part for text in texts for part in re.split(r"<\|[^|]+\|>", text) if part.startswith("def ")}
    assert len(programs) > 60
    assert not any(skeleton(program) in held for program in programs)


def test_the_suite_files_have_not_been_touched() -> None:
    for name, digest in read_checksums(SUITES).items():
        assert hashlib.sha256((SUITES / name).read_bytes()).hexdigest() == digest
