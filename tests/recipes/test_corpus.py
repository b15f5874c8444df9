"""The corpus: what a lesson shows and teaches and with what weight; batch i depends on (stage, i) alone."""

import re
from dataclasses import replace
from random import Random

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from recipes.embedded_base import corpus as corpus_module
from recipes.embedded_base.corpus import IDENTITY, NUM_SHOWN, Author, Corpus, read_vocabulary, words_of
from recipes.embedded_base.lessons import LESSONS, Lesson, Segment
from recipes.embedded_base.problems import EVERYDAY, Problem, skeleton
from recipes.embedded_base.stages import STAGES
from recipes.embedded_base.traces import instrument, run
from recipes.embedded_base.train import held_out_skeletons
from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains.code.prompts_compact import ANSWER, NEW
from redqueen.domains.frames import BOS, END_THINK, EOS, IN, OUT, THINK, asked
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.records import Task

FORMAT = PromptFormat(FRAMES["compact"])
BASIC, EVERYDAY_STAGE, BROAD = STAGES


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    author = Author(Random("corpus test"))
    return [author.problem(1 + i % 5) for i in range(25)]


def text_of(segments: tuple[Segment, ...]) -> str:
    return "".join(text for text, _ in segments)


def test_a_batch_is_a_function_of_stage_and_index(tokenizer: PreTrainedTokenizerBase) -> None:
    stage = replace(BROAD, num_rows=4)
    one, two = Corpus(tokenizer, stage), Corpus(tokenizer, stage)
    _ = two[0]  # earlier reads do not matter
    first, second = one[3], two[3]
    assert torch.equal(first.tokens, second.tokens) and torch.equal(first.weights, second.weights)
    assert not torch.equal(one[4].tokens[0, :40], first.tokens[0, :40])
    assert not torch.equal(Corpus(tokenizer, replace(stage, rng_seed=7))[3].tokens[0, :40], first.tokens[0, :40])
    with pytest.raises(IndexError):
        one[stage.num_steps]


def test_a_completion_that_does_not_fit_a_row_is_left_out(tokenizer: PreTrainedTokenizerBase) -> None:
    small = Corpus(tokenizer, replace(BASIC, row_tokens=40))
    encoded = small._encode(Lesson("def f(a):", ((("1" * 50, 1.0),), (("12", 0.5),))))
    assert encoded is not None and encoded.weights == ((0.5, 0.5),)
    assert small._encode(Lesson("def f(a):", ((("1" * 50, 1.0),),))) is None


def test_a_batch_fills_its_rows_and_weighs_every_completion_token(tokenizer: PreTrainedTokenizerBase) -> None:
    batch = Corpus(tokenizer, replace(BASIC, num_rows=4))[0]
    assert batch.weights.shape == batch.target.shape and batch.weights.dtype == torch.float32
    assert float(batch.weights.min()) >= 0.0 and float(batch.weights.max()) == 1.0
    assert batch.tokens.shape[1] <= 256 and float((batch.segment >= 0).float().mean()) > 0.7
    openings = batch.tokens[batch.row, batch.target] == tokenizer.convert_tokens_to_ids(THINK)
    assert openings.any() and batch.weights[openings].tolist() == pytest.approx([0.12 / 0.88] * int(openings.sum()))


def test_a_batch_holds_each_source_by_its_share_of_tokens(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, digit, longest in (("ones", "1", 30), ("twos", "2", 90)):
        write = lambda rng, digit=digit, most=longest: [Lesson(BOS, (((digit * rng.randint(1, most), 1.0),),))]  # noqa: E731
        monkeypatch.setitem(LESSONS, name, write)
    stage = replace(BROAD, num_rows=16, mixture={"ones": 3.0, "twos": 1.0})
    tokens = Corpus(tokenizer, stage)[0].tokens
    ones, twos = ((tokens == tokenizer.convert_tokens_to_ids(digit)).sum().item() for digit in "12")
    assert ones / (ones + twos) == pytest.approx(0.75, abs=0.03)


def test_words_that_lessons_use_often_become_tokens_and_rare_ones_and_marks_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LESSONS, "sums", lambda rng: [Lesson(f"{BOS}addition{asked('sum')}", ((("4", 1.0),),))])
    vocabulary = read_vocabulary(("basic", "sums"), frozenset(), 300).get_vocab()
    assert "addition" in vocabulary and "ask" not in vocabulary
    lesson = Lesson(f"{BOS}what{asked('sum')}", ((("four", 1.0), (EOS, 1.0)),))
    assert words_of(lesson) == ["what", "sum", "four"]


@pytest.mark.parametrize("kind", ["code_o", "code_i"])
@pytest.mark.parametrize("habit", [0.12, 0.5, 0.97])
def test_the_weights_of_first_tokens_make_thinking_as_frequent_as_the_stage_says(
    problems: list[Problem], kind: str, habit: float
) -> None:
    author, think, direct = Author(Random(0), stage=replace(BASIC, think_frac=habit)), 0.0, 0.0
    for problem in problems:
        for branch in author.solving(problem).completions:
            if branch[0][0].endswith(ANSWER[kind]):
                text, weight = branch[1]
                assert weight <= 1.0
                think += weight * (text == THINK)
                direct += weight * (text != THINK)
    assert think / (think + direct) == pytest.approx(habit)


