"""What holds for the lessons of any domain: they are in the very form that self-play asks in, and they are right."""

from random import Random

from redqueen.config import VerifyConfig
from redqueen.domains.compact import EOS, NEW, REF
from redqueen.domains.domain import Domain, Lesson
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.nouns import Candidate, Task
from redqueen.verify.programs import Rules
from redqueen.verify.records import Limits

RULES = Rules(Limits(), 2, "full")
COMPACT = PromptFormat(FRAMES["compact"])


def drawn_lessons(domain: Domain, num: int, seed: str) -> list[Lesson]:
    rng = Random(seed)
    assert domain.lessons is not None
    return [lesson for _ in range(num) for lesson in domain.lessons(rng)]


def is_proposal(lesson: Lesson) -> bool:
    return any(text.startswith(NEW) for text, _ in lesson.completions[0])


def as_task(domain: Domain, text: str) -> Task:
    """Read one proposal as self-play does, and check it."""
    (kind,) = domain.kinds
    read = COMPACT.parse_proposal(kind.name, text, None)
    assert not read.error, (text, read.error)
    found = kind.check(
        Candidate("1", "T", "S", kind.name, "", read.code, read.inputs, read.message), RULES, VerifyConfig()
    )
    assert isinstance(found, Task), (text, found)
    return found


def written_tasks(domain: Domain, lesson: Lesson) -> list[Task]:
    """Return the tasks that a proposal's lesson writes: its references, and the new one last."""
    texts = [text for text, weight in lesson.completions[0] if weight > 0]
    return [as_task(domain, text.removesuffix(EOS)) for text in texts]


def prompt_of(lesson: Lesson) -> str:
    """Return all of a proposal's lesson but the new task."""
    return lesson.prompt + "".join(text for text, _ in lesson.completions[0][:-1])


def check_proposal(domain: Domain, lesson: Lesson) -> Task:
    *references, task = written_tasks(domain, lesson)
    assert prompt_of(lesson) == COMPACT.propose(domain.kinds[0].name, references, None)
    assert prompt_of(lesson).count(REF) == len(references)
    return task


def check_solution(domain: Domain, lesson: Lesson, task: Task) -> None:
    """Both ways of answering are right, and the prompt is the one of the task."""
    assert lesson.prompt == COMPACT.solve(task)
    for completion in lesson.completions:
        text = "".join(part for part, _ in completion)
        assert text.endswith(EOS)
        read = COMPACT.parse_answer(task.kind, text.removesuffix(EOS))
        assert read.answer is not None
        found = domain.kinds[0].grade(task, read.answer, RULES)
        assert found.correct, (text, found)
