"""The few-shot format: prompts are whole examples and a beginning, and what goes on from them is read without trust."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.config import VerifyConfig, parse_config
from redqueen.domains.code.examples import EXAMPLES, SEEDS
from redqueen.domains.code.suite import KINDS, load_suite
from redqueen.domains.frames import END
from redqueen.domains.prompt_format import FRAMES, PromptFormat, choose_format
from redqueen.domains.registry import check, grade, kinds
from redqueen.records import Candidate, Task
from redqueen.state import initial_state
from redqueen_sandbox import Sandbox

FORMAT = PromptFormat(FRAMES["fewshot"])
GIVEN = Task("g", "T1", "", "code_o", "def f(a, b):\n    return a + b\n", ("1, 2",), ("3",))
PAIRS = Task("p", "T1", "", "code_f", GIVEN.code, ("1, 2", "3, 4", "5, 6"), ("3", "7", "11"), "Adds.", 2)


def as_kind(kind: str) -> Task:
    return PAIRS if kind == "code_f" else Task("t", "T1", "", kind, GIVEN.code, GIVEN.inputs, GIVEN.outputs)


def test_the_examples_are_valid_tasks_with_the_outputs_that_stand_beside_them(verifier: Sandbox) -> None:
    candidates = [
        Candidate(f"c{i}", "T1", "S1", "code_f", "", one.code, one.inputs, one.message)
        for i, one in enumerate(EXAMPLES)
    ]
    judged = check(candidates, verifier, VerifyConfig())
    assert len(judged) == 12
    assert [(one.inputs, one.outputs) for one in judged if isinstance(one, Task)] == [
        (one.inputs, one.outputs) for one in EXAMPLES
    ]


def test_the_seeds_are_valid_tasks_with_the_outputs_that_stand_beside_them(verifier: Sandbox) -> None:
    candidates = [Candidate(seed.id, "T1", "S1", "code_o", "", seed.code, seed.inputs) for seed in SEEDS]
    judged = check(candidates, verifier, VerifyConfig(refuse_constant=True))
    assert [(one.inputs, one.outputs) for one in judged if isinstance(one, Task)] == [
        (seed.inputs, seed.outputs) for seed in SEEDS
    ]


def test_seeds_and_examples_are_of_many_classes_and_no_item_of_the_held_out_suite() -> None:
    kind = kinds()["code_o"]
    assert len({kind.behaviour_class(task) for task in SEEDS}) >= 18
    assert len({kind.behaviour_class(task) for task in EXAMPLES}) >= 11
    held_out = {kind.normal_form(item.task) for item in load_suite()}
    assert not held_out & {kind.normal_form(task) for task in (*SEEDS, *EXAMPLES)}


def test_a_proposal_prompt_shows_the_references_and_breaks_off_in_a_call() -> None:
    prompt = FORMAT.propose("code_o", [GIVEN], None)
    assert f"# f(1, 2) == 3\ndef f(a, b):\n    return a + b\n{END}\n" in prompt
    assert prompt.count(f"\n{END}\n") == 1 + 4, "a buffer with one task is filled up with our own"
    assert prompt.endswith(f"{END}\n# f")
    assert prompt != FORMAT.propose("code_i", [GIVEN], None), "a teacher is told what a student will look for"


def test_a_proposal_is_the_text_up_to_the_end_mark() -> None:
    text = f"([1, 2], (3)) == [-1]\ndef f(a):\n    return -a\n{END}\n# f(b)"
    parsed = FORMAT.parse_proposal("code_i", text, None)
    assert (parsed.code, parsed.inputs, parsed.error) == ("def f(a):\n    return -a\n", ("[1, 2], (3)",), "")


@pytest.mark.parametrize(
    "code",
    [
        "def f(a):\n    return -a\n",
        "def f(a): return -a\n",
        "def f(a): return -a; return 2\n",
        "def f(\n    a,\n):\n        # why\n        return -a\n",
        "def f(a):\n    @g\n    def h():\n        return a\n    return h()\n",
        'def f(a):\n    """Negates.\n\n    >>> f(7)\n    """\n    return -a\n',
        "def f(a):\n    é = 'é'; return é\n",
        "def f(a):\r\n    return -a\r\n",
        "X = 2\ndef g(b):\n    return b\ndef f(a):\n\treturn g(a)\n",
        "f = lambda a: -a\n",
    ],
)
@pytest.mark.parametrize("output", ["3", "') == ('", "(1, 2)"])
def test_a_program_as_it_is_shown_is_read_as_that_program(code: str, output: str) -> None:
    task = Task("t", "T1", "", "code_o", code, ("'(', 1",), (output,))
    shown = FORMAT.propose("code_o", [task], None).split(f"{END}\n")[1]
    parsed = FORMAT.parse_proposal("code_o", shown.removeprefix("# f"), None)
    assert (parsed.code, parsed.error) == (code, "")
    if output != "') == ('":  # a text that reads like a call and its output is given to the input
        assert parsed.inputs == ("'(', 1",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(1) == 2", "no program below the call"),
        (" 1\ndef f(a):\n    return a", "no call of f"),
        ("(1\ndef f(a):\n    return a", "a call that is not closed"),
    ],
)
def test_a_proposal_without_its_call_or_its_program_is_told_so(text: str, error: str) -> None:
    assert FORMAT.parse_proposal("code_o", text, None).error == error


def test_what_a_proposal_says_it_gives_is_not_believed(verifier: Sandbox) -> None:
    parsed = FORMAT.parse_proposal("code_o", "(1, 2) == 7\ndef f(a, b):\n    return a + b\n", None)
    (task,) = check([Candidate("c", "T1", "S1", "code_o", "", parsed.code, parsed.inputs)], verifier, VerifyConfig())
    assert isinstance(task, Task) and task.outputs == ("3",)


def test_pairs_are_proposed_as_a_message_and_calls() -> None:
    prompt = FORMAT.propose("code_f", [], GIVEN)
    assert prompt.endswith(f"{GIVEN.code}\n#")
    parsed = FORMAT.parse_proposal("code_f", f" Adds.\nf(1, 2)\nf(3, 4)\n{END}", GIVEN)
    assert (parsed.message, parsed.inputs, parsed.code) == ("Adds.", ("1, 2", "3, 4"), GIVEN.code)


@pytest.mark.parametrize(
    ("prompt_format", "kind", "text", "answer", "thought"),
    [
        (FORMAT, "code_o", " 3\n###", "3", ""),
        (FORMAT, "code_i", "(1, 2)\n###", "1, 2", ""),
        (FORMAT, "code_i", "((1, 2), 3) == (4, 5)\n###", "(1, 2), 3", ""),
        (FORMAT, "code_i", "f()\n###", "", ""),
        (FORMAT, "code_i", "(') == (', 1) == 3\n###", "') == (', 1", ""),
        (FORMAT, "code_i", "(') == (')\n###", "') == ('", ""),
        (FORMAT, "code_i", "(1) == ') == 2'\n###", "1", ""),
        (FORMAT, "code_i", "(x) == (y) == 2\n###", "x", ""),
        (FORMAT, "code_i", " nothing\n###", None, ""),
        (FORMAT, "code_f", "(a, b):\n    return b + a\n###", "def f(a, b):\n    return b + a\n", ""),
        (FORMAT, "code_o", "\n###", None, ""),
    ],
)
def test_answers_are_read(prompt_format: PromptFormat, kind: str, text: str, answer: str | None, thought: str) -> None:
    parsed = prompt_format.parse_answer(kind, text)
    assert (parsed.answer, parsed.thought) == (answer, thought)


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_answer_in_the_layout_of_the_examples_is_graded_right(kind: str, verifier: Sandbox) -> None:
    written = {"code_o": " 3\n###", "code_i": "(1, 2)\n###", "code_f": "(a, b):\n    return a + b\n###"}
    assert grade([(as_kind(kind), FORMAT.parse_answer(kind, written[kind]).answer)], verifier)[0].correct


@pytest.mark.parametrize("kind", KINDS)
def test_a_solving_prompt_is_always_the_same_and_ends_without_the_answer(kind: str) -> None:
    prompt = FORMAT.solve(as_kind(kind))
    own = prompt.rpartition(END)[2]
    assert prompt == FORMAT.solve(as_kind(kind)) and prompt.count(END) >= 3
    assert (GIVEN.code in own) == (kind != "code_f")
    assert {"code_o": "3", "code_i": "1, 2", "code_f": "5, 6"}[kind] not in own


def test_every_line_of_a_message_is_a_comment() -> None:
    message = "Adds.\nimport os\r\nf(9) == 9"
    lines = FORMAT.solve(replace(PAIRS, message=message)).split("\n")
    assert "# Adds." in lines and "# import os" in lines and "# f(9) == 9" in lines
    assert not {"import os", "f(9) == 9"} & set(lines)


@given(st.text(), st.sampled_from(KINDS))
def test_reading_never_raises(text: str, kind: str) -> None:
    FORMAT.parse_answer(kind, text)
    assert FORMAT.parse_proposal(kind, text, GIVEN).error is not None


def test_a_buffer_begins_with_the_examples_where_they_are_shown_and_with_the_seed_elsewhere() -> None:
    few, chat = (parse_config({"model": {"base": "x", "prompt_format": name}}, "test") for name in ("fewshot", "chat"))
    assert choose_format(few).stops == (END,) and choose_format(chat).stops == ()
    assert initial_state(few).buffer.tasks == SEEDS
    assert len(initial_state(chat).buffer.tasks) == 1