def test_splitting_off_the_first_token_of_a_direct_answer_does_not_change_its_tokens(
    tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
) -> None:
    author = Author(Random(0), stage=replace(BASIC, think_frac=0.75))
    for problem in problems:
        _, first, rest = author._deduce(problem, 0, think=False)
        whole = tokenizer(f"{problem.runs[0].result}{EOS}", add_special_tokens=False)["input_ids"]
        parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text, _ in (first, rest)]
        assert [*parts[0], *parts[1]] == whole
        assert (first[1], rest[1]) == (pytest.approx(1 / 3), 1.0)


def test_a_solving_lesson_asks_and_answers_as_self_play_does(problems: list[Problem]) -> None:
    for problem in problems[:10]:
        lesson = Author(Random(1)).solving(problem)
        for question, *rest in lesson.completions:
            assert question[1] == 0.0  # the question is not taught
            kind = "code_o" if question[0].startswith(IN) else "code_i"
            shown = question[0].removeprefix(IN).removeprefix(OUT).removesuffix(ANSWER[kind])
            texts = problem.inputs if kind == "code_o" else [found.result for found in problem.runs]
            index = list(texts).index(shown)
            task = Task("x", "", "", kind, problem.code, problem.inputs[index:], (problem.runs[index].result,))
            assert lesson.prompt + question[0] == FORMAT.solve(task)
            answer = FORMAT.parse_answer(kind, text_of(tuple(rest)).removesuffix(EOS)).answer
            result = run(instrument(problem.code), eval(f"({answer},)")).result if kind == "code_i" else answer
            assert result == problem.runs[index].result


@pytest.mark.parametrize("world", [corpus_module.BASIC, EVERYDAY], ids=lambda world: world.name)
def test_a_thought_is_the_trace_of_the_run_and_a_wrong_guess_is_shown_but_not_taught(
    world: corpus_module.World,
) -> None:
    num_wrong = 0
    for seed in range(25):
        author = Author(Random(seed), world=world)
        problem = author.problem(2)
        _, _, thought, answer = author._deduce(problem, 3, think=True)
        assert thought[0] == f"{problem.runs[3].trace}{END_THINK}" and answer[0] == f"{problem.runs[3].result}{EOS}"
        branch = author._abduce(problem, 4, think=True)
        assert branch[-2][0] == f"{problem.inputs[4]}|{problem.runs[4].trace}{END_THINK}"
        if len(branch) == 6:
            num_wrong += 1
            (guess, weight), (verdict, _) = branch[2:4]
            found = run(instrument(problem.code, world.bounds.detailed), eval(f"({guess},)"), world.bounds)
            assert weight == 0.0 and verdict == f"|{found.trace}!" and found.result != problem.runs[4].result
    assert num_wrong > 3


def test_proposals_and_inductions_are_written_as_in_self_play(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems[:10]):
        author = Author(Random(seed))
        induction = author.induction(problem)
        results = tuple(found.result for found in problem.runs)
        task = Task("x", "", "", "code_f", problem.code, problem.inputs, results, problem.message, NUM_SHOWN)
        assert induction.prompt in (FORMAT.solve(task), FORMAT.solve(replace(task, message="")))
        assert text_of(induction.completions[0]) == problem.code + EOS
        about = author.input_proposal(problem)
        assert about.prompt == FORMAT.propose("code_f", (), task)
        parsed = FORMAT.parse_proposal("code_f", text_of(about.completions[0]).removesuffix(EOS), task)
        assert parsed.inputs == problem.inputs and parsed.message == problem.message
        proposal = author.proposal(problem)
        text = text_of(proposal.completions[0])
        new = next(mark for mark in (NEW["code_o"], NEW["code_i"]) if mark in text)
        read = FORMAT.parse_proposal("code_o", text.split(new)[1].removesuffix(EOS), None)
        assert (read.code, read.inputs) == (problem.code + "\n", (problem.inputs[0],)) and proposal.prompt == BOS


def test_no_lesson_holds_a_program_of_the_frozen_suites() -> None:
    held_out = held_out_skeletons()
    assert len(held_out) > 750
    # With the seed of the suite's generated half the first draws are programs of the suite, so many are met.
    free, bound = Author(Random("frozen suite/1")), Author(Random("frozen suite/1"), held_out)
    assert sum(skeleton(free.problem(1).code) in held_out for _ in range(20)) > 10
    lessons = [lesson for _ in range(60) for lesson in bound.lessons()]
    texts = [lesson.prompt + "".join(map(text_of, lesson.completions)) for lesson in lessons]
    programs = {part for text in texts for part in re.split(r"<\|[^|]+\|>", text) if part.startswith("def ")}
    # The identity program is a reference in the first buffer of a run: the one exception.
    assert len(programs) > 60 and not {skeleton(program) for program in programs - {IDENTITY}} & held_out
