"""Solving: who is asked what, how answers are read and graded, and which attempts count."""

import pytest
from scripted import Scripted, half, right
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains.frames import END_THINK, THINK
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.records import Attempt, Grade, Individual, Outcome, Rating, Task
from redqueen.solve import GradedAttempts, SampledAttempts, grade, sample_attempts
from redqueen.streams import Streams
from redqueen_sandbox import Sandbox

STUDENTS = {name: Individual(name, "student", slot, Rating(25, 8)) for name, slot in (("S1", 2), ("S2", 3))}
FORMAT = PromptFormat(FRAMES["compact"])


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


def task(name: str, teacher: str = "T1", kind: str = "code_o") -> Task:
    return Task(name, teacher, "S1", kind, "def f(x):\n    return x + 1\n", ("1",), ("2",))


def ask(sampler: Scripted, tasks: list[Task], opponents: dict[str, tuple[str, ...]]) -> list[SampledAttempts]:
    pairs = [(one, STUDENTS[name]) for one in tasks for name in opponents[one.teacher]]
    return sample_attempts(pairs, 3, sampler, FORMAT, sampler.tokenizer, Streams(0, 1))


def test_every_task_goes_to_the_students_its_teacher_meets_as_one_request_each(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    sampler = Scripted(tokenizer, right)
    sampled = ask(sampler, [task("a"), task("b", "T2")], {"T1": ("S2",), "T2": ("S1", "S2")})
    assert [(one.task.id, one.student.id, len(one.completions)) for one in sampled] == [
        ("a", "S2", 3),
        ("b", "S1", 3),
        ("b", "S2", 3),
    ]
    assert [(r.slot, r.num_samples) for r in sampler.requests] == [(3, 3), (2, 3), (3, 3)]
    assert len({r.rng_seed for r in sampler.requests}) == 3
    assert tokenizer.decode(list(sampler.requests[0].prompt)) == FORMAT.solve(task("a"))


def test_without_tasks_nobody_is_asked(tokenizer: PreTrainedTokenizerBase) -> None:
    sampler = Scripted(tokenizer, right)
    assert ask(sampler, [], {"T1": ("S1",)}) == [] and sampler.requests == []


def test_attempts_are_graded_each_by_its_own_answer(tokenizer: PreTrainedTokenizerBase, verifier: Sandbox) -> None:
    sampler = Scripted(tokenizer, half)
    sampled = ask(sampler, [task("a"), task("b", kind="code_i")], {"T1": ("S1",)})
    answered = grade(sampled, verifier, FORMAT, tokenizer)  # type: ignore[arg-type]
    assert [[o.grade.correct for o in one.outcomes] for one in answered] == [[True, False, True]] * 2
    assert [[o.attempt.answer for o in one.outcomes] for one in answered] == [["2", "-999", "2"], ["1", "-999", "1"]]
    assert [one.solve_frac for one in answered] == [2 / 3, 2 / 3]
    assert {(o.attempt.task_id, o.attempt.student) for one in answered for o in one.outcomes} == {
        ("a", "S1"),
        ("b", "S1"),
    }


def test_the_thought_is_kept_beside_the_answer_and_all_tokens_are_counted(
    tokenizer: PreTrainedTokenizerBase, verifier: Sandbox
) -> None:
    sampler = Scripted(tokenizer, lambda *_: f"{THINK}x=1;r=2{END_THINK}2")
    (one,) = grade(ask(sampler, [task("a")], {"T1": ("S1",)}), verifier, FORMAT, tokenizer)  # type: ignore[arg-type]
    attempt = one.outcomes[0].attempt
    assert (attempt.thought, attempt.answer, attempt.text) == ("x=1;r=2", "2", f"{THINK}x=1;r=2{END_THINK}2")
    assert attempt.num_tokens == len(one.completions[0].tokens)


def test_an_answer_that_was_cut_off_is_none_even_when_it_could_be_read(
    tokenizer: PreTrainedTokenizerBase, verifier: Sandbox
) -> None:
    sampler = Scripted(tokenizer, lambda *_: None)
    (one,) = grade(ask(sampler, [task("a")], {"T1": ("S1",)}), verifier, FORMAT, tokenizer)  # type: ignore[arg-type]
    assert {(o.attempt.answer, o.attempt.text, o.grade.verdict) for o in one.outcomes} == {(None, "cut", "unparsable")}


def test_a_lost_attempt_does_not_count_and_a_task_whose_attempts_are_all_lost_has_no_rate() -> None:
    lost, right_, wrong_ = Grade(False, "infra", lost=True), Grade(True, "ok"), Grade(False, "ok")

    def answered(*grades: Grade) -> GradedAttempts:
        outcomes = tuple(Outcome(Attempt("a", "S1", "", "1"), g) for g in grades)
        return GradedAttempts(task("a"), STUDENTS["S1"], (1,), (), outcomes)

    assert answered(right_, lost, wrong_, wrong_).kept == [0, 2, 3]
    assert answered(right_, lost, wrong_, wrong_).solve_frac == pytest.approx(1 / 3)
    assert answered(lost, lost).kept == [] and answered(lost, lost).solve_frac is None
