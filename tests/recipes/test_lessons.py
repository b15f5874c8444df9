"""Lessons of mathematics, puzzles and proofs: in the form of self-play, right, and apart from the frozen suites."""

import itertools
from random import Random

import pytest

from recipes.embedded_base import exercises, lemmas, puzzles
from recipes.embedded_base.lessons import LESSONS, THINK_FRAC, Lesson
from recipes.embedded_base.tokenizer import pieces_of
from redqueen.domains.frames import BOS, EOS, IN, MARKS, MSG, NEW, REF, THINK, asked, new
from redqueen.domains.logic.language import read_puzzle, write_puzzle
from redqueen.domains.maths.kinds import FORMAL, WORD, load_suite
from redqueen.domains.maths.language import normal_form
from redqueen.domains.maths.solver import solve
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check, grade, open_domain
from redqueen.records import Candidate, Task
from redqueen_proofs.calculus import read_proof, write_proof
from redqueen_proofs.formulas import follows, read_lemma, write_lemma
from redqueen_sandbox import Sandbox

FORMAT = PromptFormat(FRAMES["compact"])
DOMAIN_NAMES = {"proofs": "redqueen_proofs.kinds:PROOFS"}
"""What a domain is called where its package is not installed."""


def drawn(domain: str, num: int, seed: str = "lessons") -> tuple[list[Lesson], list[Lesson]]:
    """The solving and the proposing lessons of so many problems."""
    rng = Random(seed)
    lessons = [lesson for _ in range(num) for lesson in LESSONS[domain](rng)]
    proposing = [any(text.startswith(NEW) for text, _ in lesson.completions[0]) for lesson in lessons]
    halves = [[lesson for lesson, one in zip(lessons, proposing, strict=True) if one is kind] for kind in (False, True)]
    return halves[0], halves[1]


def texts(lesson: Lesson) -> list[str]:
    return ["".join(text for text, _ in branch) for branch in lesson.completions]


def as_tasks(domain: str, written: list[str], verifier: Sandbox) -> list[Task]:
    """Read proposals as self-play does, and check them; all must be tasks."""
    kind = open_domain(DOMAIN_NAMES.get(domain, domain)).kinds[0].name
    candidates = []
    for number, text in enumerate(written):
        read = FORMAT.parse_proposal(kind, text, None)
        assert not read.error, (text, read.error)
        if domain == "logic" and IN in text:
            assert read.code == text.split(IN)[1]  # a right proposal is not mended
        candidates.append(Candidate(str(number), "T", "S", kind, "", read.code, read.inputs, read.message))
    found = check(candidates, verifier)
    tasks = [task for task in found if isinstance(task, Task)]
    assert len(tasks) == len(found), [one for one in found if not isinstance(one, Task)][:3]
    return tasks


def lemma_of(lesson: Lesson) -> Task:
    *hypotheses, goal = lesson.prompt.removeprefix(BOS).removesuffix(asked("proof_lemma")).split("\n")
    lemma = ", ".join(line.split(" ")[1] for line in hypotheses) + " |- " + goal.removeprefix("? ")
    return Task("1", "", "", "proof_lemma", write_lemma(read_lemma(lemma)), ("",), ("id",))


@pytest.mark.parametrize(("domain", "num"), [("logic", 30), ("proofs", 60)])
def test_every_lesson_is_a_right_answer_or_a_valid_proposal_in_the_form_of_self_play(domain: str, num: int) -> None:
    solving, proposing = drawn(domain, num)
    assert len(solving) == num and num / 4 < len(proposing) < 3 * num / 4
    parts = [[text.removesuffix(EOS) for text, weight in one.completions[0] if weight > 0] for one in proposing]
    with Sandbox(workers=1) as verifier:
        as_tasks(domain, [text for part in parts for text in part], verifier)  # references and new tasks
        if domain == "proofs":
            tasks = [lemma_of(lesson) for lesson in solving]
        else:
            ending = asked(open_domain(DOMAIN_NAMES.get(domain, domain)).kinds[0].name)
            tasks = as_tasks(domain, [one.prompt.removeprefix(BOS).removesuffix(ending) for one in solving], verifier)
        pairs = []
        for lesson, task in zip(solving, tasks, strict=True):
            assert lesson.prompt == FORMAT.solve(task)
            thinking, at_once = (FORMAT.parse_answer(task.kind, text.removesuffix(EOS)) for text in texts(lesson))
            assert thinking.thought and not at_once.thought
            pairs += [(task, thinking.answer), (task, at_once.answer)]
        assert all(found.correct for found in grade(pairs, verifier))


