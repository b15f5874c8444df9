"""The registry of domains by name: the kind of a task, checking, grading.

A domain outside the package is written ``module:NAME`` in ``propose.domains``; it is imported when it is opened.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoint
from typing import Protocol, TypeVar

from redqueen.config import FILE_PREFIX, GYM_PREFIX, Config, ProposeConfig, VerifyConfig
from redqueen.domains.code.kinds import CODE
from redqueen.domains.domain import Domain, Grader, Item, Shown, TaskKind, Words
from redqueen.domains.gym.kinds import KIND_PREFIX, gym_domain
from redqueen.domains.logic.kinds import LOGIC
from redqueen.domains.maths.kinds import MATHS
from redqueen.domains.own import OWN_TASKS
from redqueen.errors import UserError
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox.guard import VERDICT, guarded_jobs
from redqueen_sandbox.pool import Answer, Jobs
from redqueen_sandbox.programs import Rules, blind_to_limits
from redqueen_sandbox.records import Limits

T = TypeVar("T")


class JobRunner(Protocol):
    """The part of the verifier that checking and grading need."""

    def judge(self, work: Sequence[Callable[[Rules], Jobs[Answer]]]) -> list[Answer]:
        """Run ``work`` and return the answers in order. Each function gets the rules of the host that runs it. The
        functions can be pickled, so that another host may run them."""


DOMAINS: dict[str, Domain] = {
    CODE.name: CODE,
    MATHS.name: MATHS,
    LOGIC.name: LOGIC,
}
"""The loaded domains, by their name in ``propose.domains``. To add a kind of task, write a ``TaskKind`` (``domain.py``;
``code/kinds.py`` has three), put it in the ``kinds`` of its ``Domain``, and add a new domain here."""
OWN = tuple(DOMAINS)
"""The names of the package's own domains, which other packages must not use."""
GROUP = "redqueen.domains"
"""The group of entry points by which other packages provide domains."""


def kinds() -> dict[str, TaskKind]:
    """Return all kinds of task by name, domain by domain; the kinds of the user's own tasks come last."""
    return {kind.name: kind for domain in (*DOMAINS.values(), OWN_TASKS) for kind in domain.kinds}


def kind_of(task: Task | Candidate) -> TaskKind:
    """Return the kind of a task. Raises UserError when no loaded domain has it."""
    return kind_named(task.kind)


def kind_named(name: str) -> TaskKind:
    """Return the kind of this name; opens gym domains. Raises UserError when no domain has it."""
    if name.startswith(KIND_PREFIX) and name not in kinds():
        open_domain(GYM_PREFIX + name.removeprefix(KIND_PREFIX))
    known = kinds()
    if name not in known:
        raise UserError(
            f"no loaded domain has tasks of the kind {name}: your own domain is loaded by a "
            "config that names it in propose.domains, and never from a run's folder"
        )
    return known[name]


def words_of(kind: str, format_name: str) -> Words:
    """Return the prompts of a kind in a format. Raises UserError for an unknown kind, or one without such prompts."""
    words = kind_named(kind).words
    if format_name not in words:
        raise UserError(
            f"tasks of the kind {kind} have no prompts in the format {format_name}: choose one of {', '.join(words)}"
        )
    return words[format_name]


def domain_of(kind: str) -> Domain:
    """Return the domain that a kind of task belongs to. Raises UserError when no loaded domain has it."""
    kind_named(kind)  # opens a gym domain
    return next(domain for domain in (*DOMAINS.values(), OWN_TASKS) if kind in {k.name for k in domain.kinds})


def shown_as(kind: str) -> Shown:
    """Return how a kind is displayed; a kind of an unknown domain is displayed by its name alone."""
    known = kinds()
    return known[kind].shown if kind in known else Shown(kind)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of kinds in the order of the domains; unknown names come last, sorted."""
    present, known = set(names), list(kinds())
    return [*(name for name in known if name in present), *sorted(present - set(known))]


def entry_points() -> dict[str, EntryPoint]:
    """Return the domains of other installed packages (entry points of ``GROUP``), by name, not yet imported."""
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP) if point.name not in OWN}


def open_domain(name: str) -> Domain:
    """Return the domain of this name: loaded, an entry point of an installed package, or imported as ``module:NAME``.

    ``gym:NAME`` is a domain of generators, see ``redqueen.domains.gym``; ``file:PATH`` has no kinds that teachers
    write. Raises UserError when there is no such domain.
    """
    if name not in DOMAINS:
        points = entry_points()
        try:
            found: object
            if name.startswith(FILE_PREFIX):
                found = replace(OWN_TASKS, name=name, kinds=())
            elif name.startswith(GYM_PREFIX):
                found = gym_domain(name)
            else:
                found = points[name].load() if name in points else import_named(name) if ":" in name else None
        except UserError:
            raise
        except Exception as error:  # importing runs the user's code
            raise UserError(
                f"propose.domains: {name} cannot be imported ({error}); write it as module:NAME, importable here"
            ) from None
        if not isinstance(found, Domain):
            known = ", ".join(dict.fromkeys([*DOMAINS, *points]))
            raise UserError(
                f"propose.domains: {name} is not a domain; choose from {known}, or name yours as module:NAME"
            )
        if not isinstance(found.kinds, tuple) or (found.kinds and found.seed.kind not in {k.name for k in found.kinds}):
            raise UserError(f"propose.domains: {name} must have a tuple of kinds, (KIND,), and a seed of one of them")
        taken = {kind.name for kind in found.kinds if kinds().get(kind.name, kind) is not kind}
        if taken:
            raise UserError(f"propose.domains: {name} has the kind {min(taken)}, which another domain has: rename it")
        DOMAINS[name] = found
    return DOMAINS[name]


def import_named(place: str) -> object:
    """Import ``module:NAME`` and return the object; the module may be a file in the current folder.

    This runs the user's code, so the caller must trust the config. Raises whatever the import raises.

    The console script puts its own folder on ``sys.path``, not the current one as ``python -m`` does. The current
    folder is therefore appended: installed packages take precedence, and the sandbox also finds the domain's functions.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    module, _, name = place.partition(":")
    found: object = getattr(importlib.import_module(module), name)
    return found


