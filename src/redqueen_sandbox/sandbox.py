"""The verifier: the class with which the rest of redqueen runs, checks and grades texts of models."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from redqueen_sandbox.errors import UserError
from redqueen_sandbox.guard import VERDICT, guarded_jobs
from redqueen_sandbox.pool import Answer, Jobs, Pool
from redqueen_sandbox.programs import NUM_SEEDS, Rules, verify_program
from redqueen_sandbox.records import WEAK, Limits, Program, Report, Result, protection_level, unheard
from redqueen_sandbox.zygotes import ZygoteSettings


class Sandbox:
    """Runs untrusted programs in caged processes. Use it as a context manager. It serves one call at a time, in the
    process that opened it; a forked process must open its own.

    ``workers``: programs at a time (cores to use). ``num_seeds``: fresh processes, each under its own hash seed, that
    must agree on a program's outputs (see ``programs.confirm``). ``allow_weak`` runs programs even without a
    system-call filter. ``gated`` False omits the static gate and gives programs more modules: for benchmarks, with
    ``num_seeds`` 1. ``settings`` is for the cage's own tests. ``warn`` False: the caller warns of weak protection.
    ``report`` is called with the progress of each call. Raises UserError if no sandbox can be started.
    """

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        num_seeds: int = NUM_SEEDS,
        allow_weak: bool = False,
        gated: bool = True,
        settings: ZygoteSettings | None = None,
        warn: bool = True,
        weak_remedy: str = "allow_weak = True",
        report: Report = unheard,
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise UserError(
                "the sandbox needs Linux (seccomp); on this system run redqueen in a Linux container, "
                "or verify on a Linux machine and send it the programs"
            )
        if workers < 1 or num_seeds < 1:
            raise UserError("a verifier needs workers >= 1 and num_seeds >= 1")
        self.limits = limits or Limits()
        self._pool = Pool(workers, num_seeds, "plain" if gated else "open", settings or ZygoteSettings(), report)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes of this verifier."""
        self._pool.close()

    @property
    def num_jobs(self) -> int:
        """The number of children requested so far."""
        return self._pool.next_job_id - 1

    def process_ids(self) -> list[int]:
        """The zygotes' process ids, to measure their memory and CPU time."""
        return [zygote.process.pid for zygote in list(self._pool.zygotes.values())]

    def protections(self) -> dict[str, bool]:
        """Return for each protection whether its canary holds on every zygote."""
        return self._pool.observed()

    def drive(self, work: Iterable[Jobs[Answer]]) -> list[Answer]:
        """Run generators that yield jobs and are sent their runs, several at a time. Returns their answers in order."""
        return self._pool.drive(work)

    def judge(self, work: Sequence[Callable[[Rules], Jobs[Answer]]]) -> list[Answer]:
        """Create each generator with this verifier's rules and run it. Returns their answers in order."""
        return self.drive([one(self.rules) for one in work])

    def run(self, programs: Sequence[Program]) -> list[Result]:
        """Run programs on their inputs. Returns one result for each, in order."""
        return self.drive(self._verify(program) for program in programs)

    def _verify(self, program: Program) -> Jobs[Result]:
        def failed(detail: str) -> Result:
            return Result(program.id, VERDICT, detail=detail, protection=self.protection)

        return guarded_jobs("run", verify_program(program, self.rules), failed)
