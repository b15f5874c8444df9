"""What holds for the lessons of any domain: they are in the very form that self-play asks in, and they are right."""

from random import Random

from redqueen.domains.compact import EOS, NEW, REF
from redqueen.domains.domain import Domain, Lesson
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check, grade
from redqueen.nouns import Candidate, Task
from redqueen.verify import Verifier

COMPACT = PromptFormat(FRAMES["compact"])


def drawn_lessons(domain: Domain, num: int, seed: str) -> list[Lesson]:
    rng = Random(seed)
    assert domain.lessons is not None
    return [lesson for _ in range(num) for lesson in domain.lessons(rng)]


def is_proposal(lesson: Lesson) -> bool:
    return any(text.startswith(NEW) for text, _ in lesson.completions[0])


def as_tasks(domain: Domain, texts: list[str], verifier: Verifier) -> list[Task]:
    """Read proposals as self-play does, and check them; all must be tasks."""
    kind = domain.kinds[0].name
    candidates = []
    for number, text in enumerate(texts):
        read = COMPACT.parse_proposal(kind, text, None)
        assert not read.error, (text, read.error)
        candidates.append(Candidate(str(number), "T", "S", kind, "", read.code, read.inputs, read.message))
    found = check(candidates, verifier)
    for text, task in zip(texts, found, strict=True):
        assert isinstance(task, Task), (text, task)
    return [task for task in found if isinstance(task, Task)]


def check_proposals(domain: Domain, lessons: list[Lesson], verifier: Verifier) -> list[Task]:
    """Each reference and each new task that the lessons write is valid; the prompt is the one of those references."""
    written = [[text.removesuffix(EOS) for text, weight in lesson.completions[0] if weight > 0] for lesson in lessons]
    tasks = iter(as_tasks(domain, [text for texts in written for text in texts], verifier))
    new = []
    for lesson, texts in zip(lessons, written, strict=True):
        *references, task = [next(tasks) for _ in texts]
        prompt = lesson.prompt + "".join(text for text, _ in lesson.completions[0][:-1])
        assert prompt.count(REF) == len(references)
        new.append(task)
    return new


def check_solutions(lessons: list[Lesson], tasks: list[Task], verifier: Verifier) -> None:
    """Both ways of answering are right, and the prompt is the one of the task."""
    pairs = []
    for lesson, task in zip(lessons, tasks, strict=True):
        assert lesson.prompt == COMPACT.solve(task)
        assert len(lesson.completions) == 2
        for completion in lesson.completions:
            text = "".join(part for part, _ in completion)
            assert text.endswith(EOS)
            answer = COMPACT.parse_answer(task.kind, text.removesuffix(EOS)).answer
            assert answer is not None
            pairs.append((task, answer))
    for pair, found in zip(pairs, grade(pairs, verifier), strict=True):
        assert found.correct, (pair, found)