def import_as(place: str, kind: type[T], what: str) -> T:
    """Import ``module:NAME`` and return the object. Raises UserError when that fails or it is not of this kind."""
    try:
        found = import_named(place)
    except Exception as error:  # importing runs the user's code
        raise UserError(f"{place} cannot be imported ({error}); write it as module:NAME, importable here") from None
    if not isinstance(found, kind):
        raise UserError(f"{place} is a {type(found).__name__}: name {what} instead")
    return found


def is_written(name: str) -> bool:
    """Return whether teachers write tasks of a domain: True except for ``file:PATH``."""
    return not name.startswith(FILE_PREFIX)


def written_kinds(config: ProposeConfig) -> dict[str, list[str]]:
    """Return the kinds that teachers write, by domain. Raises UserError for an unknown domain."""
    return {name: [kind.name for kind in open_domain(name).kinds] for name in config.domains if is_written(name)}


def num_proposals(config: ProposeConfig) -> dict[str, int]:
    """Return the number of proposals of each kind that a teacher writes in a step, without kinds that have none.

    Where domains have shares, each gets its share of all proposals, divided among its kinds in their own proportions.
    Raises UserError for an unknown domain, a kind of none of the domains, or when all numbers are 0.
    """
    kinds_of = written_kinds(config)
    names = [kind for listed in kinds_of.values() for kind in listed]
    unknown = set(config.num_proposals) - set(names)
    if unknown:
        raise UserError(
            f"propose.num_proposals names {min(unknown)}, and the domains {', '.join(config.domains)} have "
            f"{', '.join(names)}: choose one of these, add its domain to propose.domains, or leave the numbers "
            "out (--set propose.num_proposals={})"
        )
    wanted = {name: config.num_proposals.get(name, config.num_of_each_kind) for name in names}
    if not any(wanted.values()):
        raise UserError("propose asks for no task of any kind: set one of propose.num_proposals above 0")
    if isinstance(config.domains, dict):
        wanted = _share_out(wanted, kinds_of, {name: config.domains[name] for name in kinds_of})
    return {name: num for name, num in wanted.items() if num}


def texts_of_a_step(config: Config) -> tuple[int, int]:
    """Return the number of proposals in a step, and of attempts, anchors included, if all proposals are valid."""
    proposals = sum(num_proposals(config.propose).values()) * config.population.num_teachers
    students_per_task = config.population.num_students if config.match.rule == "all_pairs" else 1
    num_posed = math.ceil(proposals * students_per_task / (1 - config.propose.anchor_frac))
    return proposals, num_posed * config.solve.num_attempts


def _share_out(wanted: dict[str, int], kinds_of: dict[str, list[str]], shares: dict[str, float]) -> dict[str, int]:
    """Divide all proposals among the domains by ``shares``, and within each domain in proportion to ``wanted``."""
    asked = {name: sum(wanted[kind] for kind in listed) for name, listed in kinds_of.items()}
    if nothing := next((name for name, num in asked.items() if not num), ""):
        raise UserError(
            f"propose.domains gives {nothing} a share, and propose.num_proposals asks for none of its kinds"
        )
    total = sum(wanted.values())
    num_of = apportioned(total, shares)
    if nothing := next((name for name, num in num_of.items() if not num), ""):
        raise UserError(
            f"propose.domains gives {nothing} none of {total} proposals: ask for more of them, or leave it out"
        )
    split = [apportioned(num_of[name], {kind: wanted[kind] for kind in listed}) for name, listed in kinds_of.items()]
    return {kind: num for part in split for kind, num in part.items()}