def test_exercises_are_asked_as_in_self_play_and_both_answers_are_right() -> None:
    solving, _ = drawn("maths", 400)
    for lesson in solving:
        kind = FORMAL.name if lesson.prompt.endswith(asked(FORMAL.name)) else WORD.name
        shown = lesson.prompt.removeprefix(BOS).removeprefix(MSG).removesuffix(asked(kind))
        assert FORMAT.solve(Task("t", "", "", kind, shown, ("",), ("",), shown)) == lesson.prompt
        thinking, at_once = (FORMAT.parse_answer(kind, text.removesuffix(EOS)) for text in texts(lesson))
        assert thinking.thought and not at_once.thought and thinking.answer == at_once.answer
        twin = thinking.thought.split("\n")[0] if kind == WORD.name else shown
        assert solve(twin) == ("ok", thinking.answer)


def test_exercises_are_proposed_as_in_self_play() -> None:
    written = [text for lesson in drawn("maths", 400)[1] for text in texts(lesson)]
    assert len(written) > 100
    for text in written:
        kind = FORMAL.name if new(FORMAL.name) in text else WORD.name
        shown, proposal = text.split(new(kind))
        references = []
        for part in shown.split(REF)[1:]:
            message, _, code = part.removeprefix(MSG).rpartition(IN)
            references.append(Task("r", "", "", FORMAL.name, code, ("",), ("",), message))
        assert FORMAT.propose(kind, references, None) == BOS + shown + new(kind)
        read = FORMAT.parse_proposal(kind, proposal.removesuffix(EOS), None)
        assert read.error == "" and bool(read.message) == (kind == WORD.name) and solve(read.code)[0] == "ok"


@pytest.mark.parametrize("domain", LESSONS)
def test_lessons_depend_on_the_seed_alone_think_by_habit_and_fit_a_row(domain: str) -> None:
    assert drawn(domain, 20) == drawn(domain, 20) != drawn(domain, 20, "other")
    solving, proposing = drawn(domain, 100)
    for lesson in solving:
        (opened, weight), (first, other) = lesson.completions[0][0], lesson.completions[1][0]
        assert opened.startswith(THINK) and (len(first) == 1 or first.isalpha())
        assert weight / (weight + other) == pytest.approx(THINK_FRAC)
    longest = 0
    for lesson in (*solving, *proposing):
        for text in texts(lesson):
            for mark in MARKS:
                text = text.replace(mark, "\x00")
            longest = max(longest, len(pieces_of(lesson.prompt)) + len(pieces_of(text)))
    assert longest <= 320


def test_the_held_out_share_is_drawn_only_when_it_is_asked_for() -> None:
    rng = Random("shares")
    for held_out, num in ((False, 200), (True, 10)):
        level = 2
        assert {exercises.is_held_out(exercises.draw(rng, level, held_out).code) for _ in range(num)} == {held_out}
        assert {puzzles.is_held_out(puzzles.draw(rng, held_out).puzzle) for _ in range(num)} == {held_out}
        assert {lemmas.is_held_out(lemmas.draw(rng, held_out).lemma) for _ in range(num)} == {held_out}
    share = sum(exercises.is_held_out(f"{number} + 1") for number in range(4000)) / 4000
    assert share == pytest.approx(1 / exercises.HELD_OUT_SHARE, abs=0.015)


def test_no_lesson_shows_an_exercise_of_the_suite() -> None:
    suite = {normal_form(item.task.code) for item in load_suite()}
    assert len(suite) == 3_200 and all(exercises.is_held_out(item.task.code) for item in load_suite())
    shown = set()
    for lesson in itertools.chain(*drawn("maths", 300)):
        for text in [lesson.prompt, *texts(lesson)]:
            for mark in MARKS:
                text = text.replace(mark, "\n")
            shown |= {normal_form(part) for part in text.split("\n")}
    assert len(shown) > 600 and not shown & suite


def test_drawn_puzzles_and_lemmas_are_read_back_from_their_texts() -> None:
    rng = Random("texts")
    for _ in range(200):
        puzzle, lemma = puzzles.draw(rng).puzzle, lemmas.draw(rng)
        assert read_puzzle(write_puzzle(puzzle)) == puzzle
        assert follows(lemma.lemma) and read_lemma(write_lemma(lemma.lemma)) == lemma.lemma
        assert read_proof(write_proof(lemma.steps), len(lemma.lemma.hypotheses)) == list(lemma.steps)
