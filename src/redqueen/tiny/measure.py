"""Measure the embedded base on fresh generator problems: the figures of its model card."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from redqueen.domains.code.suite import KINDS, SUITES
from redqueen.domains.prompt_format import FRAMES, PromptFormat, completion_text
from redqueen.domains.registry import check, grade
from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.nouns import BASE_SLOT, Candidate, Request, Task
from redqueen.policy.bank import AdapterBank
from redqueen.policy.base import choose_precision, freeze
from redqueen.policy.torch_sampler import TorchSampler
from redqueen.propose.buffer import program_key
from redqueen.statistics import bootstrap_mean, pass_at_k
from redqueen.streams import Streams
from redqueen.timing import Report, unheard
from redqueen.tiny.corpus import NUM_SHOWN, Author
from redqueen.tiny.held_out import held_out_skeletons
from redqueen.tiny.problems import Problem
from redqueen.tiny.worlds import BASIC, WORLDS
from redqueen.verify import Verifier
from redqueen.verify.literals import canonical, canonical_args

MEASURE_SEED = "measure/1"
NUM_ATTEMPTS = 8
PASS_AT = (1, 4, 8)
NUM_PROPOSALS = 256
MAX_NEW_TOKENS = 384
FORMAT, FORCED = PromptFormat(FRAMES["compact"]), PromptFormat(FRAMES["compact-forced"])


@dataclass(frozen=True)
class Bench:
    """The base behind a sampler, and the judge."""

    samplers: dict[str, TorchSampler]
    tokenizer: Any
    verifier: Verifier


def measure_base(
    folder: Path | None, num_problems: int, report: Callable[[str], None], heard: Report = unheard
) -> dict[str, Any]:
    """Return all figures; ``report`` gets one line for each. ``num_problems`` are drawn of each world.

    Those of the basic world stand at the top, those of every other under its name. ``heard`` is told of each call's
    completions and of the judge's as they come. Raises UserError for less than one problem.
    """
    if num_problems < 1:
        raise UserError(f"--problems {num_problems} measures nothing: give 1 or more")
    model, tokenizer = load_base(str(folder) if folder else "embedded")
    bank = AdapterBank(freeze(model, "cpu", choose_precision("auto", "cpu")), 1, rank=1)
    end = [tokenizer.eos_token_id]
    samplers = {
        mode: TorchSampler(bank, MAX_NEW_TOKENS, end, temperature, pad_id=tokenizer.pad_token_id, report=heard)
        for mode, temperature in (("sampled", 1.0), ("greedy", 0.0))
    }
    figures: dict[str, Any] = {"problems": num_problems, "attempts": NUM_ATTEMPTS}
    with Verifier(workers=2, report=heard) as verifier:
        bench = Bench(samplers, tokenizer, verifier)
        for world in WORLDS.values():
            seed = MEASURE_SEED if world is BASIC else f"{MEASURE_SEED}/{world.name}"
            author = Author(Random(seed), held_out_skeletons(SUITES), world=world)
            found = measure_world(bench, author, num_problems, report)
            figures.update(found if world is BASIC else {world.name: found})
    return figures


def measure_world(
    bench: Bench, author: Author, num_problems: int, report: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Return the figures of one world: of proposals after its programs, and of each kind of task on its problems."""
    problems = [author.problem(author.level()) for _ in range(num_problems)]
    lines: Callable[[str], None] = lambda line: report(f"{author.world.name}: {line}")  # noqa: E731
    figures = {"propose": measure_proposals(bench, author, lines)}
    for kind in KINDS:
        figures[kind] = measure_solving(bench, kind, problems, lines)
    return figures


def measure_solving(
    bench: Bench, kind: str, problems: Sequence[Problem], report: Callable[[str], None]
) -> dict[str, Any]:
    """Return accuracy by habit (sampled, greedy), of direct answers, and after a forced thought, with intervals."""
    tasks = [task_of(problem, kind, str(i)) for i, problem in enumerate(problems)]
    clusters = [str(i) for i in range(len(tasks))]
    result: dict[str, Any] = {}
    for name, mode, forced in (
        ("habit", "sampled", False),
        ("habit greedy", "greedy", False),
        ("forced thought", "sampled", True),
        ("forced thought greedy", "greedy", True),
    ):
        if forced and kind == "code_f":
            continue
        attempts = answer(bench, tasks, mode, forced)
        result[name] = accuracy(attempts, clusters)
        if name == "habit":
            result["thought_frac"] = fmean(float(t) for row in attempts for _, t in row)
            direct = [[(c, t) for c, t in row if not t] for row in attempts]
            result["direct"] = accuracy(direct, clusters)
        if mode == "sampled":
            result[f"{name} pass@k"] = pass_at(attempts)
            result[f"{name} by level"] = by_level(attempts, [problem.level for problem in problems])
        report(f"{kind} {name}: {result[name]}")
    report(f"{kind} direct answers alone: {result['direct'] or 'none'}; thinks by habit {result['thought_frac']:.3f}")
    for name in [n for n in result if n.endswith(("pass@k", "by level"))]:
        report(f"{kind} {name}: {result[name]}")
    return result


def pass_at(attempts: Sequence[Sequence[tuple[bool, bool]]]) -> dict[str, float]:
    """Return the mean over problems of pass@1, @4 and @8: by how much the last exceeds the first is the head-room."""
    return {
        str(k): round(fmean(pass_at_k(len(row), sum(c for c, _ in row), k) for row in attempts), 4) for k in PASS_AT
    }


