"""The domains ``gym:NAME``: a teacher chooses parameters of a generator of Reasoning Gym, a student solves its task.

The generator computes question and answer from the parameters and a seed, and its own grader grades the answers
(Stojanovski et al. 2025, arXiv 2505.24760). Both run in the sandbox; see ``worker``.
"""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

from redqueen.config import GYM_PREFIX, VerifyConfig
from redqueen.domains.domain import Domain, Item, ParsedProposal, Shown, TaskKind, Words, task_of, worker_verdict
from redqueen.domains.frames import ASKED, END, IN, REF, THINK_FIRST, asked, fence, has_mark, last_block, unfenced
from redqueen.errors import UserError, how_to_install
from redqueen.records import Candidate, Grade, Rejection, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import Rules, call_job, confirm, run_once
from redqueen_sandbox.runs import Job
from redqueen_sandbox.zygotes import HASH_SEED

KIND_PREFIX = "gym_"
WORKER = "redqueen.domains.gym.warm"
KILL_CPU_MS, ACCEPT_CPU_MS = 3_000, 1_000
"""CPU time after which a generator or grader is killed, and the limit for a generator whose task is accepted (ours)."""
MAX_PARAMETER_CHARS = 2_000
MAX_QUESTION_CHARS = 8_000
"""A task with a longer question is rejected (ours): it would not fit into most prompts."""
MAX_ANSWER_CHARS = 4_000
MAX_SEED = 10**6
MAX_NUMBER = 10**9
"""Largest absolute value of a parameter (ours); time and memory are bounded by the sandbox."""
ORDER_DEPENDENT = {"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"}
"""Families that draw from sets, so that their tasks depend on the hash seed: they run under the first hash seed only
(measured on reasoning-gym 0.1.25). Other tasks that depend on it are rejected as ``nondeterministic``."""
LISTING, NEW_O = f"def f(nums):\n    return sum(nums){IN}", ASKED[3]
"""In the compact format: a program whose input list holds the parameters, and the mark that asks for a new program."""
NUM_HELD_OUT = 12
"""Held-out items of each family (ours)."""


@dataclass(frozen=True)
class Family:
    """One generator: see ``worker.describe``. ``fields`` are its parameters with their defaults."""

    name: str
    category: str
    fields: Mapping[str, Any]
    levels: Mapping[str, Sequence[float]]
    question: str
    answer: str
    error: str


OPENED: set[str] = set()
"""The families of the domains opened so far."""
HELD_OUT_ROWS: dict[str, list[dict[str, Any]]] = {}
"""The held-out rows by family, generated once per process."""


@cache
def families() -> dict[str, Family]:
    """Return all families of the installed package. Raises UserError when it is not installed."""
    if find_spec("reasoning_gym") is None:
        raise UserError(f"gym domains need the package reasoning-gym: {how_to_install('gym')}")
    return {fields["name"]: Family(**fields) for fields in _call_worker("[describe(name) for name in families()]")}


def _call_worker(call: str) -> Any:
    """Evaluate a call of the worker's functions in a new process, so that this one does not import the package."""
    code = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from redqueen.domains.gym.worker import *"
    code += f"; a = {call}; sys.__stdout__.write(chr(10) + json.dumps(a))"
    environment = {**os.environ, "PYTHONHASHSEED": str(HASH_SEED)}
    arguments = [sys.executable, "-c", code, json.dumps(sys.path)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"reasoning-gym could not be loaded ({last}); reinstall it: {how_to_install('gym')}")
    return json.loads(done.stdout.splitlines()[-1])


def names_of(name: str) -> list[str]:
    """Return the families of ``gym:NAME``: one family, or those of a category or of ``*`` that have a valid task.

    Raises UserError when there is none, or the named family has no valid task.
    """
    known, wanted = families(), name.removeprefix(GYM_PREFIX)
    if wanted in known:
        if known[wanted].error:
            raise UserError(f"propose.domains: {name} has no valid task ({known[wanted].error}); choose another family")
        return [wanted]
    found = [one.name for one in known.values() if not one.error and wanted in ("*", one.category)]
    if not found:
        categories = ", ".join(sorted({one.category for one in known.values()}))
        raise UserError(
            f"propose.domains: reasoning-gym has no family {wanted!r}; write gym:* or gym:NAME, with a category "
            f"({categories}) or a family of `redqueen validate 'gym:*'`"
        )
    return found


