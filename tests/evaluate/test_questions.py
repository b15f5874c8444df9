"""What models are asked, and what is read out of their text."""

import pytest

from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.errors import UserError
from redqueen.evaluate.judging import Judge, definitions
from redqueen.evaluate.questions import (
    Case,
    ContestQuestion,
    FunctionQuestion,
    MathsQuestion,
    Question,
    TaskQuestion,
    prompt_for,
    read_answer,
    styled,
)
from redqueen.records import Task
from redqueen_sandbox.unit_tests import UnitTest

CHAT, PLAIN, FEWSHOT = (PromptFormat(FRAMES[name]) for name in ("chat", "plain", "fewshot"))
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
    with pytest.raises(UserError, match="name another base"):
        prompt_for(question, PromptFormat(FRAMES["compact"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>6 * 7 = \\boxed{1}</think><answer>\\boxed{42}</answer>", "\\boxed{42}"),
        ("<answer>41</answer> no, <answer> 42 </answer>", "42"),
        ("So it is $\\boxed{42}$.", "So it is $\\boxed{42}$."),  # unmarked: judged by its last box
        ("<think>\\boxed{42}", None),  # an unfinished thought
        ("It is 42.", None),
        ("6 * 7 = 42.\n\nThe answer is: 42", "6 * 7 = 42.\n\nThe answer is: 42"),
        ("6 * 7 = 42\n#### 42", "6 * 7 = 42\n#### 42"),
        ("#### Step 1\nThis answer needs no box.", None),
        ("<answer> </answer>", None),
        ("", None),
    ],
)
def test_an_answer_in_mathematics_is_what_is_marked_boxed_or_called_the_answer(text: str, expected: str | None) -> None:
    assert read_answer(MATHS, CHAT, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>```python\nwrong\n```</think><answer>\n```python\nright\n```\n</answer>", "right"),
        ("First:\n```python\na\n```\nthen\n```python\n\n  b\n```\n", "  b"),
        ("<answer>def double(x):\n    return 2 * x</answer>", "def double(x):\n    return 2 * x"),
        ("<think>It doubles.\n```python\na\n```\nOr:\n```python\nb\n```\n", "b"),  # never closed: the last fence
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
    ("chat", "<think>it is</think><answer>1234", None),
    ("chat", "<answer>1234</answer> And so", "1234"),
    ("chat", "<think>it is <answer>1234</answer>", None),
    ("plain", "It is\n```\n1234\n", None),
    ("plain", "It is\n```python\n1234\n```\nbecause", "1234"),
    ("plain", "No: <answer>1234</answer>", "1234"),
]


@pytest.mark.parametrize(("name", "text", "expected"), CUT_OFF)
def test_the_beginning_of_an_answer_is_none_unless_the_format_closed_it(
    name: str, text: str, expected: str | None
) -> None:
    prompt_format = PromptFormat(FRAMES[name])
    found = read_answer(TASK, prompt_format, text, finished=False)
    assert (found and found.strip()) == expected
    if ("<answer>1234" not in text and name != "plain") or expected:
        assert (read_answer(TASK, prompt_format, text) or "").strip() == "1234"  # the same text, had it ended there


def test_a_box_or_fence_that_was_cut_off_holds_no_answer(judge: Judge) -> None:
    cut = read_answer(MATHS, CHAT, "So it is \\boxed{\\frac{1}{2}, or #### 42", finished=False)
    assert not judge.grade([(MATHS, cut)])[0].correct
    assert read_answer(MATHS, PLAIN, "The answer is 42", finished=False) is None
    assert judge.grade([(MATHS, read_answer(MATHS, PLAIN, "The answer is: $42."))])[0].correct
    assert read_answer(MATHS, CHAT, "So it is \\boxed{42}. Let me", finished=False) == "So it is \\boxed{42}. Let me"
    assert read_answer(CONTEST, CHAT, "```python\nprint(2)\n", finished=False) is None
    assert read_answer(FUNCTION, CHAT, "```python\nreturn 2\n", finished=False) == "return 2"  # its tests decide
    assert read_answer(FUNCTION, CHAT, "```python\nreturn 2\n```\nThis", finished=False) == "return 2"


STYLES = [
    ("auto", TASK, "fewshot", "fewshot", "fewshot"),
    ("auto", FUNCTION, "fewshot", "plain", "fewshot"),
    ("auto", MATHS, "chat", "plain", "fewshot"),
    ("auto", MATHS, "compact", "compact", "compact"),
    ("run", MATHS, "chat", "chat", "chat"),
    ("plain", TASK, "fewshot", "plain", "plain"),
]


@pytest.mark.parametrize(("style", "question", "own", "instruct", "base"), STYLES)
def test_a_benchmark_is_asked_in_the_own_style_of_the_model(
    style: str, question: Question, own: str, instruct: str, base: str
) -> None:
    formats = [styled(style, question, PromptFormat(FRAMES[own]), converses).frame for converses in (True, False)]
    assert formats == [FRAMES[instruct], FRAMES[base]]


def test_a_plain_request_has_no_marks() -> None:
    for question in (TASK, MATHS, FUNCTION, CONTEST, METHOD):
        prompt = prompt_for(question, PLAIN)
        assert "<think>" not in prompt and "<answer>" not in prompt
        assert ("boxed" if question is MATHS else "```") in prompt


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (FUNCTION, "    return 2 * x\n\ndef other():\n    pass\n", "    return 2 * x\n"),
        (CONTEST, "print(input())\nassert True\n", "print(input())"),
        (METHOD, "        return 1\nif __name__ == '__main__':\n", METHOD.starter + "        return 1"),
        (MATHS, " It is \\boxed{42}.\n\nProblem: more \\boxed{1}", "It is \\boxed{42}."),
        (MATHS, " It is 42.", None),
        (FUNCTION, "", None),
    ],
)
def test_a_base_continues_a_text_until_another_begins(question: Question, text: str, expected: str | None) -> None:
    assert prompt_for(question, FEWSHOT).endswith(("Solution:", '"""\n', METHOD.starter))
    assert read_answer(question, FEWSHOT, text) == expected


