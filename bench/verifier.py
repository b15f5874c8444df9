"""Speed of the verifier compared with other ways of running programs, on this machine, in one run.

Prints a table and, as its last line, one JSON object: medians of ``--repeats`` rounds. ``trivial_per_s``: isolated
tasks per second, one child process each; ``cruxeval_per_s``: programs per second with two hash seeds (the same work in
every version); ``loops_per_s``: the same when one in twenty programs never ends; ``default_per_s``: with the default
number of hash seeds; ``cruxeval_cpu_ms``, ``default_cpu_ms``: CPU time of all processes per program; ``code_o_per_s``:
literal answers graded; ``measures_per_s``: programs measured. Baselines: a fresh interpreter per program,
``pydantic-monty`` if installed, and ``exec`` in this process (no isolation, as in the Absolute Zero Reasoner).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from redqueen.domains.code.measures import measure
from redqueen.domains.registry import grade
from redqueen.records import Task
from redqueen_sandbox import Program, Sandbox

CRUXEVAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "benchmarks" / "cruxeval.jsonl.gz"
TRIVIAL = "def f(x):\n    return x + {}"
ENDLESS = "def f(x):\n    while True:\n        x += 1"
SUBSTITUTES = [  # used if CRUXEval is not available
    ("def f(text):\n    return ' '.join(sorted(text.split(), key=len))", "'some words of a line'"),
    ("def f(n):\n    out = []\n    for i in range(n):\n        out.append((i * i) % 7)\n    return out", "12"),
    ("def f(d):\n    return {v: k for k, v in d.items() if v}", "{'a': 1, 'b': 0, 'c': 3}"),
]


def cruxeval_programs(count: int) -> list[Program]:
    """Return ``count`` programs of CRUXEval, or of the substitutes if it is not available."""
    if CRUXEVAL.exists():
        with gzip.open(CRUXEVAL, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        pairs = [(row["code"], row["input"]) for row in rows]
    else:
        pairs = SUBSTITUTES
    return [Program(str(i), *(pairs[i % len(pairs)][0], (pairs[i % len(pairs)][1],))) for i in range(count)]


def per_second(work: Callable[[], None], count: int, repeats: int) -> float:
    """Return the median rate over ``repeats`` calls of ``work``, which processes ``count`` items."""
    rates = []
    for _ in range(repeats):
        start_s = time.perf_counter()
        work()
        rates.append(count / (time.perf_counter() - start_s))
    return statistics.median(rates)


def resident_mb(pids: list[int]) -> float:
    """Return the total resident memory of these processes in megabytes."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_ms(verifier: Sandbox, programs: list[Program]) -> float:
    """Return the CPU time per program of judge, zygotes and children, ms; it hardly depends on the machine's load."""

    def used_s() -> float:
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in verifier.process_ids()]
        return time.process_time() + sum(int(ticks) for stat in stats for ticks in stat[11:15]) / os.sysconf(
            "SC_CLK_TCK"
        )

    before_s = used_s()
    check_ok(verifier, programs)
    return 1000 * (used_s() - before_s) / len(programs)


def bench_verifier(workers: int, size: int, repeats: int, memory_tasks: int) -> dict[str, float]:
    """Measure the verifier."""
    trivial = [Program(str(i), TRIVIAL.format(i), ("3",)) for i in range(size)]
    crux = cruxeval_programs(size)
    loops = [Program(str(i), ENDLESS, ("1",)) if i % 20 == 0 else program for i, program in enumerate(crux)]
    task = Task("t", "T", "S", "code_o", "", ("3",), ("[1, 2, 'abc', {'a': [1.5, None]}]",))
    answers = [(task, f"[1, 2, 'abc', {{'a': [1.5, {i}]}}]") for i in range(20 * size)]
    found: dict[str, float] = {}
    with Sandbox(workers=workers, num_seeds=1) as verifier:
        found["trivial_per_s"] = per_second(lambda: check_ok(verifier, trivial), size, repeats)
        if memory_tasks:
            found |= bench_memory(verifier, memory_tasks)
    with Sandbox(workers=workers) as verifier:
        verifier.run(crux)  # start every zygote that these programs need
        found["default_per_s"] = per_second(lambda: check_ok(verifier, crux), size, repeats)
        found["default_cpu_ms"] = cpu_ms(verifier, crux)
    with Sandbox(workers=workers, num_seeds=2) as verifier:
        verifier.run(crux)
        found["cruxeval_per_s"] = per_second(lambda: check_ok(verifier, crux), size, repeats)
        found["cruxeval_cpu_ms"] = cpu_ms(verifier, crux)
        found["loops_per_s"] = per_second(lambda: check_ok(verifier, loops), size, repeats)
        found["code_o_per_s"] = per_second(lambda: none_of(grade(answers, verifier)), len(answers), repeats)
    codes = [program.code for program in crux]
    found["measures_per_s"] = per_second(lambda: none_of([measure(code) for code in codes]), size, repeats)
    return found


