"""Write the last section of experiments/README.md, the verdicts, from the tables; a test holds the two together.

.venv/bin/python experiments/write_verdicts.py
"""

from __future__ import annotations

from pathlib import Path

from redqueen.experiment.claims import Verdict, verdicts
from redqueen.experiment.plan import load_experiment
from redqueen.experiment.recorded import recorded_runs
from redqueen.experiment.tables import all_numbers, by_arm

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
HEADING = "## The verdicts\n\n"
ASKED = {
    "arms": ("arms", "12345678Rabcdef"),
    "long": ("long", "123456R"),
    "smollm2-claims": ("smollm2/claims", "1234568Rad"),
}
"""By experiment, the folder of its tables, and the claims and objections that its arms can decide."""


def section() -> str:
    """Return the verdicts as markdown, experiment by experiment."""
    return "\n".join(_table(name, folder, asked) for name, (folder, asked) in ASKED.items())


def with_section(text: str, written: str) -> str:
    """Return the page's text with ``written`` as its last section."""
    before, _ = text.split(HEADING)
    return before + HEADING + written


def _table(name: str, folder: str, asked: str) -> str:
    """Say how many runs of an experiment decide, then show a row for each claim and objection that is asked of it."""
    plan = load_experiment(HERE / f"{name}.toml")
    measured = recorded_runs(plan, HERE / folder)
    found = verdicts(by_arm(measured, all_numbers(measured)))
    lines = [
        f"### {plan.steps} steps: `experiments/{name}.toml`",
        "",
        f"From {len(measured)} of {len(plan.runs)} runs ([report]({folder}/report.md)), written by "
        "`experiments/write_verdicts.py`; in brackets 95 % intervals over seeds.",
        "",
        "| | claim or objection | verdict | by |",
        "|---|---|---|---|",
        *(_row(verdict) for verdict in found if verdict.id in asked),
    ]
    return "\n".join(lines) + "\n"


def _row(verdict: Verdict) -> str:
    """Show what decides: the statements with the verdict's own word, which are all of them where it is seen."""
    deciding = [part for part in verdict.parts if part.word == verdict.word]
    by = "<br>".join(f"{part.statement}: {part.figure}" for part in deciding)
    return f"| {verdict.id} | {verdict.claim} | **{verdict.word}** | {by} |"


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), section()), encoding="utf-8")