def test_a_continued_function_that_was_cut_off_is_no_answer() -> None:
    assert read_answer(FUNCTION, FEWSHOT, "    return 2 *", finished=False) is None
    assert read_answer(FUNCTION, FEWSHOT, "    return 2\ndef g", finished=False) == "    return 2"


DOUBLE = "def double(x):\n    return x * FACTOR\n"


@pytest.mark.parametrize(
    ("shown", "correct"),
    [
        ("\nprint(double(undefined))\nassert double(1) == 3", True),  # its own examples are wrong, the function is not
        ("\nresult = double(undefined)", True),
        ("\nfor x in range(10**9):\n    double(x)", True),
        ("\nprint(double(1", True),  # cut off while it showed examples
        ("\nFACTOR = 3", False),
        ("\nFACTORS = []\nFACTORS.append(FACTOR)\nprint(double(undefined))", True),
        ("    if x >", False),  # cut off inside the function
        ("\nM = 0x" + 4000 * "F", True),
    ],
)
def test_what_an_answer_runs_for_show_does_not_count(shown: str, correct: bool) -> None:
    question = FunctionQuestion("d", "Double x.", UnitTest("d", "", "assert double(4) == 8", "double"))
    answer = read_answer(question, PLAIN, f"```python\nSIZE = 2\nFACTOR = SIZE\n{DOUBLE}{shown}", finished=False)
    with Judge(1, allow_weak=False) as judge:
        [grade] = judge.grade([(question, answer)])
    assert grade.correct == correct


def test_a_long_chain_does_not_end_the_grading_and_a_table_is_kept(judge: Judge) -> None:
    question = FunctionQuestion("d", "Double x.", UnitTest("d", "", "assert double(4) == 8", "double"))
    chain = "def double(x):\n    return x + x" + 600 * " + 0"
    assert "600" not in chain and definitions(chain, "double") == chain
    table = "\n".join(["T = []", "T.append(2)", "def double(x):", "    return T[0] * x", "T.append(double(None))"])
    assert definitions(table, "double").count("T.append") == 1
    assert definitions("a = 1\n" * 16_000 + "(" + 101 * "\n", "double") == ""
    assert [one.correct for one in judge.grade([(question, chain), (question, table)])] == [True, True]


def test_a_percent_sign_may_be_added_where_a_percentage_is_asked_for() -> None:
    share, price = (MathsQuestion("p", f"What {what} is it?", "60") for what in ("percentage", "price"))
    with Judge(1) as judge:
        grades = judge.grade([(share, "60\\%"), (share, "60"), (share, "6\\%"), (price, "60"), (price, "60\\%")])
    assert [grade.correct for grade in grades] == [True, True, False, True, False]
