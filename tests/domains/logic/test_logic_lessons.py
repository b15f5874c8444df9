from random import Random

from lesson_check import COMPACT, as_tasks, check_proposals, check_solutions, drawn_lessons, is_proposal

from redqueen.domains.compact import BOS, IN, THINK, asked
from redqueen.domains.logic.generator import draw
from redqueen.domains.logic.kinds import LOGIC
from redqueen.domains.logic.language import read_puzzle, write_puzzle
from redqueen.domains.logic.normal import is_held_out
from redqueen.domains.logic.prompts_compact import KIND
from redqueen.verify import Verifier


def test_every_lesson_is_a_right_answer_or_a_valid_proposal_in_the_form_of_self_play():
    lessons = drawn_lessons(LOGIC, 50, "lessons")
    proposals = [lesson for lesson in lessons if is_proposal(lesson)]
    solutions = [lesson for lesson in lessons if not is_proposal(lesson)]
    asked_for = [lesson.prompt.removeprefix(BOS).removesuffix(asked(KIND)) for lesson in solutions]
    with Verifier(workers=1) as verifier:
        new = check_proposals(LOGIC, proposals, verifier)
        check_solutions(solutions, as_tasks(LOGIC, asked_for, verifier), verifier)
    assert len(solutions) == 50 and 12 < len(proposals) < 38
    assert COMPACT.propose(KIND, new[:2], None).count(new[0].outputs[0] + IN) == 1


def test_the_habit_is_to_think():
    lesson = next(lesson for lesson in drawn_lessons(LOGIC, 1, "habit") if not is_proposal(lesson))
    thinking, at_once = lesson.completions
    assert thinking[0][0].startswith(THINK) and thinking[0][1] == 1.0
    assert at_once[0][0].isalpha() and abs(1 / (1 + at_once[0][1]) - 0.97) < 1e-9


def test_the_same_seed_gives_the_same_lessons():
    assert drawn_lessons(LOGIC, 20, "same") == drawn_lessons(LOGIC, 20, "same") != drawn_lessons(LOGIC, 20, "other")


def test_no_lesson_shows_a_puzzle_of_the_share_that_is_held_out():
    rng = Random("shares")
    assert not any(is_held_out(draw(rng).puzzle) for _ in range(200))
    assert all(is_held_out(draw(rng, held_out=True).puzzle) for _ in range(20))


def test_a_drawn_puzzle_is_read_back_from_its_text():
    rng = Random("texts")
    for _ in range(300):
        puzzle = draw(rng).puzzle
        assert read_puzzle(write_puzzle(puzzle)) == puzzle
