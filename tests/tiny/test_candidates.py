"""Thoughts that look for a program: wrong candidates are wrong where their trace ends, and are shown, never taught."""

from random import Random

import pytest

from redqueen.domains.compact import END_THINK, EOS, THINK
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.tiny.candidates import MOST_CHECKED, wrong_candidate
from redqueen.tiny.corpus import Author, Segment, Teaching
from redqueen.tiny.problems import Problem
from redqueen.tiny.thought_traces import instrument, run
from redqueen.tiny.worlds import WORLDS, World

TEACHING = Teaching(most_wrong_guesses=3, tries_programs=True)


@pytest.fixture(scope="module", params=WORLDS.values(), ids=WORLDS)
def written(request: pytest.FixtureRequest) -> tuple[World, Author, list[Problem]]:
    author = Author(Random("candidates"), teaching=TEACHING, world=request.param)
    return request.param, author, [author.problem(1 + i % 5) for i in range(20)]


def thoughts(written: tuple[World, Author, list[Problem]]) -> list[tuple[Problem, tuple[Segment, ...]]]:
    _, author, problems = written
    return [(p, branch) for p in problems for branch in author.induction(p).completions[1:]]


def test_a_wrong_candidate_is_traced_to_the_first_pair_that_it_gets_wrong(
    written: tuple[World, Author, list[Problem]],
) -> None:
    world, _, problems = written
    found = [(p, made) for p in problems if (made := wrong_candidate(Random(p.code), p, world)) is not None]
    assert len(found) > len(problems) // 2
    for problem, (code, traces) in found:
        assert code != problem.code and 1 <= len(traces) <= MOST_CHECKED
        compiled = instrument(code, world.bounds.detailed)
        runs = [run(compiled, eval(f"({text},)"), world.bounds) for text in problem.inputs[: len(traces)]]
        assert tuple(r.trace for r in runs) == traces
        right = [r.result == known.result for r, known in zip(runs, problem.runs, strict=False)]
        assert right == [True] * (len(traces) - 1) + [False]


def test_no_bracket_of_a_wrong_candidate_tells_that_it_is_one(written: tuple[World, Author, list[Problem]]) -> None:
    world, _, problems = written
    for problem in problems:
        made = wrong_candidate(Random(0), problem, world)
        assert made is None or "((" not in made[0] or "((" in problem.code


def test_a_thought_ends_with_the_right_program_traced_and_answers_with_it(
    written: tuple[World, Author, list[Problem]],
) -> None:
    for problem, branch in thoughts(written):
        text = "".join(part for part, _ in branch)
        parsed = PromptFormat(FRAMES["compact"]).parse_answer("code_f", text.removesuffix(EOS))
        assert text.startswith(THINK) and parsed.answer == problem.code.strip("\n") + "\n"
        last = parsed.thought[parsed.thought.rindex(problem.code) :]
        checks = ["|" + r.trace for r in problem.runs[:MOST_CHECKED]]
        assert last in (problem.code + checks[0], problem.code + checks[0] + checks[1])


def test_wrong_candidates_are_shown_and_their_traces_taught(written: tuple[World, Author, list[Problem]]) -> None:
    numbers = []
    for _, branch in thoughts(written):
        middle = branch[1:-2]
        candidates, verdicts = middle[::2], middle[1::2]
        assert [weight for _, weight in candidates] == [0.0] * len(candidates)
        assert all(weight == 1.0 and text.startswith("|") and text.endswith("!") for text, weight in verdicts)
        assert branch[-2][0].endswith(END_THINK) and [weight for _, weight in branch[-2:]] == [1.0, 1.0]
        numbers.append(len(candidates))
    assert min(numbers) == 0 and max(numbers) == 3


def test_a_thought_about_an_input_may_go_wrong_more_than_once(written: tuple[World, Author, list[Problem]]) -> None:
    _, author, problems = written
    numbers = {(len(author.abduce(p, 0, think=True)) - 4) // 2 for p in problems for _ in range(8)}
    assert numbers == {0, 1, 2, 3}
