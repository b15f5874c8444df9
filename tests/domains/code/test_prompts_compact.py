"""The compact format: what is written can be read back, no text can pose as a mark, and reading never fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains import frames
from redqueen.domains.code.prompts_compact import ANSWER, NEW
from redqueen.domains.code.suite import KINDS
from redqueen.domains.frames import BOS, END_THINK, IN, MARKS, MSG, OUT, REF, THINK
from redqueen.domains.prompt_format import FRAMES, ParsedAnswer, ParsedProposal, PromptFormat
from redqueen.records import Task

FORMAT, FORCED = PromptFormat(FRAMES["compact"]), PromptFormat(FRAMES["compact-forced"])
CODE = "def f(x):\n    return x + 1\n"
texts = st.text(max_size=60)
kinds = st.sampled_from(KINDS)


def task(
    kind: str,
    code: str = CODE,
    inputs: tuple[str, ...] = ("1",),
    outputs: tuple[str, ...] = ("2",),
    message: str = "",
    num_shown: int = 0,
) -> Task:
    return Task("1-T1-0", "T1", "S1", kind, code, inputs, outputs, message, num_shown)


GIVEN = task("code_o")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


def test_a_deduction_prompt_shows_program_and_input_and_never_the_output() -> None:
    assert FORMAT.solve(task("code_o", outputs=("987",))) == f"{BOS}{CODE.strip()}{IN}1{ANSWER['code_o']}"


def test_an_abduction_prompt_shows_program_and_output_and_never_the_input() -> None:
    assert FORMAT.solve(task("code_i", inputs=("987",))) == f"{BOS}{CODE.strip()}{OUT}2{ANSWER['code_i']}"


def test_an_induction_prompt_shows_the_message_and_the_shown_pairs_and_neither_program_nor_hidden_pairs() -> None:
    pairs = task("code_f", inputs=("1", "2", "77"), outputs=("2", "3", "78"), message="adds one", num_shown=2)
    assert FORMAT.solve(pairs) == f"{BOS}{MSG}adds one{IN}1{OUT}2{IN}2{OUT}3{ANSWER['code_f']}"


def test_a_long_message_is_left_out_lest_it_holds_the_program() -> None:
    short, long = "m" * frames.MAX_MESSAGE_CHARS, "m" * (frames.MAX_MESSAGE_CHARS + 1)
    assert short in FORMAT.solve(task("code_f", message=short, num_shown=1))
    assert "m" not in FORMAT.solve(task("code_f", message=long, num_shown=1)).replace(MSG, "")


def test_a_proposal_prompt_shows_its_references_with_their_inputs_and_not_their_outputs() -> None:
    references = (
        task("code_o", inputs=("7",), outputs=("987",)),
        task("code_i", "def f(a):\n    return a\n", ("'b'",)),
    )
    for kind in ("code_o", "code_i"):
        assert FORMAT.propose(kind, references, None) == (
            f"{BOS}{REF}{CODE.strip()}{IN}7{REF}def f(a):\n    return a{IN}'b'{NEW[kind]}"
        )
    assert FORMAT.propose("code_o", (), None) == f"{BOS}{NEW['code_o']}"


def test_an_induction_proposal_is_asked_for_with_the_given_program_alone() -> None:
    assert FORMAT.propose("code_f", (GIVEN,), GIVEN) == f"{BOS}{CODE.strip()}{NEW['code_f']}"
    with pytest.raises(ValueError, match="needs a given program"):
        FORMAT.propose("code_f", (), None)


def test_a_proposal_is_read_back_as_program_and_input() -> None:
    for kind in ("code_o", "code_i"):
        assert FORMAT.parse_proposal(kind, f"{CODE.strip()}{IN} 1, 'a' ", None) == ParsedProposal(CODE, ("1, 'a'",))


def test_an_induction_proposal_is_read_back_as_message_and_inputs_for_the_given_program() -> None:
    parsed = FORMAT.parse_proposal("code_f", f" adds one {IN}1{IN} 2 {IN}", GIVEN)
    assert parsed == ParsedProposal(CODE, ("1", "2", ""), "adds one")


@pytest.mark.parametrize(
    ("kind", "text", "given_task", "error"),
    [
        ("code_o", CODE, None, "no input"),
        ("code_i", f"{CODE}{IN}1{IN}2", None, "more than one input"),
        ("code_o", f"{REF}{CODE}{IN}1", None, "a mark where text should be"),
        ("code_f", f"message{IN}1{OUT}2", GIVEN, "a mark where text should be"),
        ("code_f", f"message{IN}1", None, "no given program"),
        ("code_o", "", None, "no input"),
    ],
)
def test_a_proposal_that_cannot_be_read_says_why(kind: str, text: str, given_task: Task | None, error: str) -> None:
    assert FORMAT.parse_proposal(kind, text, given_task) == ParsedProposal(error=error)


def test_an_answer_is_read_with_and_without_a_thought() -> None:
    assert FORMAT.parse_answer("code_o", " [1, 2] ") == ParsedAnswer("[1, 2]", "")
    assert FORMAT.parse_answer("code_i", f"{THINK}x=1;r=2{END_THINK}1") == ParsedAnswer("1", "x=1;r=2")
    assert FORMAT.parse_answer("code_f", CODE.strip()) == ParsedAnswer(CODE, "")


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("", ""),
        ("  \n ", ""),
        (f"{THINK}never ends", "never ends"),
        (f"{THINK}t{END_THINK}", "t"),
        (f"{THINK}t{END_THINK}{THINK}u{END_THINK}1", "t"),
        (f"1{IN}2", ""),
        (f"1{THINK}late{END_THINK}", ""),
    ],
)
def test_a_text_without_a_readable_answer_gives_none_and_keeps_its_thought(text: str, thought: str) -> None:
    assert FORMAT.parse_answer("code_o", text) == ParsedAnswer(None, thought)


def test_every_mark_of_a_code_prompt_is_one_token(tokenizer: PreTrainedTokenizerBase) -> None:
    marks = [mark for mark in MARKS if mark not in (frames.ASK, frames.NEW)]
    assert [len(FORMAT.encode(tokenizer, mark)) for mark in marks] == [1] * len(marks)


@given(kinds, texts, st.booleans())
def test_reading_a_proposal_never_fails_and_gives_either_an_error_or_inputs(kind: str, text: str, has: bool) -> None:
    parsed = FORMAT.parse_proposal(kind, text, GIVEN if has else None)
    assert bool(parsed.error) != bool(parsed.inputs)


@given(kinds, st.lists(st.one_of(texts, st.sampled_from(MARKS)), max_size=6).map("".join))
def test_reading_any_mixture_of_text_and_marks_never_fails(kind: str, text: str) -> None:
    proposal, answer = FORMAT.parse_proposal(kind, text, GIVEN), FORMAT.parse_answer(kind, text)
    for part in (proposal.code, proposal.message, *proposal.inputs, answer.answer or ""):
        assert not any(mark in part for mark in MARKS)


unmarked = st.text(st.characters(codec="utf-8"), max_size=40).filter(lambda text: "<|" not in text)


@given(unmarked, unmarked)
def test_a_prompt_has_the_marks_of_its_format_alone_where_its_task_has_none(code: str, literal: str) -> None:
    written = FORMAT.solve(task("code_o", code=code, inputs=(repr(literal),)))
    assert written.count("<|") == 3 and written.startswith(BOS) and written.endswith(ANSWER["code_o"])
    written = FORMAT.solve(task("code_f", message=literal, inputs=(repr(code),), outputs=(repr(literal),), num_shown=1))
    assert written.count("<|") == 5


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_forced_thought_is_opened_in_the_prompt_and_read_as_if_the_solver_had_opened_it(kind: str) -> None:
    assert FORCED.solve(task(kind)) == FORMAT.solve(task(kind)) + THINK
    assert FORCED.parse_answer(kind, f"x=1{END_THINK}2") == FORMAT.parse_answer(kind, f"{THINK}x=1{END_THINK}2")
    assert FORCED.parse_answer(kind, "2") == ParsedAnswer(None, "2")  # a thought that never ends


def test_a_program_to_write_is_asked_for_alike_forced_or_not() -> None:
    asked = task("code_f", num_shown=1)
    assert FORCED.solve(asked) == FORMAT.solve(asked)
    assert FORCED.parse_answer("code_f", CODE) == FORMAT.parse_answer("code_f", CODE)
