"""Lessons of mathematics: they show prompts of the format, what they teach is right, the suite is not in them."""

from random import Random

import pytest

from redqueen.domains.compact import BOS, EOS, IN, MARKS, MSG, REF, THINK, asked, new
from redqueen.domains.domain import Lesson
from redqueen.domains.maths.exercises import HELD_OUT_SHARE, is_held_out
from redqueen.domains.maths.kinds import FORMAL, MATHS, WORD
from redqueen.domains.maths.language import normal_form
from redqueen.domains.maths.lessons import lessons
from redqueen.domains.maths.solver import solve
from redqueen.domains.maths.suite import load_suite
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.teaching import THINK_HABIT_FRAC
from redqueen.nouns import Task

FORMAT = PromptFormat(FRAMES["compact"])


@pytest.fixture(scope="module")
def taught() -> list[Lesson]:
    rng = Random("lessons")
    return [lesson for _ in range(400) for lesson in lessons(rng)]


def texts(lesson: Lesson) -> list[str]:
    return ["".join(text for text, _ in branch) for branch in lesson.completions]


def test_the_domain_brings_its_lessons_and_they_depend_on_the_generator_alone() -> None:
    assert MATHS.lessons is lessons
    assert lessons(Random(5)) == lessons(Random(5)) != lessons(Random(6))


def test_what_is_solved_is_asked_as_in_a_run_and_both_ways_end_in_the_same_answer(taught: list[Lesson]) -> None:
    solved = [lesson for lesson in taught if lesson.prompt != BOS]
    assert len(solved) == 400
    for lesson in solved:
        kind = FORMAL.name if lesson.prompt.endswith(asked(FORMAL.name)) else WORD.name
        shown = lesson.prompt.removeprefix(BOS).removeprefix(MSG).removesuffix(asked(kind))
        task = Task("t", "", "", kind, shown, ("",), ("",), shown)
        assert FORMAT.solve(task) == lesson.prompt
        thinking, at_once = (FORMAT.parse_answer(kind, text.removesuffix(EOS)) for text in texts(lesson))
        assert thinking.thought and not at_once.thought and thinking.answer == at_once.answer
        twin = thinking.thought.split("\n")[0] if kind == WORD.name else shown
        assert solve(twin) == ("ok", thinking.answer)


def test_to_think_is_the_habit_by_the_weights_of_the_first_tokens(taught: list[Lesson]) -> None:
    for lesson in taught:
        if lesson.prompt != BOS:
            (opened, weight), (first, other) = lesson.completions[0][0], lesson.completions[1][0]
            assert opened.startswith(THINK) and len(first) == 1
            assert weight / (weight + other) == pytest.approx(THINK_HABIT_FRAC)


def test_what_is_proposed_is_written_and_read_as_in_a_run(taught: list[Lesson]) -> None:
    proposals = [text for lesson in taught if lesson.prompt == BOS for text in texts(lesson)]
    assert len(proposals) > 100
    for text in proposals:
        kind = FORMAL.name if new(FORMAL.name) in text else WORD.name
        shown, written = text.split(new(kind))
        references = []
        for part in shown.split(REF)[1:]:
            message, _, code = part.removeprefix(MSG).rpartition(IN)
            references.append(Task("r", "", "", FORMAL.name, code, ("",), ("",), message))
        assert FORMAT.propose(kind, references, None) == BOS + shown + new(kind)
        read = FORMAT.parse_proposal(kind, written.removesuffix(EOS), None)
        assert read.error == "" and bool(read.message) == (kind == WORD.name) and solve(read.code)[0] == "ok"


def test_no_lesson_shows_anything_of_the_suite(taught: list[Lesson]) -> None:
    suite = {normal_form(item.task.code) for item in load_suite()}
    assert len(suite) == 3_200 and all(is_held_out(item.task.code) for item in load_suite())
    shown = set()
    for lesson in taught:
        for text in [lesson.prompt, *texts(lesson)]:
            for mark in MARKS:
                text = text.replace(mark, "\n")
            shown |= {normal_form(part) for part in text.split("\n")}
    assert len(shown) > 800 and not shown & suite


def test_every_branch_fits_the_rows_that_the_base_is_trained_on(taught: list[Lesson]) -> None:
    from redqueen.tiny.tokenizer import pieces_of

    def num_tokens(text: str) -> int:
        for mark in MARKS:
            text = text.replace(mark, "\x00")
        return len(pieces_of(text))

    longest = max(num_tokens(lesson.prompt + text) for lesson in taught for text in texts(lesson))
    assert longest <= 256


def test_one_normal_form_in_so_many_is_held_out() -> None:
    share = sum(is_held_out(f"{number} + 1") for number in range(4000)) / 4000
    assert share == pytest.approx(1 / HELD_OUT_SHARE, abs=0.015)