def without_task(name: str) -> dict[str, str]:
    """Return the kinds that ``gym:*`` or a category omits, with the reason; empty for another domain."""
    wanted = name.removeprefix(GYM_PREFIX)
    known = families().values() if wanted != name else ()
    return {f"{KIND_PREFIX}{one.name}": one.error for one in known if one.error and wanted in ("*", one.category)}


def gym_domain(name: str) -> Domain:
    """Return the domain of ``gym:NAME``, with one kind for each family. Raises UserError as ``names_of`` does."""
    names = names_of(name)
    OPENED.update(names)
    kinds = tuple(map(kind_of_family, names))
    return Domain(name, kinds, seed_of(kinds[0].name), partial(held_out, tuple(kind.name for kind in kinds)))


def family_of(kind: str) -> Family:
    """Return the family of a kind's name."""
    return families()[kind.removeprefix(KIND_PREFIX)]


def seed_of(kind: str) -> Task:
    """Return the family's task with default parameters and seed 1."""
    family = family_of(kind)
    return Task("seed", "seed", "", kind, _written(family, {"seed": 1}), ("",), (family.answer,), family.question)


def held_out(kinds: Sequence[str]) -> list[Item]:
    """Return the held-out items of these kinds: default parameters with seeds that no teacher can choose."""
    names = [family_of(kind).name for kind in kinds]
    if missing := sorted((OPENED | set(names)) - HELD_OUT_ROWS.keys()):  # one process for all domains of a run
        HELD_OUT_ROWS.update({name: [] for name in missing})
        for row in _call_worker(f"held_out({missing!r}, {NUM_HELD_OUT}, {MAX_ANSWER_CHARS})"):
            HELD_OUT_ROWS[row["family"]].append(row)
    items = []
    for number, row in enumerate(row for name in names for row in HELD_OUT_ROWS[name]):
        kind = f"{KIND_PREFIX}{row['family']}"
        name = f"{kind}/{number}"
        task = Task(name, "", "", kind, row["parameters"], ("",), (row["answer"],), row["question"])
        items.append(Item(name, name, f"{kind}/default", kind, task))
    return items


def read_parameters(family: Family, text: str) -> dict[str, Any]:
    """Read a JSON object of a family's fields and ``seed``; missing fields get their defaults (the seed: 0).

    Raises ValueError with one short reason. Only types and sizes are checked here; the family's own checks run in the
    sandbox.
    """
    if len(text) > MAX_PARAMETER_CHARS:
        raise ValueError("the parameters are too long")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(given, dict):
        raise ValueError("not an object")
    defaults: dict[str, Any] = {**family.fields, "seed": 0}
    for name, value in given.items():
        if name not in defaults:
            raise ValueError(f"{family.name} has no parameter {name[:40]!r}")
        defaults[name] = _checked(name, value, defaults[name])
    if not 0 <= defaults["seed"] < MAX_SEED:
        raise ValueError(f"the seed must be from 0 to {MAX_SEED - 1}")
    return defaults


def _checked(name: str, value: object, default: object) -> object:
    if isinstance(default, list):
        if isinstance(value, list) and value and all(part in default for part in value):
            return [part for part in default if part in value]
        raise ValueError(f"{name} must be a list of {', '.join(map(str, default))}")
    if isinstance(default, bool) or isinstance(value, bool):
        if isinstance(default, bool) and isinstance(value, bool):
            return value
        raise ValueError(f"{name} must be {'true or false' if isinstance(default, bool) else 'a number'}")
    if isinstance(value, float) and isinstance(default, int) and value.is_integer():
        value = int(value)
    if not isinstance(value, int if isinstance(default, int) else int | float) or not abs(value) <= MAX_NUMBER:
        kind = "an integer" if isinstance(default, int) else "a number"
        raise ValueError(f"{name} must be {kind} of at most {MAX_NUMBER}")
    return value


