"""Tasks for training and for measuring: generated programs, run and stamped by the verifier, never one in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from redqueen.domains.code.suite import SUITES
from redqueen.domains.registry import check
from redqueen.engine import Engine
from redqueen.nouns import Candidate, Rejection, Task
from redqueen.propose.too_long import reject_too_long
from redqueen.tiny.held_out import held_out_skeletons
from redqueen.tiny.problems import Problem, skeleton, write_problem

HELD_OUT = "held-out"
NUM_RETRIES = 3


class TaskSource:
    """Writes tasks by name: equal names give equal tasks, and no training task has a held-out program.

    Held-out here means: of the frozen suite or of ``held_out``, compared up to renaming.
    """

    def __init__(self, engine: Engine, kinds: Sequence[str], levels: Sequence[int], num_held_out: int) -> None:
        self.engine, self.kinds, self.levels = engine, kinds, levels
        self.avoided = set(held_out_skeletons(SUITES))
        self.held_out = self.write(HELD_OUT, num_held_out)
        self.avoided |= {skeleton(task.code) for task in self.held_out}

    def write(self, name: str, num_programs: int) -> list[Task]:
        """Write ``num_programs`` programs of the levels in turn; each gives one task of every kind, side by side."""
        tasks: list[Task] = []
        used: set[str] = set()
        problems = self._problems(name, used)
        while len(tasks) < num_programs * len(self.kinds):
            missing = num_programs - len(tasks) // len(self.kinds)
            wanted = [next(problems) for _ in range(missing)]
            tasks += self._stamped(f"{name}/{len(used)}", wanted)
        return tasks

    def _problems(self, name: str, used: set[str]) -> Iterator[Problem]:
        """Yield problems that are neither avoided nor duplicates."""
        rng = Random(f"retention/{name}")
        while True:
            level = self.levels[len(used) % len(self.levels)]
            problem = write_problem(rng, level, self.avoided | used)
            if problem is not None:
                used.add(skeleton(problem.code))
                yield problem

    def _stamped(self, name: str, problems: Sequence[Problem]) -> list[Task]:
        """Have the verifier run the programs; those that it refuses, or whose prompt is too long, are left out."""
        engine = self.engine
        candidates = [
            Candidate(f"{name}/{i}/{kind}", "generator", "", kind, "", problem.code, problem.inputs[:1])
            for i, problem in enumerate(problems)
            for kind in self.kinds
        ]
        judged = check(candidates, engine.verifier, engine.config.verify)
        for _ in range(NUM_RETRIES):  # what the infrastructure lost is judged again, so that equal names stay equal
            lost = [i for i, v in enumerate(judged) if isinstance(v, Rejection) and v.reason == "infra"]
            again = check([candidates[i] for i in lost], engine.verifier, engine.config.verify)
            for i, verdict in zip(lost, again, strict=True):
                judged[i] = verdict
        limit = engine.limits.solve_prompt_tokens
        judged = reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limit)
        num_kinds = len(self.kinds)
        groups = [judged[i : i + num_kinds] for i in range(0, len(judged), num_kinds)]
        return [v for group in groups if all(isinstance(v, Task) for v in group) for v in group if isinstance(v, Task)]
