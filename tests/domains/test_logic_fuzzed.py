"""Whatever a model writes, reading, checking and grading end with a verdict, and the judge's guard is never needed."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.domains.logic.checking import grade_assignment
from redqueen.domains.logic.deduction import Solver, TooHardError
from redqueen.domains.logic.kinds import PUZZLE
from redqueen.domains.logic.language import PuzzleError, read_puzzle, write_answer, write_puzzle
from redqueen.domains.logic.measures import measure, normal_form, size_of, sort_of
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.records import Task
from redqueen_sandbox.programs import Rules
from redqueen_sandbox.records import Limits

RULES = Rules(Limits(), 2, "full")
FORMATS = [PromptFormat(FRAMES["compact"]), PromptFormat(FRAMES["chat"])]


def texts_of(pieces: list[str], most: int) -> st.SearchStrategy[str]:
    """Texts of pieces of a language, with other signs among them now and then."""
    return st.lists(st.sampled_from(pieces) | st.text(max_size=3), max_size=most).map("".join)


SIGNS = ["\n", "A", "B", "C", " = ", " < ", " + ", " * ", " % ", "|", "(", ")", ": ", "1", "2", ", "]
PUZZLES = texts_of(["order A B", "number A B, 0 4", "knights A B", *SIGNS, " and ", " or ", "not "], 16)


@settings(max_examples=300, deadline=None)
@given(PUZZLES)
def test_a_puzzle_is_read_or_refused_and_what_is_read_is_written_so_that_it_is_read_again(text: str) -> None:
    try:
        puzzle = read_puzzle(text)
    except PuzzleError as refusal:
        assert str(refusal)
        return
    assert read_puzzle(write_puzzle(puzzle)) == puzzle and normal_form(puzzle)
    with contextlib.suppress(TooHardError):
        assert len(Solver(puzzle).solve().solutions) <= 2
    task = Task("1", "", "", PUZZLE.name, write_puzzle(puzzle), ("",), ("",))
    assert measure(task) and sort_of(task) and size_of(task)


NAMES = st.lists(
    st.sampled_from(["knight", "knave", "king", "is", "x", "isknight", "Knights"])
    | st.from_regex(r"[A-Za-z]{1,8}", fullmatch=True),
    min_size=2,
    max_size=25,
    unique=True,
)


@settings(max_examples=300, deadline=None)
@given(NAMES, st.sampled_from(["order", "number", "knights"]), st.integers(0, 9_900))
def test_the_gold_answer_of_a_puzzle_is_right_whatever_its_names_are(names: list[str], sort: str, low: int) -> None:
    first = f"{sort} {' '.join(names)}" + (f", {low} {low + 99}" if sort == "number" else "")
    clue = f"{names[0]}: {names[0]} = 1" if sort == "knights" else f"{names[0]} < {names[1]}"
    try:
        puzzle = read_puzzle(f"{first}\n{clue}")
    except PuzzleError:
        return  # a word of the language
    values = tuple(puzzle.values[at % len(puzzle.values)] for at in range(len(names)))
    gold = write_answer(puzzle, values)
    task = Task("1", "", "", PUZZLE.name, write_puzzle(puzzle), ("",), (gold,))
    assert grade_assignment(task, PUZZLE.gold(task), RULES).correct


def test_only_among_knights_is_a_value_a_knight() -> None:
    for code, answer, is_right in (
        ("order king knight rook\nking < knight\nknight < rook", "king = 1, knight = 2, rook = 3", True),
        ("order king knight rook\nking < knight\nknight < rook", "king = knight, knight = 2, rook = 3", False),
        ("number knave x, 1 9\nknave < x", "knave is 1, x is 2", True),
        ("number knave x, 1 9\nknave < x", "knave is knight, x is 2", False),
        ("knights A B\nA: not B", "A = knight, B = knave", True),
    ):
        gold = answer.replace("= knight", "= 1").replace("knave is knight", "knave is 1").replace("= knave", "= 0")
        task = Task("1", "", "", PUZZLE.name, code, ("",), (gold,))
        assert grade_assignment(task, answer, RULES).correct is is_right, answer


@settings(max_examples=200, deadline=None)
@given(texts_of(["<|in|>", "<|ref|>", "<think>", "</think>", "<answer>", "```puzzle\n", "```", "\n", "1 p"], 12))
def test_prompts_answers_are_read_without_an_exception(text: str) -> None:
    for prompt_format in FORMATS:
        prompt_format.parse_proposal(PUZZLE.name, text, None)
        prompt_format.parse_answer(PUZZLE.name, text)