def _written(family: Family, chosen: Mapping[str, Any]) -> str:
    """Write parameters as a task's ``code``: one line of JSON, all fields in the family's order, the seed last."""
    return json.dumps({**family.fields, "seed": 0, **chosen})


def check_parameters(candidate: Candidate, rules: Rules, terms: VerifyConfig) -> Jobs[Task | Rejection]:
    """Turn parameters into a task. The generator runs twice, under different hash seeds."""
    family = family_of(candidate.kind)
    try:
        code = _written(family, read_parameters(family, candidate.code))
    except ValueError as error:
        return Rejection(candidate, "invalid-parameters", str(error))
    job = _job("generate", family, [code], rules)
    run = yield from run_once(job)
    if run.verdict == "ok" and job.seed < 0:
        again = yield from confirm(job, run, 2)
        run = again if again.verdict != "ok" else replace(run, cpu_ms=max(run.cpu_ms, again.cpu_ms))
    verdict, *found = worker_verdict(run, ACCEPT_CPU_MS)
    if verdict != "ok":
        return Rejection(candidate, verdict, found[0])
    question, answer = found
    if len(question) > MAX_QUESTION_CHARS or len(answer) > MAX_ANSWER_CHARS:
        return Rejection(candidate, "too-large", f"the question has more than {MAX_QUESTION_CHARS} characters")
    return task_of(candidate, code=code, outputs=(answer,), message=question, protection=rules.protection)


def _job(function: str, family: Family, arguments: Sequence[str], rules: Rules) -> Job:
    job = call_job(WORKER, function, [family.name, *arguments], KILL_CPU_MS, rules)
    return replace(job, seed=0) if family.name in ORDER_DEPENDENT else job


def grade_answers(task: Task, answers: Sequence[str], rules: Rules) -> Jobs[list[Grade]]:
    """Grade answers by the family's grader: a score of 1 is right. If the joint run fails, each is graded alone."""
    short = [answer for answer in answers if len(answer) <= MAX_ANSWER_CHARS]
    run = yield from run_once(_job("score", family_of(task.kind), [task.code, json.dumps(short)], rules))
    if run.verdict == "ok":
        scores = dict(zip(short, ast.literal_eval(run.items[0].text), strict=True))
        return [Grade(scores.get(answer, 0.0) >= 1, "ok" if answer in scores else "too-large") for answer in answers]
    if len(answers) == 1:
        return [Grade(False, run.verdict, run.reason, lost=run.ended == "infra")]
    grades = []
    for answer in answers:
        grades += yield from grade_answers(task, [answer], rules)
    return grades


def _grade_one(task: Task, answer: str, rules: Rules) -> Jobs[Grade]:
    return (yield from grade_answers(task, [answer], rules))[0]


def _of_kind(kind: str, references: Sequence[Task]) -> list[Task]:
    return [task for task in references if task.kind == kind] or [seed_of(kind)]