def apportioned(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Split a number in proportion to weights, by the largest remainder; ties go to the first names."""
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    parts = {name: math.floor(value) for name, value in exact.items()}
    for name in sorted(exact, key=lambda name: parts[name] - exact[name])[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def refuse_unsupported(config: Config, format_name: str) -> None:
    """Raise UserError when a requested kind has no prompts in the format, or a domain cannot have a valid task."""
    wanted = num_proposals(config.propose)
    for name in wanted:
        if format_name not in kinds()[name].words:
            raise UserError(
                f"tasks of the kind {name} have no prompts in the format {format_name}: set model.prompt_format to one "
                f"of {', '.join(kinds()[name].words)}, or propose.num_proposals.{name} = 0"
            )
    for name in config.propose.domains:
        open_domain(name).refuse(config, format_name, wanted)


def load_suites(config: ProposeConfig) -> dict[str, tuple[Item, ...]]:
    """Load the frozen items of each domain of a run, by the domain's name in the config."""
    return {name: frozen_items(open_domain(name).suite) for name in config.domains if is_written(name)}


@cache
def frozen_items(suite: Callable[[], list[Item]]) -> tuple[Item, ...]:
    """Load the frozen items of one domain, by its ``suite``; a process reads the files once."""
    return tuple(suite())


def check(
    candidates: Sequence[Candidate], verifier: JobRunner, terms: VerifyConfig | None = None
) -> list[Task | Rejection]:
    """Turn candidates into tasks or rejections, in order; ``terms`` is the config's section ``verify``."""
    terms = terms or VerifyConfig()
    return verifier.judge([partial(_check, candidate, terms) for candidate in candidates])


def _check(candidate: Candidate, terms: VerifyConfig, rules: Rules) -> Jobs[Task | Rejection]:
    def jobs() -> Jobs[Task | Rejection]:
        if candidate.error:
            return Rejection(candidate, "unparsable", candidate.error)
        found = kind_of(candidate).check(candidate, rules, terms)
        return found if isinstance(found, Task | Rejection) else (yield from found)

    return guarded_jobs("check", blind_to_limits(jobs()), lambda detail: Rejection(candidate, VERDICT, detail))


def grade(pairs: Sequence[tuple[Task, str | None]], verifier: JobRunner) -> list[Grade]:
    """Grade answers in order; None is a missing answer. Equal pairs are graded once.

    A grade must not depend on the other answers or on their order, and endless loops must not cost much more time than
    correct answers: see ``answer_ms``.
    """
    num_of, waiting = Counter(task for task, _ in pairs), dict[Task, list[str]]()
    for task, answer in dict.fromkeys(pairs):
        if answer is not None:
            waiting.setdefault(task, []).append(answer)
    parts = {task: [all_] if kind_of(task).grade_all else [[one] for one in all_] for task, all_ in waiting.items()}
    work = [(task, part) for task, split in parts.items() for part in split]
    judged = verifier.judge([partial(_grade, task, part, num_of[task]) for task, part in work])
    grades = {
        (task, answer): one
        for (task, part), found in zip(work, judged, strict=True)
        for answer, one in zip(part, found, strict=True)
    }
    return [Grade(False, "unparsable") if answer is None else grades[task, answer] for task, answer in pairs]


def answer_ms(runs_programs: bool, num: int, limits: Limits) -> int:
    """Return the limit of CPU time, in milliseconds, for one run of each of the ``num`` answers to a task.

    If grading runs no program, it is the full limit. Otherwise it depends on ``num``, which counts equal and missing
    answers: by default 57 for up to 8 (two runs: 2.3 times the limit of a task), 31 for 16, 18 for 27 and more (ours).
    """
    if not runs_programs:
        return limits.cpu_ms
    run_ms = max(limits.cpu_ms, 200)
    return min(int(max(min(2.3 * limits.accept_cpu_ms, 5 * run_ms / num), 3 / 16 * run_ms) / 2), limits.cpu_ms)


def _grade(task: Task, answers: list[str], num: int, rules: Rules) -> Jobs[list[Grade]]:
    """Grade some of a task's ``num`` answers."""
    kind = kind_of(task)
    rules = replace(rules, limits=replace(rules.limits, cpu_ms=answer_ms(kind.runs_programs, num, rules.limits)))

    def jobs() -> Jobs[list[Grade]]:
        if kind.grade_all is not None:
            return (yield from kind.grade_all(task, answers, rules))
        return [(yield from grading(kind.grade, task, answers[0], rules))]

    work = blind_to_limits(jobs())
    return (
        yield from guarded_jobs(f"grade {task.kind}", work, lambda why: [Grade(False, VERDICT, why)] * len(answers))
    )


def grading(grade: Grader, task: Task, answer: str, rules: Rules) -> Jobs[Grade]:
    """Grade one answer, whether ``grade`` is a plain function or yields jobs for the sandbox."""
    found = grade(task, answer, rules)
    return found if isinstance(found, Grade) else (yield from found)