def check_ok(verifier: Sandbox, programs: list[Program]) -> None:
    """Run programs; raise if the verifier does not accept them all."""
    verdicts = [result.verdict for result in verifier.run(programs)]
    if verdicts.count("ok") < 0.9 * len(programs):
        raise SystemExit(f"only {verdicts.count('ok')} of {len(programs)} programs were ok")


def none_of(values: object) -> None:
    """Discard values."""


def bench_memory(verifier: Sandbox, count: int) -> dict[str, float]:
    """Measure the resident memory of judge and zygotes after 1 % and after all of ``count`` tasks."""

    def run(first: int, last: int) -> float:
        for start in range(first, last, 1_000):
            verifier.run([Program(str(i), TRIVIAL.format(i), ("3",)) for i in range(start, min(start + 1_000, last))])
        return resident_mb([os.getpid(), *verifier.process_ids()])

    before = run(0, count // 100)
    return {"memory_tasks": count, "memory_before_mb": round(before, 1), "memory_after_mb": run(count // 100, count)}


def bench_subprocess(programs: list[Program], flags: tuple[str, ...]) -> None:
    """Run each program in a fresh interpreter."""
    for program in programs:
        source = f"{program.code}\nprint(repr(f({program.inputs[0]})))"
        subprocess.run([sys.executable, *flags, "-c", source], capture_output=True)


def bench_exec(programs: list[Program]) -> None:
    """Evaluate program and answer in this process, without isolation."""
    for program in programs:
        namespace: dict[str, object] = {}
        exec(program.code, namespace)
        repr(eval(f"f({program.inputs[0]})", namespace))


def bench_monty(programs: list[Program], workers: int) -> bool:
    """Run with ``pydantic-monty``, an interpreter of a Python subset in Rust. Returns whether it is installed."""
    try:
        import pydantic_monty
    except ImportError:
        return False
    with pydantic_monty.Monty(min_processes=workers) as pool:
        for program in programs:
            with pool.checkout() as session:
                session.feed_run(f"{program.code}\nf({program.inputs[0]})")
    return True


def bench_baselines(workers: int, size: int, repeats: int) -> dict[str, float]:
    """Measure the baselines on trivial programs."""
    few = [Program(str(i), TRIVIAL.format(i), ("3",)) for i in range(max(5, size // 20))]
    many = [Program(str(i), TRIVIAL.format(i), ("3",)) for i in range(size)]
    found = {
        "subprocess_per_s": per_second(lambda: bench_subprocess(few, ()), len(few), repeats),
        "subprocess_bare_per_s": per_second(lambda: bench_subprocess(few, ("-S", "-I")), len(few), repeats),
        "exec_no_isolation_per_s": per_second(lambda: bench_exec(many), size, repeats),
    }
    if bench_monty(few, workers):
        found["monty_subset_per_s"] = per_second(lambda: none_of(bench_monty(many, workers)), size, repeats)
    return found


def main() -> None:
    """Measure and print the table, then the results as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="programs at a time")
    parser.add_argument("--size", type=int, default=400, help="programs a round")
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the median is reported")
    parser.add_argument("--memory-tasks", type=int, default=0, help="also watch memory over this many tasks (100000)")
    options = parser.parse_args()
    found = bench_verifier(options.workers, options.size, options.repeats, options.memory_tasks)
    found |= bench_baselines(options.workers, options.size, options.repeats)
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.workers} workers, "
        f"medians of {options.repeats} rounds, CRUXEval {'at hand' if CRUXEVAL.exists() else 'replaced by stand-ins'}"
    )
    for name, value in found.items():
        print(f"{name:26s} {value:12,.1f}")
    print(json.dumps({name: round(value, 1) for name, value in found.items()}))


if __name__ == "__main__":
    main()
