"""The corpus: what a sample shows, what it teaches and how much, and that batch i depends on (seed, i) alone."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from redqueen.domains.code.prompts_compact import ANSWER, NEW
from redqueen.domains.compact import BOS, END_THINK, EOS, IN, OUT, THINK
from redqueen.domains.domain import Lesson
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.nouns import Task
from redqueen.policy.base_shape import embedded_folder
from redqueen.tiny.corpus import NUM_SHOWN, Author, Batch, Corpus, Segment, Teaching
from redqueen.tiny.generator import LEVEL_WEIGHTS, LEVELS
from redqueen.tiny.problems import Problem
from redqueen.tiny.thought_traces import instrument, run

FORMAT = PromptFormat(FRAMES["compact"])


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    author = Author(Random("corpus test"))
    return [author.problem(1 + i % 5) for i in range(25)]


def corpus(tokenizer: PreTrainedTokenizerBase, rng_seed: int = 0) -> Corpus:
    return Corpus(tokenizer, rng_seed, num_batches=10_000, num_rows=4, row_tokens=320)


def same(one: Batch, two: Batch) -> bool:
    return torch.equal(one.pack.tokens, two.pack.tokens) and torch.equal(one.weights, two.weights)


def text_of(segments: tuple[Segment, ...]) -> str:
    return "".join(text for text, _ in segments)


def test_a_batch_is_a_function_of_seed_and_index(tokenizer: PreTrainedTokenizerBase) -> None:
    one, two = corpus(tokenizer), corpus(tokenizer)
    _ = two[0]  # what was read before plays no part
    assert same(one[3], two[3])
    assert not same(one[3], one[4])
    assert not same(one[3], corpus(tokenizer, 1)[3])


def test_a_corpus_ends_where_its_length_says(tokenizer: PreTrainedTokenizerBase) -> None:
    short = Corpus(tokenizer, 0, 2, 4, 320)
    assert len(short) == 2
    with pytest.raises(IndexError):
        short[2]


def test_levels_are_drawn_in_their_proportion() -> None:
    author = Author(Random("levels"))
    drawn = Counter(author.level() for _ in range(20_000))
    for level, weight in zip(LEVELS, LEVEL_WEIGHTS, strict=True):
        assert drawn[level] / 20_000 == pytest.approx(weight / sum(LEVEL_WEIGHTS), abs=0.015)


def test_a_branch_that_does_not_fit_a_row_is_left_out_and_the_others_stay(tokenizer: PreTrainedTokenizerBase) -> None:
    small = Corpus(tokenizer, 0, 1, 4, row_tokens=40)
    sample = Lesson("def f(a):", ((("1" * 50, 1.0),), (("12", 1.0),)))
    encoded = small._encode(sample)
    assert encoded is not None
    assert [len(c) for c in encoded[0].completions] == [2] and encoded[1] == [[1.0, 1.0]]
    assert small._encode(Lesson("def f(a):", ((("1" * 50, 1.0),),))) is None


def test_a_batch_fills_its_rows_and_gives_every_completion_token_a_weight(tokenizer: PreTrainedTokenizerBase) -> None:
    batch = corpus(tokenizer)[0]
    assert batch.weights.shape == batch.pack.target.shape
    assert batch.weights.dtype == torch.float32
    assert float(batch.weights.min()) >= 0.0 and float(batch.weights.max()) == 1.0
    assert batch.pack.tokens.shape[1] <= 320
    assert float((batch.pack.segment >= 0).float().mean()) > 0.7


def test_the_opening_of_a_thought_is_the_only_token_with_its_weight(tokenizer: PreTrainedTokenizerBase) -> None:
    batch = corpus(tokenizer)[1]
    targets = batch.pack.tokens[batch.pack.row, batch.pack.target]
    openings = targets == tokenizer.convert_tokens_to_ids(THINK)
    expected = 0.12 / 0.88
    assert openings.any()
    assert batch.weights[openings].tolist() == pytest.approx([expected] * int(openings.sum()))


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
@pytest.mark.parametrize("habit", [0.12, 0.5, 0.97])
def test_the_weights_of_first_tokens_make_thinking_as_frequent_as_the_habit_says(
    problems: list[Problem], kind: str, habit: float
) -> None:
    """Of weighted first tokens the share of the think mark is what the base will sample: the habit."""
    author, think, direct = Author(Random(0), teaching=Teaching(think_habit_frac=habit)), 0.0, 0.0
    for problem in problems:
        for branch in author.solving(problem).completions:
            if branch[0][0].endswith(ANSWER[kind]):
                text, weight = branch[1]
                assert weight <= 1.0
                think += weight * (text == THINK)
                direct += weight * (text != THINK)
    assert think / (think + direct) == pytest.approx(habit)


def test_only_the_first_token_of_a_direct_answer_is_turned_down_and_its_tokens_stay_the_same(
    tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
) -> None:
    author = Author(Random(0), teaching=Teaching(think_habit_frac=0.75))
    for problem in problems:
        _, first, rest = author.deduce(problem, 0, think=False)
        whole = tokenizer(f"{problem.runs[0].result}{EOS}", add_special_tokens=False)["input_ids"]
        parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text, _ in (first, rest)]
        assert [*parts[0], *parts[1]] == whole
        assert (first[1], rest[1]) == (pytest.approx(1 / 3), 1.0)


def test_a_solving_sample_asks_and_answers_as_the_format_of_self_play_does(problems: list[Problem]) -> None:
    for problem in problems[:10]:
        sample = Author(Random(1)).solving(problem)
        for branch in sample.completions:
            asked, *rest = branch
            assert asked[1] == 0.0  # what is asked is not taught
            kind: str = "code_o" if asked[0].startswith(IN) else "code_i"
            shown = asked[0].removeprefix(IN).removeprefix(OUT).removesuffix(ANSWER[kind])
            index = next(
                i
                for i in range(len(problem.inputs))
                if shown == (problem.inputs[i] if kind == "code_o" else problem.runs[i].result)
            )
            task = Task("x", "", "", kind, problem.code, problem.inputs[index:], (problem.runs[index].result,))
            assert sample.prompt + asked[0] == FORMAT.solve(task)
            answer = FORMAT.parse_answer(kind, text_of(tuple(rest)).removesuffix(EOS))
            result = run(instrument(problem.code), eval(f"({answer.answer},)")) if kind == "code_i" else None
            assert (result.result if result else answer.answer) == problem.runs[index].result


def test_a_thought_is_the_trace_of_the_run_and_a_wrong_guess_is_shown_but_not_taught(problems: list[Problem]) -> None:
    seen_wrong = 0
    for seed, problem in enumerate(problems):
        author = Author(Random(seed))
        _, _, thought, answer = author.deduce(problem, 3, think=True)
        assert thought[0] == f"{problem.runs[3].trace}{END_THINK}" and answer[0] == f"{problem.runs[3].result}{EOS}"
        branch = author.abduce(problem, 4, think=True)
        assert branch[-2][0] == f"{problem.inputs[4]}|{problem.runs[4].trace}{END_THINK}"
        if len(branch) == 6:
            seen_wrong += 1
            (guess, weight), (verdict, _) = branch[2:4]
            assert weight == 0.0 and re.fullmatch(r"\|.*!", verdict, re.DOTALL)
            assert run(instrument(problem.code), eval(f"({guess},)")).result != problem.runs[4].result
    assert seen_wrong > 3


def test_proposals_and_inductions_are_asked_for_as_in_self_play(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems[:10]):
        author = Author(Random(seed))
        induction = author.induction(problem)
        results = tuple(run.result for run in problem.runs)
        task = Task("x", "", "", "code_f", problem.code, problem.inputs, results, problem.message, NUM_SHOWN)
        assert induction.prompt in (FORMAT.solve(task), FORMAT.solve(replace(task, message="")))
        assert text_of(induction.completions[0]) == problem.code + EOS
        asked = author.input_proposal(problem)
        assert asked.prompt == FORMAT.propose("code_f", (), task)
        parsed = FORMAT.parse_proposal("code_f", text_of(asked.completions[0]).removesuffix(EOS), task)
        assert parsed.inputs == problem.inputs and parsed.message == problem.message
        proposal = text_of(author.proposal(problem).completions[0])
        new = next(mark for mark in (NEW["code_o"], NEW["code_i"]) if mark in proposal)
        read = FORMAT.parse_proposal("code_o", proposal.split(new)[1].removesuffix(EOS), None)
        assert (read.code, read.inputs) == (problem.code + "\n", (problem.inputs[0],))
        assert author.proposal(problem).prompt == BOS