def by_level(attempts: Sequence[Sequence[tuple[bool, bool]]], levels: Sequence[int]) -> dict[str, dict[str, float]]:
    """Return :func:`pass_at` of the problems of each level: programs grow with it."""
    return {
        str(level): pass_at([row for row, of in zip(attempts, levels, strict=True) if of == level])
        for level in sorted(set(levels))
    }


def accuracy(attempts: Sequence[Sequence[tuple[bool, bool]]], clusters: Sequence[str]) -> dict[str, float] | None:
    """Return the mean over problems of the share of right attempts, with its 95 % bootstrap interval.

    None where no problem has an attempt.
    """
    kept = [(fmean(float(c) for c, _ in row), name) for row, name in zip(attempts, clusters, strict=True) if row]
    if not kept:
        return None
    values = np.array([v for v, _ in kept])
    interval = bootstrap_mean(values, np.random.default_rng(0), [name for _, name in kept])
    return {"mean": round(float(values.mean()), 4), "low": round(interval.low, 4), "high": round(interval.high, 4)}


def answer(bench: Bench, tasks: Sequence[Task], mode: str, forced: bool) -> list[list[tuple[bool, bool]]]:
    """Return (right, thought) of every attempt at every task; ``forced``: each thought is begun in the prompt."""
    streams, prompt_format = Streams(0, 0), FORCED if forced else FORMAT
    requests = []
    for task in tasks:
        prompt = prompt_format.solve(task)
        count = NUM_ATTEMPTS if mode == "sampled" else 1
        seed = streams.seed(mode, forced, task.id)
        requests.append(Request(BASE_SLOT, FORMAT.encode(bench.tokenizer, prompt), count, seed))
    groups = bench.samplers[mode].sample(requests)
    parsed = [
        [prompt_format.read_attempt(task.kind, bench.tokenizer, completion)[1] for completion in group]
        for task, group in zip(tasks, groups, strict=True)
    ]
    grades = iter(grade([(t, p.answer) for t, row in zip(tasks, parsed, strict=True) for p in row], bench.verifier))
    return [[(next(grades).correct, bool(p.thought)) for p in row] for row in parsed]


def measure_proposals(bench: Bench, author: Author, report: Callable[[str], None]) -> dict[str, Any]:
    """Return validity of proposals at temperature 1, how many differ, and which constructs they use."""
    streams = Streams(0, 1)
    result: dict[str, Any] = {}
    constructs: dict[str, int] = defaultdict(int)
    for kind in KINDS:
        candidates: list[Candidate] = []
        requests, givens = [], []
        for i in range(NUM_PROPOSALS // 4):
            level = author.level()
            shown = [task_of(author.problem(level), "code_o", f"{kind}{i}{j}") for j in range(2)]
            given = shown[0] if kind == "code_f" else None
            prompt = FORMAT.encode(bench.tokenizer, FORMAT.propose(kind, shown, given))
            requests.append(Request(BASE_SLOT, prompt, 4, streams.seed("propose", kind, i)))
            givens.append(given)
        for i, group in enumerate(bench.samplers["sampled"].sample(requests)):
            for j, completion in enumerate(group):
                text = completion_text(bench.tokenizer, completion)
                p = FORMAT.parse_proposal(kind, text, givens[i])
                head = (f"{i}-{j}", "base", "", kind, text)
                candidates.append(Candidate(*head, p.code, p.inputs, p.message, p.error))
        judged = check(candidates, bench.verifier)
        tasks = [v for v in judged if isinstance(v, Task)]
        reasons: dict[str, int] = defaultdict(int)
        for verdict in judged:
            if not isinstance(verdict, Task):
                reasons[verdict.reason] += 1
        for task in tasks:
            for name in constructs_of(task.code):
                constructs[name] += kind != "code_f"
        result[kind] = {
            "valid_frac": round(len(tasks) / len(judged), 4),
            "distinct_programs": len({program_key(t) for t in tasks}),
            "proposals": len(judged),
            "rejected": dict(reasons),
        }
        report(f"propose {kind}: {result[kind]}")
    result["constructs"] = dict(sorted(constructs.items(), key=lambda item: -item[1]))
    report(f"constructs: {result['constructs']}")
    return result


def constructs_of(code: str) -> set[str]:
    """Name the constructs that stand in a program."""
    names = {
        ast.For: "for", ast.While: "while", ast.If: "if", ast.IfExp: "conditional expression",
        ast.ListComp: "list comprehension", ast.DictComp: "dict comprehension", ast.GeneratorExp: "generator",
        ast.Slice: "slice", ast.Dict: "dict", ast.Tuple: "tuple", ast.List: "list",
        ast.AugAssign: "augmented assignment", ast.BoolOp: "and/or", ast.Compare: "comparison",
        ast.Break: "break", ast.Continue: "continue",
    }  # fmt: skip
    tree = ast.parse(code)
    found = {names[type(n)] for n in ast.walk(tree) if type(n) in names}
    found |= {"method call" for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    return found | ({"helper function"} if sum(isinstance(n, ast.FunctionDef) for n in tree.body) > 1 else set())


def task_of(problem: Problem, kind: str, name: str) -> Task:
    """Return a generated problem as a task of this kind, its literals canonical as the verifier stamps them."""
    inputs = tuple(canonical_args(text) for text in problem.inputs)
    outputs = tuple(canonical(run.result) for run in problem.runs)
    if kind == "code_f":
        return Task(name, "generator", "", kind, problem.code, inputs, outputs, problem.message, NUM_SHOWN)
    return Task(name, "generator", "", kind, problem.code, inputs[:1], outputs[:1])
