"""Prompts of mathematics: what is shown gives nothing away, what is written is read back, no text breaks a format."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.config import parse_config
from redqueen.domains.frames import IN, MARKS
from redqueen.domains.maths.kinds import FORMAL, MATHS, WORD
from redqueen.domains.prompt_format import FRAMES, PromptFormat, choose_format
from redqueen.records import Task

COMPACT, CHAT = (PromptFormat(FRAMES[name]) for name in ("compact", "chat"))
STATEMENT = Task("a", "T1", "S1", FORMAL.name, "x where 3*x + 5 = 20", ("",), ("73211",))
STORY = replace(
    STATEMENT, kind=WORD.name, message="Tom has 12 apples and eats 5 of them. How many are left?", code="12 - 5"
)


@pytest.mark.parametrize("prompts", [COMPACT, CHAT], ids=["compact", "chat"])
def test_a_student_sees_the_statement_or_the_text_and_never_the_answer_or_the_twin(prompts: PromptFormat) -> None:
    assert STATEMENT.code in prompts.solve(STATEMENT) and "73211" not in prompts.solve(STATEMENT)
    shown = prompts.solve(STORY)
    assert STORY.message in shown and STORY.code not in shown and "73211" not in shown


@pytest.mark.parametrize("kind", MATHS.kinds, ids=lambda kind: kind.name)
def test_a_teacher_sees_earlier_statements_and_for_a_story_their_texts(kind) -> None:
    for prompts in (COMPACT, CHAT):
        shown = prompts.propose(kind.name, [STATEMENT, STORY], None)
        assert STATEMENT.code in shown and STORY.code in shown
        assert (STORY.message in shown) == (kind is WORD)
        assert prompts.propose(kind.name, [], None) != shown


def test_what_is_written_is_read_back_in_both_formats() -> None:
    assert COMPACT.parse_proposal(FORMAL.name, "1 + 2", None).code == "1 + 2"
    read = COMPACT.parse_proposal(WORD.name, f"{STORY.message}{IN}12 - 5", None)
    assert (read.code, read.message, read.error) == ("12 - 5", STORY.message, "")
    written = f"<think>```maths\n9\n```</think>\n```problem\n{STORY.message}\n```\nthat is\n```maths\n12 - 5\n```"
    assert CHAT.parse_proposal(WORD.name, written, None) == read
    assert CHAT.parse_proposal(FORMAL.name, "```maths\n1 + 2\n```", None).code == "1 + 2"
    assert CHAT.parse_answer(WORD.name, "<think>12 - 5</think><answer> 7 </answer>").answer == "7"
    assert COMPACT.parse_answer(WORD.name, "<|think|>12 - 5 = 7<|/think|>7").answer == "7"


def test_what_is_incomplete_has_a_reason() -> None:
    assert COMPACT.parse_proposal(WORD.name, "a text alone", None).error == "no formal twin"
    assert COMPACT.parse_proposal(WORD.name, f"{IN}12 - 5", None).error == "nothing is there"
    assert COMPACT.parse_proposal(FORMAL.name, " ", None).error == "nothing is there"
    assert CHAT.parse_proposal(WORD.name, "```maths\n1\n```", None).error == "no problem block"
    assert CHAT.parse_proposal(FORMAL.name, "12 - 5", None).error == "no maths block"


@given(st.text(max_size=80), st.sampled_from(MARKS), st.text(max_size=20))
def test_reading_a_text_with_a_mark_never_fails(text: str, mark: str, more: str) -> None:
    for kind in (FORMAL.name, WORD.name):
        for prompts in (COMPACT, CHAT):
            prompts.parse_proposal(kind, text + mark + more, None)
            prompts.parse_answer(kind, text + mark + more)


def test_a_run_chooses_its_format_for_the_domain() -> None:
    assert choose_format(parse_config({"propose": {"domains": ["maths"]}}, "test")).name == "compact"
