"""Solving: who is asked what, how answers are read and graded, and which attempts count."""

import pytest
from scripted import Scripted, half, right
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from redqueen.adapters.base_shape import embedded_folder
from redqueen.domains.frames import END_THINK, THINK
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.match import STANDARD
from redqueen.records import Attempt, Grade, Individual, Match, Outcome, Rating, Task
from redqueen.solve import (
    Game,
    GradedAttempts,
    SampledAttempts,
    draw_anchors,
    grade,
    rated,
    sample_attempts,
    score_games,
)
from redqueen.streams import Streams
from redqueen_sandbox import Sandbox

STUDENTS = {name: Individual(name, "student", slot, Rating(25, 8)) for name, slot in (("S1", 2), ("S2", 3))}
FORMAT = PromptFormat(FRAMES["compact"])
LOST, RIGHT, WRONG = Grade(False, "infra", lost=True), Grade(True, "ok"), Grade(False, "ok")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(embedded_folder())


def task(name: str, teacher: str = "T1", kind: str = "code_o") -> Task:
    return Task(name, teacher, "S1", kind, "def f(x):\n    return x + 1\n", ("1",), ("2",))


def answered(*grades: Grade, name: str = "a") -> GradedAttempts:
    outcomes = tuple(Outcome(Attempt(name, "S1", "", "1"), g) for g in grades)
    return GradedAttempts(task(name), STUDENTS["S1"], (1,), (), outcomes)


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
    graded = grade(sampled, verifier, FORMAT, tokenizer)  # type: ignore[arg-type]
    assert [[o.grade.correct for o in one.outcomes] for one in graded] == [[True, False, True]] * 2
    assert [[o.attempt.answer for o in one.outcomes] for one in graded] == [["2", "-999", "2"], ["1", "-999", "1"]]
    assert [one.solve_frac for one in graded] == [2 / 3, 2 / 3]
    assert {(o.attempt.task_id, o.attempt.student) for one in graded for o in one.outcomes} == {
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
    assert answered(RIGHT, LOST, WRONG, WRONG).kept == [0, 2, 3]
    assert answered(RIGHT, LOST, WRONG, WRONG).solve_frac == pytest.approx(1 / 3)
    assert answered(LOST, LOST).kept == [] and answered(LOST, LOST).solve_frac is None


def test_the_tasks_of_a_game_weigh_the_same_however_many_attempts_were_lost() -> None:
    attempts = [answered(RIGHT, LOST, LOST, LOST), answered(WRONG, WRONG, WRONG, WRONG, name="b")]
    (game,) = score_games([Match("T1", "S1", 0.4)], [task("a"), task("b")], attempts)
    assert (game.solve_frac, game.winner) == (0.5, "student")


def test_a_past_member_has_the_rating_it_entered_with_in_every_game_of_a_step() -> None:
    past = Individual("T1@2", "teacher", 4, Rating(30, 2))
    games = [Game(Match(past.id, name, 0.3), 1, 1.0, "student") for name in STUDENTS]
    _, expected = STANDARD.update(past.rating, Rating(25, 8), "student")
    assert [one.rating for one in rated(tuple(STUDENTS.values()), (past,), games)] == [expected, expected]


def test_anchors_are_their_share_of_each_students_tasks_drawn_for_each_student() -> None:
    anchors = [task(f"own-{number}") for number in range(40)]
    pairs = [(task(str(number)), student) for student in STUDENTS.values() for number in range(9)]
    drawn = draw_anchors(pairs, anchors, 0.25, Streams(0, 1))
    of_each = [[one.id for one, student in drawn if student.id == name] for name in STUDENTS]
    assert [len(set(names)) for names in of_each] == [3, 3]  # of 12
    assert of_each[0] != of_each[1]
    assert draw_anchors(pairs, anchors[:1], 0.25, Streams(0, 1)) == [(anchors[0], one) for one in STUDENTS.values()]
