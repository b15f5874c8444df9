"""The published benchmarks, where they are at hand: every gold answer is right, every spoiled one is wrong.

The fast suite takes a sample of each; the slow one takes all items.
"""

import re
from collections.abc import Callable, Sequence

import pytest
from benchmark_data import BENCHMARK_FILES, benchmark_file

from redqueen.evaluate.benchmarks import load_questions
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import FunctionQuestion, MathsQuestion, Question, TaskQuestion

GOLD_NOT_RIGHT = {
    "cruxeval-i": {
        "sample_258": "its input names a variable that the program does not have outside a function: no literal",
        "sample_344": "its input is a lambda: no literal",
        "sample_364": "its input is a lambda: no literal",
    },
    "mbpp+": {
        "Mbpp/255": "one input asks for 1.7 million tuples of 77 items: more memory than tests and program may have",
        "Mbpp/599": "two dozen inputs add up the numbers to 10^8 one by one: minutes, where half a minute is given",
        "Mbpp/630": "two inputs give 59,049 lists of ten: longer than the million characters a value may have",
    },
}
"""Items whose published answer is not right here, and why."""

ALWAYS_TRIED = {
    "Mbpp/124", "Mbpp/252", "Mbpp/404", "Mbpp/579", "Mbpp/737", "Mbpp/769", "sample_135", "sample_258",
    "sample_344", "sample_364",
}  # fmt: skip
"""Complex arguments (124, 252: by the contract alone), infinity, values in the order of a set (579, 769), values that
are only true or false; a program without arguments; gold that is not right."""

MATHS = ("gsm8k", "math500", "aime24", "aime25", "amc23")
PROGRAMS = ("humaneval", "mbpp+")
TASKS = ("cruxeval-o", "cruxeval-i")

SPOILED = """
_space = {{}}
exec({code!r}, _space)

def _spoiled(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float, complex)):
        return value + abs(value) + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, (list, tuple)):
        return type(value)([*value, "x"])
    if isinstance(value, dict):
        return {{**value, "x": "x"}}
    if isinstance(value, (set, frozenset)):
        return value | {{"x"}}
    return not value

def {entry}(*args, **kwargs):
    return _spoiled(_space[{entry!r}](*args, **kwargs))
"""
"""A program that calls a right one and returns another value of the same type."""


SPOILED_MATHS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"\d", lambda digit: str((int(digit[0]) + 1) % 10)),
    (r"(\d)(?!.*\d)", lambda digit: str((int(digit[0]) + 1) % 10)),
    (r"^-", ""),
    (r"^(?=[1-9a-z\\$])", "-"),
    (r"^(?=[1-9][\d,]*$)", "1"),
    (r"^[1-9]\d*$", r"\g<0>\\%"),
    (r"^[1-9]\d*$", r"\g<0>_7"),
    (r"^[1-9]\d*$", r"\g<0> thousand"),
    (r"^[1-9]\d*$", r"\\pm \g<0>"),
    (r"^[1-9]\d*$", r"\g<0> or 0.5"),
    (r"^[1-9]\d*$", r"\g<0>.0000001"),
    (r"_\{?(\d)\}?$", r"_1\1"),
    (r"inches|cents", "miles"),
    (r"cm", "mm"),
    (r"\^2$", "^3"),
    (r"\\pm", "+"),
    (r"\\sqrt", r"2\\sqrt"),
    (r"\\pi", r"\\pi^2"),
    (r"\\cup", r"\\cap"),
    (r"\](?=$)", ")"),
    (r"^\[", "("),
    (r"(?<=[0-9 y])\)$", "]"),
    (r"^\\left\( (.*), (.*) \\right\)$|^\((-?\d+),(-?\d+)\)$", lambda p: f"({p[2] or p[4]},{p[1] or p[3]})"),
    (r"(.*) & (.*)", r"\2 & \1 \\\\"),
    (r"(?<=^\\text\{)(?=\w+\}$)", "un"),
]  # fmt: skip
"""Ways to spoil a gold answer: another digit, sign, unit, base or bracket, one of two values, parts in other order."""


def items_of(suite: str, every: int = 1) -> list[Question]:
    questions = load_questions(suite, benchmark_file(suite))
    return [q for i, q in enumerate(questions) if i % every == 0 or q.id in ALWAYS_TRIED]


