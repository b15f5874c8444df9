"""What models are asked, and what is read out of their text."""

import pytest

from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.errors import UserError
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import (
    Case,
    ContestQuestion,
    FunctionQuestion,
    MathsQuestion,
    Question,
    TaskQuestion,
    prompt_for,
    read_answer,
)
from redqueen.records import Task
from redqueen_sandbox.unit_tests import UnitTest

CHAT = PromptFormat(FRAMES["chat"])
STUB = 'def double(x):\n    """Twice x."""\n'
TASK = TaskQuestion("t", Task("t", "", "", "code_o", "def f(x):\n    return x", ("'SECRET'",), ("'SECRET'",)))
MATHS = MathsQuestion("m", "What is six times seven?", "42")
FUNCTION = FunctionQuestion("h", STUB, UnitTest("h", "", "assert double(1) == 'SECRET'", "double"), stub=STUB)
CONTEST = ContestQuestion("c", "Print the sum.", (Case("1", "SECRET"),))
METHOD = ContestQuestion("d", "Return it.", (Case("1", "SECRET"),), "get", "class Solution:\n    def get(self):\n")


def test_each_question_is_asked_with_its_text_and_without_its_answer() -> None:
    for question in (MATHS, FUNCTION, CONTEST, METHOD):
        prompt = prompt_for(question, CHAT)
        assert question.text.strip() in prompt
        assert "SECRET" not in prompt and "42" not in prompt
    assert METHOD.starter.strip() in prompt_for(METHOD, CHAT)
    assert "standard input" in prompt_for(CONTEST, CHAT) and "standard input" not in prompt_for(METHOD, CHAT)


def test_tasks_are_asked_in_the_format_of_self_play() -> None:
    for prompt_format in (CHAT, PromptFormat(FRAMES["compact"])):
        assert prompt_for(TASK, prompt_format) == prompt_format.solve(TASK.task)


@pytest.mark.parametrize("question", [MATHS, FUNCTION, CONTEST])
def test_the_compact_format_has_no_words_for_prose(question: Question) -> None:
    with pytest.raises(UserError, match=r"set model\.prompt_format=chat"):
        prompt_for(question, PromptFormat(FRAMES["compact"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>6 * 7 = \\boxed{1}</think><answer>\\boxed{42}</answer>", "\\boxed{42}"),
        ("<answer>41</answer> no, <answer> 42 </answer>", "42"),
        ("So it is $\\boxed{42}$.", "So it is $\\boxed{42}$."),  # unmarked: judged by its last box
        ("<think>\\boxed{42}", None),
        ("It is 42.", None),
        ("<answer> </answer>", None),
        ("", None),
    ],
)
def test_an_answer_in_mathematics_is_what_is_marked_or_boxed(text: str, expected: str | None) -> None:
    assert read_answer(MATHS, CHAT, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>```python\nwrong\n```</think><answer>\n```python\nright\n```\n</answer>", "right"),
        ("First:\n```python\na\n```\nthen\n```python\n\n  b\n```\n", "  b"),
        ("<answer>def double(x):\n    return 2 * x</answer>", "def double(x):\n    return 2 * x"),
        ("def double(x): ...", None),
        ("```text\nno program\n```", None),
    ],
)
def test_a_program_is_the_last_block_of_the_answer(text: str, expected: str | None) -> None:
    assert read_answer(FUNCTION, CHAT, text) == expected
    assert read_answer(CONTEST, CHAT, text) == expected


CUT_OFF = [
    ("compact", "1234", None),
    ("compact", "<|think|>it is<|/think|>1234", None),
    ("fewshot", "1234", None),
    ("fewshot", "1234\n###", "1234"),
    ("fewshot-trace", "it is\n=> 1234", None),
    ("chat", "<think>it is</think><answer>1234", None),
    ("chat", "<answer>1234</answer> And so", "1234"),
]


@pytest.mark.parametrize(("name", "text", "expected"), CUT_OFF)
def test_the_beginning_of_an_answer_is_none_unless_the_format_closed_it(
    name: str, text: str, expected: str | None
) -> None:
    prompt_format = PromptFormat(FRAMES[name])
    found = read_answer(TASK, prompt_format, text, finished=False)
    assert (found and found.strip()) == expected
    if "<answer>1234" not in text or expected:
        assert (read_answer(TASK, prompt_format, text) or "").strip() == "1234"  # the same text, had it ended there


def test_a_box_or_fence_that_was_cut_off_holds_no_answer() -> None:
    cut = read_answer(MATHS, CHAT, "So it is \\boxed{\\frac{1}{2}, or #### 42", finished=False)
    with Judge() as judge:
        assert not judge.grade([(MATHS, cut)])[0].correct
    assert read_answer(MATHS, CHAT, "So it is \\boxed{42}. Let me", finished=False) == "So it is \\boxed{42}. Let me"
    assert read_answer(FUNCTION, CHAT, "```python\nreturn 2\n", finished=False) is None
    assert read_answer(FUNCTION, CHAT, "```python\nreturn 2\n```\nThis", finished=False) == "return 2"
