"""Verifying one program: a run in one process, then runs in others under other hash seeds, with reordered inputs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from redqueen_sandbox.guard import Answer
from redqueen_sandbox.literals import LiteralError, canonical_args
from redqueen_sandbox.records import Limits, Program, Result
from redqueen_sandbox.runs import Job, Run
from redqueen_sandbox.words import is_tame, kind_for

NUM_SEEDS = 8
"""Hash seeds under which a program's outputs must agree: a fair coin flip agrees once in 128 times (ours)."""

CALL_MEMORY_BYTES = 256 << 20
"""Address space of a call job in addition to its warm interpreter, bytes (ours: libraries need more)."""
_ODD_MEMORY = 32, 15
"""Memory of the odd run, as a fraction of a normal run's. A program whose output depends on how much memory it can
allocate differs in this run, even if it doubles its requests (ours)."""

_MIN_CHARS = 1_024
_WALL_FACTOR = 5  # a job that hits its wall deadline before its CPU limit is retried with this many times the deadline


@dataclass(frozen=True)
class Rules:
    """The settings that apply to every program of one verifier."""

    limits: Limits
    num_seeds: int
    protection: str
    gated: bool = True

    def room_for(self, known: Sequence[str]) -> int:
        """Return the maximum length of an answer, characters: twice the longest of ``known``, at least 1,024 (ours)."""
        return min(self.limits.max_input_chars, max([_MIN_CHARS, *[2 * len(text) for text in known]]))


def make_job(
    code: str, inputs: tuple[tuple[str, str], ...], mode: str, rules: Rules, entry: str = "f",
    wanted: Sequence[str] = (),
) -> Job:  # fmt: skip
    """Return a job under the rules' limits. The child learns only a bound on the length of the ``wanted`` outputs: the
    longest, rounded up to a power of two (ours). Code and inputs determine the hash seed, so that runs can be repeated;
    tame and ungated code has -1, any seed."""
    limits, texts = rules.limits, tuple([text for _, text in inputs])
    is_free = not rules.gated or is_tame(code, texts)
    room = 1 << max([len(text).bit_length() for text in wanted], default=64)
    return Job(
        code=code,
        inputs=inputs,
        mode=mode,
        cpu_ms=limits.cpu_ms,
        wall_ms=max(limits.wall_ms, 2 * limits.cpu_ms),
        memory_bytes=limits.memory_bytes,
        max_output_chars=min(limits.max_output_chars, max(room, _MIN_CHARS)),
        entry=entry,
        kind=kind_for(code) if rules.gated else "open",
        seed=-1 if is_free else crc32("\0".join((code, *texts)).encode("utf-8", "replace")) % rules.num_seeds,
    )


def call_job(module: str, function: str, arguments: Sequence[str], cpu_ms: int, rules: Rules) -> Job:
    """Return a job that calls a trusted function on untrusted texts, with the libraries that its module imports.

    The module is imported before the cage closes, so it must import at module level everything that it needs.
    """
    return Job(
        code=f"from {module} import {function}\n",
        inputs=(("literal", ", ".join(map(repr, arguments))),),
        mode="all",
        cpu_ms=cpu_ms,
        wall_ms=max(rules.limits.wall_ms, 2 * cpu_ms),
        memory_bytes=CALL_MEMORY_BYTES,
        max_output_chars=rules.limits.max_output_chars,
        entry=function,
        kind=module,
    )


def run_once(job: Job) -> Generator[Job, Run, Run]:
    """Run a job, and run it again with a longer wall deadline if it was stopped before it used its CPU time.

    That is a job that hit the wall deadline or seemed asleep: on a busy machine a child may have to wait for a core.
    """
    run = yield job
    if run.ended == "timeout" and run.detail in ("wall", "asleep") and run.cpu_ms < 0.9 * job.cpu_ms:
        run = yield replace(job, wall_ms=_WALL_FACTOR * job.wall_ms)
    return run


