"""Starting the verifier of a run: its limits come from the config."""

from __future__ import annotations

from redqueen.config import Config
from redqueen_sandbox.records import Limits, Report, unheard
from redqueen_sandbox.sandbox import Sandbox
from redqueen_sandbox.zygotes import ZygoteSettings

WEAK_REMEDY = "verify.allow_weak = true (for `train`: --set verify.allow_weak=true; with a run folder: --allow-weak)"


def open_sandbox(config: Config, num_workers: int | None = None, report: Report = unheard) -> Sandbox:
    """Start a verifier with the config's limits. ``num_workers``, when given, replaces the config's.

    ``report`` is called with the progress of each verifier call.
    """
    verify = config.verify
    return Sandbox(
        workers=num_workers or verify.num_workers,
        limits=Limits(cpu_ms=verify.kill_cpu_ms, accept_cpu_ms=verify.accept_cpu_ms),
        allow_weak=verify.allow_weak,
        weak_remedy=WEAK_REMEDY,
        settings=ZygoteSettings(hash_seed=(2_654_435_769 * (config.run.rng_seed + 1)) % 2**32),  # repeatable
        report=report,
    )