def _propose_chat(kind: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    family = family_of(kind)
    fields = [f"- {name}: {_hint(family, name)}" for name in family.fields]
    earlier = [fence("json", task.code) for task in _of_kind(kind, references)]
    parts = [
        f"Choose the parameters of the task generator `{family.name}`. It makes tasks such as this one:",
        fence("", seed_of(kind).message),
        "Its parameters are:\n" + "\n".join([*fields, f"- seed: an integer from 0 to {MAX_SEED - 1}"]),
        "Earlier choices:\n" + "\n".join(earlier),
        "Choose other parameters, so that the task is hard for the solver, yet solvable with care. Write one line of "
        "JSON in a ```json block.",
    ]
    return "\n\n".join(parts)


def _hint(family: Family, name: str) -> str:
    default = family.fields[name]
    if isinstance(default, list):
        return f"some of {json.dumps(default)}"
    kind = {bool: "true or false", int: "an integer"}.get(type(default), "a number")
    levels = f", for example {', '.join(map(str, family.levels[name]))}" if name in family.levels else ""
    return f"{kind}{levels} (default {json.dumps(default)})"


def _solve_chat(task: Task) -> str:
    return f"{task.message}\n\n{THINK_FIRST} Between the answer marks stands the answer alone."


def _read_chat(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    code = last_block(text, "json") or text[text.rfind("{") : text.rfind("}") + 1]
    return ParsedProposal(code=code.strip()) if code.strip() else ParsedProposal(error="no JSON")


def _propose_fewshot(kind: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    shown = "".join(f"{task.code}\n{END}\n" for task in _of_kind(kind, references))
    return f'# Parameters of the generator {family_of(kind).name}, one line of JSON each.\n{END}\n{shown}{{"'


def _read_fewshot(text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    """Read the rest of the line that starts at the end of the prompt."""
    return ParsedProposal(code='{"' + text.strip().partition("\n")[0])


def _solve_fewshot(task: Task) -> str:
    seed = seed_of(task.kind)
    shown = f"{seed.message}\n\nAnswer: {seed.outputs[0]}\n{END}\n"
    return f"{shown}{task.message}\n\nAnswer:"


def _propose_compact(kind: str, references: Sequence[Task], given: Task | None, terms: VerifyConfig) -> str:
    """Show parameters as the input list of a program, the seed first, and end with that program: a base that was never
    trained on generators continues with a list of numbers. Fields beyond the list's end get their defaults."""
    return "".join(f"{REF}{LISTING}{_values(task.code)}" for task in _of_kind(kind, references)) + NEW_O + LISTING


def _values(code: str) -> str:
    *fields, seed = json.loads(code).values()
    return repr([seed, *fields])


def _read_compact(kind: str, text: str, given: Task | None, terms: VerifyConfig) -> ParsedProposal:
    if has_mark(text := text.strip()) or not text.startswith("[") or len(text) > MAX_PARAMETER_CHARS:
        return ParsedProposal(error="no list of parameters, a mark in it, or too long")
    try:
        values = ast.literal_eval(text)
        return ParsedProposal(code=json.dumps(dict(zip(["seed", *family_of(kind).fields], values, strict=False))))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ParsedProposal(error="not a list of values")


def proposals_of(family: str) -> list[str]:
    """Return the defaults with three seeds, and the next curriculum level of each field that has levels.

    Fields ``min_...`` are not raised: alone, they could exceed the maximum.
    """
    one = families()[family]
    found: list[dict[str, float]] = [{"seed": seed} for seed in (2, 3, 4)]
    for name, levels in one.levels.items():
        harder = [level for level in levels if level > one.fields[name]]
        found += [{name: level, "seed": 5} for level in harder[:1] if not name.startswith("min_")]
    return list(map(json.dumps, found))


def _octaves(task: Task) -> int:
    """Return the sum over numeric parameters of their distance from the default in octaves (powers of two)."""
    family, total = family_of(task.kind), 0.0
    for name, value in json.loads(task.code).items():
        default = family.fields.get(name)
        if isinstance(default, int | float) and not isinstance(default, bool):
            total += math.log2(1 + abs(value)) - math.log2(1 + abs(default))
    return round(total)


@cache
def kind_of_family(family: str) -> TaskKind:
    """Return the kind of task of a family, ``gym_NAME``."""
    name = f"{KIND_PREFIX}{family}"
    fewshot = Words(partial(_propose_fewshot, name), _solve_fewshot, _read_fewshot, str.strip, has_thoughts=False)
    return TaskKind(
        name=name,
        shown=Shown(f"{name} (generator)", "The student sees the question of a generated task."),
        words={
            "compact": Words(partial(_propose_compact, name), _solve_compact, partial(_read_compact, name), str.strip),
            "chat": Words(partial(_propose_chat, name), _solve_chat, _read_chat, unfenced),
            "fewshot": fewshot,
        },
        check=check_parameters,
        grade=_grade_one,
        grade_all=grade_answers,
        gold=lambda task: task.outputs[0],
        is_multiline=True,
        statement=lambda task: task.message,
        normal_form=lambda task: task.message,
        behaviour=lambda task: f"{name}\0{task.message}",
        behaviour_class=lambda task: f"{name} {_octaves(task):+d}",
        measure=lambda task: {"parameter_octaves": float(_octaves(task))},
        proposals=partial(proposals_of, family),
    )


def _solve_compact(task: Task) -> str:
    return task.message + asked(task.kind)
