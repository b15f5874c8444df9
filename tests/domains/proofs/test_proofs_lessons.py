from random import Random

from lesson_check import check_proposal, check_solution, drawn_lessons, is_proposal

from redqueen.domains.compact import THINK
from redqueen.domains.proofs.calculus import read_proof, write_proof
from redqueen.domains.proofs.formulas import follows, read_lemma, write_lemma
from redqueen.domains.proofs.generator import draw
from redqueen.domains.proofs.kinds import PROOFS
from redqueen.domains.proofs.normal import is_held_out
from redqueen.domains.proofs.prompts_compact import KIND, question
from redqueen.nouns import Task


def test_every_proposal_taught_is_a_valid_lemma_with_its_proof():
    lessons = [lesson for lesson in drawn_lessons(PROOFS, 200, "lessons") if is_proposal(lesson)]
    assert len(lessons) > 50
    for lesson in lessons:
        check_proposal(PROOFS, lesson)


def test_every_proof_taught_is_right_with_a_thought_and_at_once():
    rng = Random("proofs")
    drawn = {question(one.lemma): one for one in (draw(rng) for _ in range(3000))}
    lessons = drawn_lessons(PROOFS, 400, "lessons")
    asked = [lesson for lesson in lessons if not is_proposal(lesson)]
    found = 0
    for lesson in asked:
        text = lesson.prompt.split("|>", 1)[1].split("<|", 1)[0]
        if text in drawn:
            one = drawn[text]
            task = Task("1", "", "", KIND, write_lemma(one.lemma), ("",), (write_proof(one.steps),))
            check_solution(PROOFS, lesson, task)
            found += 1
    assert len(asked) == 400 and found > 20


def test_a_drawn_lemma_is_true_and_its_texts_are_read_back():
    rng = Random("texts")
    for _ in range(300):
        one = draw(rng)
        assert follows(one.lemma) and read_lemma(write_lemma(one.lemma)) == one.lemma
        assert read_proof(write_proof(one.steps), len(one.lemma.hypotheses)) == list(one.steps)


def test_the_habit_is_to_think():
    lesson = next(lesson for lesson in drawn_lessons(PROOFS, 1, "habit") if not is_proposal(lesson))
    thinking, at_once = lesson.completions
    assert thinking[0][0].startswith(THINK) and thinking[0][1] == 1.0
    assert at_once[0][0].isalpha() and abs(1 / (1 + at_once[0][1]) - 0.97) < 1e-9


def test_the_same_seed_gives_the_same_lessons():
    assert drawn_lessons(PROOFS, 20, "same") == drawn_lessons(PROOFS, 20, "same") != drawn_lessons(PROOFS, 20, "other")


def test_no_lesson_shows_a_lemma_of_the_share_that_is_held_out():
    rng = Random("shares")
    assert not any(is_held_out(draw(rng).lemma) for _ in range(200))
    assert all(is_held_out(draw(rng, held_out=True).lemma) for _ in range(20))
