"""``redqueen validate``: check a domain's reference answers, and that its grader accepts right answers only."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from redqueen.config import Config, VerifyConfig
from redqueen.display import visible
from redqueen.domains.domain import Domain, TaskKind
from redqueen.domains.gym.kinds import without_task
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import check, frozen_items, grade, open_domain
from redqueen.errors import UserError
from redqueen.records import Candidate, Task
from redqueen.verifying import open_sandbox
from redqueen_sandbox import Sandbox

SPELLINGS = "{}", " {} ", "\n{}\n", "{}\n\n", "\t{}", "```\n{}\n```"
"""Spellings of one answer between the answer tags of the chat format: models add white space or a fence (the last)."""
HOSTILE = (
    "(" * 3000, "[" * 3000, "9**9**9**9", "1e9999", "x" * 10**5, "\x00\ud800", "__import__('os').getpid()", "%" * 999,
)  # fmt: skip
MAX_TRIVIAL_FRAC = 0.1
"""Share of tasks that a trivial agent may solve (ours); in some domains "0" happens to be right now and then."""


@dataclass
class Finding:
    """The results for one kind of task, which is valid if ``failures`` (reasons) is empty."""

    kind: str
    num_proposed: int = 0
    num_valid: int = 0
    num_tasks: int = 0
    gold_frac: float = 0.0
    """Share of tasks whose reference answer is graded right."""
    spelling_frac: float = 0.0
    """Share of the spellings of right answers that are graded right."""
    trivial: dict[str, int] = field(default_factory=dict)
    """Number of tasks that each trivial agent solves, except where its text is the right answer by chance."""
    guess_frac: float = 0.0
    """Share of tasks with the most frequent answer: the score of the best constant answer. Not a failure."""
    failures: list[str] = field(default_factory=list)


def validate(name: str, num_tasks: int, as_json: bool = False, allow_weak: bool = False) -> bool:
    """Print one row for each kind of the domain; return whether all are valid. Raises UserError if it is unknown."""
    domain = open_domain(name)
    if num_tasks < 1:
        raise UserError(f"--tasks {num_tasks}: give at least 1")
    findings = []
    with open_sandbox(Config(verify=VerifyConfig(allow_weak=allow_weak))) as sandbox:
        for kind in domain.kinds:
            findings.append(validate_kind(domain, kind, num_tasks, sandbox))
            if not as_json:
                print(_line(findings[-1]) if len(findings) > 1 else f"{HEAD}\n{_line(findings[-1])}", flush=True)
    left_out = [Finding(kind, failures=[error]) for kind, error in without_task(name).items()]
    if as_json:
        print(json.dumps([asdict(one) for one in (*findings, *left_out)]))
    else:
        num_valid = sum(not one.failures for one in findings)
        print(*map(_line, left_out), f"{num_valid} of {len(findings) + len(left_out)} kinds are valid", sep="\n")
    return not left_out and not any(one.failures for one in findings)


def validate_kind(domain: Domain, kind: TaskKind, num_tasks: int, sandbox: Sandbox) -> Finding:
    """Check one kind: proposals become tasks; the grader accepts their answers and rejects trivial ones."""
    found = Finding(kind.name)
    items = [item.task for item in frozen_items(domain.suite) if item.kind == kind.name]
    proposed = [Task(str(at), "", "", kind.name, code, (), ()) for at, code in enumerate(kind.proposals())]
    tasks = _proposed(found, proposed or _spread(items, num_tasks), bool(proposed), sandbox)
    tasks = _spread([*tasks, *items], num_tasks)
    found.num_tasks = len(tasks)
    if not tasks:
        found.failures.append("no task: give the domain a suite with this kind, or the kind proposals")
        return found
    golds = {task: kind.gold(task) for task in tasks}
    found.gold_frac = _right_frac(list(golds.items()), sandbox)
    _expect(found, found.gold_frac == 1, f"{1 - found.gold_frac:.0%} of its own answers are graded wrong")
    spelled = [(task, text) for task, gold in golds.items() for text in _spellings(kind, gold)]
    found.spelling_frac = _right_frac(spelled, sandbox)
    _expect(found, found.spelling_frac == 1, f"{1 - found.spelling_frac:.0%} of the spellings are graded wrong")
    found.guess_frac = max(Counter(golds.values()).values()) / len(tasks)
    for agent, pairs in _agents(kind, tasks).items():
        grades = grade(pairs, sandbox)
        found.trivial[agent] = sum(
            one.correct and not _same(str(answer), golds[task])
            for (task, answer), one in zip(pairs, grades, strict=True)
        )
        solved = found.trivial[agent]
        _expect(found, solved <= MAX_TRIVIAL_FRAC * len(tasks), f"the agent {agent!r} solves {solved} of {len(tasks)}")
    grades = grade([(tasks[0], answer) for answer in HOSTILE], sandbox)
    _expect(found, not any(one.correct for one in grades), "a hostile answer is graded right")
    _expect(found, not any(one.lost for one in grades), "the grader does not survive a hostile answer")
    return found


def _proposed(found: Finding, tasks: Sequence[Task], own: bool, sandbox: Sandbox) -> list[Task]:
    """Check tasks as proposals, twice: all must be valid, with the known outputs, and with the same result each time.

    Half of a domain's own proposals may be refused: some are at the limits of what a generator accepts.
    """
    candidates = [Candidate(t.id, "T1", "S1", t.kind, "", t.code, t.inputs, t.message) for t in tasks]
    first, second = check(candidates, sandbox), check(candidates, sandbox)
    valid = [one for one in first if isinstance(one, Task)]
    found.num_proposed, found.num_valid = len(candidates), len(valid)
    reasons = Counter(f"{one.reason}: {one.detail}" for one in first if not isinstance(one, Task))
    needed = len(candidates) / 2 if own else len(candidates)
    _expect(found, len(valid) >= needed, f"proposals are refused ({next(iter(reasons), '')})"[:160])
    _expect(found, first == second, "the same proposal gives different results")
    if not own:
        truths = [(one.outputs, task.outputs) for one, task in zip(first, tasks, strict=True) if isinstance(one, Task)]
        _expect(found, all(now == known for now, known in truths), "an output differs from that in the suite")
    return valid if own else []


def _same(answer: str, gold: str) -> bool:
    """Return whether an answer is right by chance: the same text, or the same number."""
    try:
        return float(answer) == float(gold)
    except ValueError:
        return answer.strip().lower() == gold.strip().lower()


def _agents(kind: TaskKind, tasks: Sequence[Task]) -> dict[str, list[tuple[Task, str | None]]]:
    """Return the answers of agents that do not try to solve the task."""
    rng = random.Random(0)
    noise = ["".join(rng.choices("abcdefghij 0123456789", k=rng.randint(1, 12))) for _ in tasks]
    return {
        "empty": [(task, "") for task in tasks],
        "constant": [(task, "0") for task in tasks],
        "random": list(zip(tasks, noise, strict=True)),
        "copy": [(task, kind.statement(task)) for task in tasks],
        "format": [(task, "<answer></answer>") for task in tasks],
        "other": [(task, kind.gold(other)) for task, other in zip(tasks, [*tasks[1:], *tasks[:1]], strict=True)],
    }


def _spellings(kind: TaskKind, gold: str) -> list[str | None]:
    """Return the answers that are read from the spellings of ``gold`` in the chat format. Only kinds with multi-line
    answers use the fenced spelling; kinds that require a fence, such as programs, use no other."""
    if "chat" not in kind.words:
        return []
    chat = PromptFormat(FRAMES["chat"])
    texts = [f"<think>x</think><answer>{spelling.format(gold)}</answer>" for spelling in SPELLINGS]
    *bare, fenced = [chat.parse_answer(kind.name, text).answer for text in texts]
    if not kind.is_multiline:
        return bare
    return [fenced] if bare[0] is None else [*bare, fenced]


def _right_frac(pairs: Sequence[tuple[Task, str | None]], sandbox: Sandbox) -> float:
    grades = grade(pairs, sandbox)
    return sum(one.correct for one in grades) / len(grades) if grades else 1.0


def _spread(tasks: Sequence[Task], num: int) -> list[Task]:
    """Return at most ``num`` of the tasks, evenly spread."""
    step = max(1.0, len(tasks) / num)
    return [tasks[int(at * step)] for at in range(min(num, len(tasks)))]


def _expect(found: Finding, holds: bool, failure: str) -> None:
    if not holds:
        found.failures.append(failure)


AGENTS = "empty", "constant", "random", "copy", "format", "other"
HEAD = " ".join([f"{'kind':32} {'valid':>7}", *(f"{name:>8}" for name in ("gold", "spelt", *AGENTS, "guess"))])


def _line(one: Finding) -> str:
    solved = [f"{one.trivial.get(name, 0):8}" for name in AGENTS]
    numbers = [f"{one.gold_frac:8.0%}", f"{one.spelling_frac:8.0%}", *solved, f"{one.guess_frac:8.0%}"]
    valid = f"{one.num_valid}/{one.num_proposed}"
    return visible(f"{one.kind:32} {valid:>7} {' '.join(numbers)}  {'; '.join(one.failures) or 'ok'}")