def blind_to_limits(jobs: Generator[Job, Run, Answer]) -> Generator[Job, Run, Answer]:
    """Run ``jobs``, but report to them a CPU timeout and an exhausted memory as the same result.

    Which of the two a program that fills its memory reaches first depends on the load of the machine, and the contents
    of a journal must not depend on it.
    """
    try:
        job = next(jobs)
        while True:
            run = yield job
            if run.ended == "memory" or (run.ended == "timeout" and run.detail == "cpu"):
                run = replace(run, ended="timeout", detail="cpu or memory")
            job = jobs.send(run)
    except StopIteration as ended:
        return ended.value


def read_input(text: str, limits: Limits) -> tuple[str, str] | str:
    """Classify one argument list: return (``literal``, canonical text) or (``expression``, the text unchanged).

    The child checks an expression again, as syntax. A plain string instead of a pair is the detail of a refusal.
    """
    try:
        return "literal", canonical_args(text, wide=True, max_chars=limits.max_input_chars)
    except LiteralError as error:
        if error.too_large:
            return str(error)
        return "expression", text


def verify_program(program: Program, rules: Rules) -> Generator[Job, Run, Result]:
    """Run a program on its inputs under several hash seeds. Returns its result."""
    limits = rules.limits
    if len(program.code) > limits.max_code_chars:
        return Result(program.id, "too-large", detail="source", protection=rules.protection)
    inputs = []
    for text in program.inputs:
        read = read_input(text, limits)
        if isinstance(read, str):
            return Result(program.id, "invalid-input", detail=read, protection=rules.protection)
        inputs.append(read)
    job = make_job(program.code, tuple(inputs), "all", rules, program.entry)
    first = yield from run_once(job)
    if first.verdict != "ok":
        return Result(program.id, first.verdict, (), first.reason, rules.protection, first.cpu_ms)
    second = yield from confirm(job, first, rules.num_seeds)
    if second.verdict != "ok":
        return Result(program.id, second.verdict, (), second.reason, rules.protection, second.cpu_ms)
    outputs = tuple(item.text for item in first.items)
    return Result(program.id, "ok", outputs, "", rules.protection, max(first.cpu_ms, second.cpu_ms))


def confirm(job: Job, first: Run, num_seeds: int) -> Generator[Job, Run, Run]:
    """Run the job again, in a fresh process per further hash seed, and compare the outputs with those in ``first``.

    There are ``num_seeds`` runs in all, ``first`` included, but at most two of a tame program (see ``is_tame``). Inputs
    come in reverse order, then rotated by one more each time. If ``num_seeds`` is above two, the second run is odd: it
    has more memory and frames, and sets in its inputs are built backwards. A program that can distinguish it from the
    others is refused. Returns the run with the most CPU time if all agree, else one whose verdict says why not.
    """
    memory_bytes = job.memory_bytes * _ODD_MEMORY[0] // _ODD_MEMORY[1]
    costliest = first
    has_odd = num_seeds > 2
    if has_odd and is_tame(job.code, tuple([text for _, text in job.inputs])):
        num_seeds = 2
    others = [seed for seed in range(num_seeds + 1) if seed != first.seed]
    for number, seed in enumerate(others[: num_seeds - 1]):
        order = [(number - 1 - i) % len(job.inputs) for i in range(len(job.inputs))]
        inputs = tuple([job.inputs[i] for i in order])
        further = replace(job, inputs=inputs, again=True, seed=seed)
        if number == 0 and has_odd:
            further = replace(further, odd=True, memory_bytes=memory_bytes)
        again = yield from run_once(further)
        if again.ended in ("infra", "timeout", "memory"):
            return again
        if again.verdict != "ok" or any(again.items[place] != first.items[i] for place, i in enumerate(order)):
            return Run("nondeterministic", "hash seeds disagree", cpu_ms=again.cpu_ms)
        costliest = max(costliest, again, key=lambda run: run.cpu_ms)
    return costliest
