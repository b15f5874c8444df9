"""The generated half of the frozen suite can be written again, and training never sees a program of either half."""

import hashlib
import json
import re
from random import Random

from redqueen.domains.code.suite import SUITES
from redqueen.domains.rows import checksum, read_checksums
from redqueen.tiny.corpus import IDENTITY, Author
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.held_out import SECOND_SEED, SUITE_SEED, considered_skeletons, held_out_skeletons, write_block
from redqueen.tiny.problems import skeleton, write_problem
from redqueen.tiny.recipe import Recipe

PROGRAMS = [json.loads(line) for line in (SUITES / "generated.jsonl").read_text().splitlines()]
FIRST, SECOND = PROGRAMS[:300], PROGRAMS[300:]


def test_the_first_block_is_what_the_generator_writes_today() -> None:
    assert [json.loads(line) for line in write_block(SUITE_SEED)] == FIRST
    assert checksum(SUITES / "generated.jsonl") == read_checksums(SUITES)["generated.jsonl"]


def test_the_second_block_is_what_its_seed_gives_less_what_was_left_out() -> None:
    assert len(SECOND) == 300
    rng, wanted = Random(SECOND_SEED), iter(SECOND)
    num_drawn = 0
    for record in wanted:
        while True:
            num_drawn += 1
            problem = write_problem(rng, record["level"])
            if problem is not None and problem.code + "\n" == record["code"]:
                break
            assert num_drawn < 20_000
        assert list(problem.inputs) == record["io_inputs"]


def test_a_block_has_as_many_programs_of_every_level_and_no_two_alike() -> None:
    first = write_block("a test/1", programs_per_level=3)
    second = write_block("a test/1", {json.loads(first[0])["code"]}, first, programs_per_level=3)
    records = [json.loads(line) for line in [*first, *second]]
    assert [r["level"] for r in records] == 2 * [level for level in LEVELS for _ in range(3)]
    assert len({skeleton(r["code"]) for r in records}) == len({r["id"] for r in records}) == 30


def test_a_block_leaves_out_what_it_is_told_to() -> None:
    first = [json.loads(line) for line in write_block("a test/2", programs_per_level=2)]
    excluded = {skeleton(record["code"]) for record in first}
    others = [json.loads(line) for line in write_block("a test/2", excluded, programs_per_level=2)]
    assert not excluded & {skeleton(record["code"]) for record in others}


def test_what_the_corpus_asks_for_is_remembered() -> None:
    recipe = Recipe(num_steps=2, num_rows=4, vocabulary_programs=50)
    held = held_out_skeletons(SUITES)
    considered = considered_skeletons(recipe, held, lambda line: None)
    author = Author(Random("corpus/0/1"), held)
    assert skeleton(author.problem(author.level()).code) in considered
    assert len(considered) > 60
    second = {skeleton(record["code"]) for record in SECOND}
    assert not considered & second


def test_what_is_held_out_are_the_programs_of_both_halves() -> None:
    lines = [line for path in SUITES.glob("*.jsonl") for line in path.read_text().splitlines()]
    held = held_out_skeletons(SUITES)
    assert {skeleton(json.loads(line)["code"]) for line in lines} == held
    assert len(held) > 750


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