def spoiled(question: Question) -> list[str]:
    """Answers to a question that are certainly wrong."""
    gold = question.gold
    assert gold is not None
    match question:
        case TaskQuestion() if question.task.kind == "code_o":
            return [f"[{gold}]", f"({gold}, 0)", "None" if gold != "None" else "0"]
        case TaskQuestion():
            few = [""] if gold else []  # for a function without arguments no argument is right
            return [*few, "1, 2, 3, 4, 5, 6, 7, 8, 9"]  # too few arguments and too many
        case MathsQuestion():
            changed = {re.sub(*spoiling, gold, count=1) for spoiling in SPOILED_MATHS} - {gold}
            changed -= {f"{gold}\\%"} if "percent" in question.text else set()
            return ["\\boxed{17.5}", f"{gold} + 1", *(f"\\boxed{{{one}}}" for one in changed)]
        case FunctionQuestion():
            return [SPOILED.format(code=question.stub + gold, entry=question.test.entry)]
        case _:
            raise AssertionError(question)


def check_gold(judge: Judge, suite: str, questions: Sequence[Question]) -> None:
    grades = judge.grade([(question, question.gold) for question in questions])
    wrong = {question.id for question, grade in zip(questions, grades, strict=True) if not grade.correct}
    assert wrong == {question.id for question in questions} & set(GOLD_NOT_RIGHT.get(suite, {}))


def check_spoiled(judge: Judge, questions: Sequence[Question]) -> None:
    pairs = [(question, answer) for question in questions for answer in spoiled(question)]
    grades = judge.grade(pairs)
    assert [
        (q.id, answer) for (q, answer), grade in zip(pairs, grades, strict=True) if grade.correct or grade.lost
    ] == []


def needs(suite: str) -> None:
    if suite in MATHS:
        pytest.importorskip("math_verify", reason="math-verify is not installed (extra: maths)")


EVERY = {
    "cruxeval-o": 20, "cruxeval-i": 40, "humaneval": 33, "mbpp+": 90, "gsm8k": 20, "math500": 20, "aime24": 3,
    "aime25": 3, "amc23": 4,
}  # fmt: skip
"""How thin the fast suite's sample of each suite is."""


@pytest.mark.parametrize(("suite", "every"), list(EVERY.items()))
def test_a_sample_of_gold_answers_is_right_and_spoiled_ones_are_wrong(judge: Judge, suite: str, every: int) -> None:
    needs(suite)
    questions = items_of(suite, every)
    check_gold(judge, suite, questions)
    check_spoiled(judge, questions[:12])


@pytest.mark.slow
@pytest.mark.parametrize("suite", BENCHMARK_FILES)
def test_every_gold_answer_is_right(judge: Judge, suite: str) -> None:
    needs(suite)
    check_gold(judge, suite, items_of(suite))


@pytest.mark.slow
@pytest.mark.parametrize("suite", BENCHMARK_FILES)
def test_every_spoiled_answer_is_wrong(judge: Judge, suite: str) -> None:
    needs(suite)
    check_spoiled(judge, items_of(suite))


def test_whole_answers_as_models_write_them_are_read(judge: Judge) -> None:
    pytest.importorskip("math_verify", reason="math-verify is not installed (extra: maths)")
    problems = load_questions("gsm8k", benchmark_file("gsm8k"), limit=20)
    answers = [
        f"So she makes ${question.gold} a day. The answer is \\boxed{{{question.gold}}}." for question in problems
    ]
    assert all(grade.correct for grade in judge.grade(list(zip(problems, answers, strict=True))))


def test_a_whole_program_is_as_good_as_the_rest_of_the_stub(judge: Judge) -> None:
    questions = [
        q for q in load_questions("humaneval", benchmark_file("humaneval")) if q.id in ("HumanEval/0", "HumanEval/38")
    ]
    assert len(questions) == 2
    pairs: list[tuple[Question, str | None]] = []
    for question in questions:
        assert isinstance(question, FunctionQuestion)
        pairs.append((question, f"```python\n{question.stub}{question.gold}```"))
    assert [grade.correct for grade in judge.grade(pairs)] == [True, True]
