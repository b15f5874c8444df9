"""The verifier: what the rest of redqueen calls to run, check and grade what models wrote."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from redqueen.errors import UserError
from redqueen.nouns import Candidate, Grade, Rejection, Task
from redqueen.verify.checking import check_candidate
from redqueen.verify.grading import grade_inputs, grade_literal, grade_program
from redqueen.verify.guard import VERDICT, guarded, guarded_jobs
from redqueen.verify.pool import Jobs, Pool
from redqueen.verify.programs import Rules, verify_program
from redqueen.verify.protections import WEAK, protection_level
from redqueen.verify.records import Limits, Program, Result
from redqueen.verify.zygotes import ZygoteSettings

_NO_LINUX = (
    "the sandbox needs Linux (seccomp); on this system run redqueen in a Linux container, "
    "or verify on a Linux machine and send it the programs"
)


class Verifier:
    """Runs untrusted programs in caged processes. Use it as a context manager; one call at a time is served.

    ``workers``: programs at a time (cores to use). ``num_seeds``: hash seeds a program must agree under (eight at the
    least where sets appear). ``num_inputs`` and ``num_shown``: pairs of an induction task, and how many the solver
    sees. ``allow_weak`` runs even where no system-call filter can be had. ``gated`` False leaves the static gate out.
    ``settings`` is for the cage's own tests; ``warn`` False leaves the warning of weakness to the caller. Raises
    UserError where no sandbox can be had.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        num_seeds: int = 2,
        allow_weak: bool = False,
        num_shown: int = 5,
        num_inputs: int = 10,
        gated: bool = True,
        settings: ZygoteSettings | None = None,
        warn: bool = True,
        weak_remedy: str = "allow_weak = True",
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise UserError(_NO_LINUX)
        if workers < 1 or num_seeds < 1 or not 0 < num_shown < num_inputs:
            raise UserError("a verifier needs workers >= 1, num_seeds >= 1 and 0 < num_shown < num_inputs")
        self.limits = limits or Limits()
        self.num_inputs = num_inputs
        self.num_shown = num_shown
        self._pool = Pool(workers, num_seeds, "plain" if gated else "full", settings or ZygoteSettings())
        self._pool.start()
        observed = self._pool.observed()
        self.protection = protection_level(observed)
        if not observed["seccomp"]:
            self._refuse_or_warn(allow_weak, warn, weak_remedy)
        self.rules = Rules(self.limits, num_seeds, self.protection, gated)

    def _refuse_or_warn(self, allow_weak: bool, warn: bool, weak_remedy: str) -> None:
        if not allow_weak:
            self.close()
            raise UserError(f"{WEAK}, or set {weak_remedy} if you trust every program")
        if warn:
            weakness = f"untrusted programs run with weak protection ({self.protection})"
            warnings.warn(weakness, RuntimeWarning, stacklevel=3)

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes of this verifier."""
        self._pool.close()

    @property
    def num_jobs(self) -> int:
        """How many children have been asked for so far."""
        return self._pool.next_job_id - 1

    def process_ids(self) -> list[int]:
        """The zygotes' process ids, to watch what they use."""
        return [zygote.process.pid for zygote in self._pool.zygotes.values()]

    def protections(self) -> dict[str, bool]:
        """What the canaries saw hold on every zygote, by name."""
        return self._pool.observed()

    def run(self, programs: Sequence[Program]) -> list[Result]:
        """Run programs on their inputs. Returns one result for each, in order."""
        return self._pool.drive(self._verify(program) for program in programs)

    def check(self, candidates: Sequence[Candidate]) -> list[Task | Rejection]:
        """Turn candidates into tasks or rejections, in order."""
        return self._pool.drive(self._check(candidate) for candidate in candidates)

    def grade(self, pairs: Sequence[tuple[Task, str | None]]) -> list[Grade]:
        """Grade answers (literal, argument list or program, as text), in order. Equal pairs are graded once."""
        grades: dict[tuple[Task, str | None], Grade] = {}
        inputs: dict[Task, list[str]] = {}
        programs: list[tuple[Task, str]] = []
        for task, answer in dict.fromkeys(pairs):
            if answer is None:
                grades[task, answer] = Grade(False, "unparsable")
            elif task.kind == "code_o":
                grades[task, answer] = self._grade_literal(task, answer)
            elif task.kind == "code_i":
                inputs.setdefault(task, []).append(answer)
            else:
                programs.append((task, answer))
        graded = self._pool.drive(self._grade_inputs(task, answers) for task, answers in inputs.items())
        for (task, answers), several in zip(inputs.items(), graded, strict=True):
            grades.update({(task, answer): grade for answer, grade in zip(answers, several, strict=True)})
        single = self._pool.drive(self._grade_program(task, answer) for task, answer in programs)
        grades.update(zip(programs, single, strict=True))
        return [grades[pair] for pair in pairs]

    # ---- the same under the guard: no text makes the judge raise -----------------------------------------------------

    def _verify(self, program: Program) -> Jobs[Result]:
        def failed(detail: str) -> Result:
            return Result(program.id, VERDICT, detail=detail, protection=self.protection)

        return guarded_jobs("run", verify_program(program, self.rules), failed)

    def _check(self, candidate: Candidate) -> Jobs[Task | Rejection]:
        jobs = check_candidate(candidate, self.rules, self.num_inputs, self.num_shown)
        return guarded_jobs("check", jobs, lambda detail: Rejection(candidate, VERDICT, detail))

    def _grade_literal(self, task: Task, answer: str) -> Grade:
        max_chars = self.limits.max_output_chars
        return guarded("grade code_o", lambda: grade_literal(task, answer, max_chars), _failed)

    def _grade_inputs(self, task: Task, answers: Sequence[str]) -> Jobs[list[Grade]]:
        jobs = grade_inputs(task, answers, self.rules)
        return guarded_jobs("grade code_i", jobs, lambda detail: [_failed(detail)] * len(answers))

    def _grade_program(self, task: Task, answer: str) -> Jobs[Grade]:
        return guarded_jobs("grade code_f", grade_program(task, answer, self.rules), _failed)


def _failed(detail: str) -> Grade:
    return Grade(False, VERDICT, detail)
