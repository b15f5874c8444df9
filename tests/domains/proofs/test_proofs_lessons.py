from random import Random

from lesson_check import COMPACT, check_proposals, check_solutions, drawn_lessons, is_proposal

from redqueen.domains.compact import BOS, NEW, OUT, REF, THINK, asked
from redqueen.domains.proofs.calculus import read_proof, write_proof
from redqueen.domains.proofs.formulas import follows, read_lemma, write_lemma
from redqueen.domains.proofs.generator import draw
from redqueen.domains.proofs.kinds import PROOFS
from redqueen.domains.proofs.normal import is_held_out
from redqueen.domains.proofs.prompts_compact import KIND
from redqueen.nouns import Task
from redqueen.verify import Verifier


def test_every_proposal_taught_is_a_valid_lemma_with_its_proof():
    lessons = [lesson for lesson in drawn_lessons(PROOFS, 200, "lessons") if is_proposal(lesson)]
    with Verifier(workers=1) as verifier:
        new = check_proposals(PROOFS, lessons, verifier)
    assert len(new) > 50
    shown = COMPACT.propose(KIND, new[:2], None)
    assert shown.count(REF) == 2 and shown.endswith(f"{NEW}{KIND}{OUT}")


def test_every_proof_taught_is_right_with_a_thought_and_at_once():
    lessons = [lesson for lesson in drawn_lessons(PROOFS, 200, "lessons") if not is_proposal(lesson)]
    tasks = []
    for lesson in lessons:
        *hypotheses, goal = lesson.prompt.removeprefix(BOS).removesuffix(asked(KIND)).split("\n")
        lemma = ", ".join(line.split(" ")[1] for line in hypotheses) + " |- " + goal.removeprefix("? ")
        tasks.append(Task("1", "", "", KIND, write_lemma(read_lemma(lemma)), ("",), ("id",)))
    with Verifier(workers=1) as verifier:
        check_solutions(lessons, tasks, verifier)


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
