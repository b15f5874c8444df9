"""What a retention experiment leaves behind: curves.csv, retention.json and report.md."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from redqueen.experiment.retention.findings import MARGIN_FRAC, NUM_RESAMPLES, Finding, Findings
from redqueen.experiment.retention.lineup import Entry
from redqueen.experiment.retention.settings import RetentionSettings
from redqueen.experiment.retention.trial import Scores, Trial
from redqueen.statistics import CONFIDENCE, Estimate

CURVES, FINDINGS, REPORT = "curves.csv", "retention.json", "report.md"


def write_outputs(
    folder: Path,
    trials: Sequence[Trial],
    entries: Sequence[Entry],
    findings: Findings,
    settings: RetentionSettings,
    base_sha256: str,
    command: str,
) -> Path:
    """Write the three files into ``folder`` and return the report's path."""
    _write_curves(folder / CURVES, trials, entries)
    record = findings_to_plain(findings, trials, settings, base_sha256, command)
    (folder / FINDINGS).write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    path = folder / REPORT
    path.write_text(report_text(findings, trials, settings, base_sha256, command))
    return path


def findings_to_plain(
    findings: Findings, trials: Sequence[Trial], settings: RetentionSettings, base_sha256: str, command: str
) -> dict[str, Any]:
    """Return everything found as plain JSON values; what is not defined is null."""
    return {
        "command": command,
        "base_sha256": base_sha256,
        "settings": asdict(settings),
        "confidence": CONFIDENCE,
        "margin_frac": MARGIN_FRAC,
        "margin": _plain(findings.margin),
        **{name: _estimate(getattr(findings, name)) for name in ("base", "parent", "second_parent", "gain")},
        "seeds": [
            {
                "seed": trial.seed,
                "base": _mean(trial.base),
                "parents": [_mean(scores) for scores in trial.parents],
                "fitness": list(trial.fitness),
                "parent_distance": trial.parent_distance,
                "num_broken": trial.num_broken,
                "num_lost": trial.num_lost,
            }
            for trial in trials
        ],
        "operators": [
            {
                "operator": one.entry.operator,
                "space": one.entry.space,
                "relative_change": one.relative_change,
                **{name: _estimate(value) for name, value in _estimates(one).items()},
                "back_after": one.back_after,
                "verdict": one.verdict,
                "sentence": one.sentence,
            }
            for one in findings.entries
        ],
    }


def report_text(
    findings: Findings, trials: Sequence[Trial], settings: RetentionSettings, base_sha256: str, command: str
) -> str:
    """Return the report as markdown."""
    return f"""# Retention of the operators

`{command}`, {len(trials)} seeds, embedded base {base_sha256[:12]}.

{_what_was_done(trials, settings)}

{_lines(_levels(findings, trials))}

## Table

{_lines(_table(findings))}

## Verdicts

{_lines([f"- {one.sentence}" for one in findings.entries])}

## How to read it

{_lines(_how_to_read(findings, len(trials), settings))}
"""


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines)


def _what_was_done(trials: Sequence[Trial], settings: RetentionSettings) -> str:
    kinds = " and ".join(settings.kinds)
    num_broken, num_lost = sum(trial.num_broken for trial in trials), sum(trial.num_lost for trial in trials)
    return (
        f"For each seed two parents were trained from fresh adapters for {settings.num_parent_updates} updates, each "
        f"on tasks of its own ({settings.num_parent_programs} programs an update, {kinds}, {settings.num_attempts} "
        f"attempts a task); the one that solves more of {settings.num_fitness} further programs is the first. Every "
        f"operator made one child in each of its spaces, and all children were trained together for "
        f"{settings.num_updates} updates, on the same tasks ({settings.num_programs} programs an update) and with the "
        f"same dice. Scores are shares of right attempts at {settings.num_held_out} held-out programs ({kinds}, "
        f"temperature 1, {settings.num_samples} attempt(s) a task). LoRA rank {settings.lora_rank}, learning rate "
        f"{settings.learning_rate:g}; {num_broken} updates were not finite, {num_lost} training "
        f"attempts were lost by the verifier."
    )


def _levels(findings: Findings, trials: Sequence[Trial]) -> list[str]:
    apart = sum(trial.parent_distance for trial in trials) / len(trials)
    lines = [
        "| | score |",
        "|---|---|",
        f"| base | {_percent(findings.base)} |",
        f"| first parents | {_percent(findings.parent)} |",
        f"| second parents | {_percent(findings.second_parent)} |",
        f"| gain of the first parents | {_percent(findings.gain)} |",
        "",
        f"The parents of a seed stand apart by {apart:.2f} of their size (two unrelated adapters of one size: 1.41).",
    ]
    if not findings.gain.interval.low > 0:
        lines += ["", "**The parents are not measurably better than the base: nothing below is a verdict.**"]
    return lines


def _table(findings: Findings) -> list[str]:
    lines = [
        "| operator | change | retention at birth | score at birth | score at the end | area | area over `copy_parent` "
        "| area over `linear_0_5` | back after | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    return lines + [_row(one) for one in findings.entries]


def _row(one: Finding) -> str:
    back = "–" if one.back_after is None else str(one.back_after)
    estimates = _estimates(one)
    order = ("retention", "birth", "end", "area", "over_copy_parent", "over_linear_0_5")
    numbers = [_percent(estimates[name]) for name in order]
    return f"| {' | '.join([one.entry.label, f'{one.relative_change:.2f}', *numbers, back, one.verdict])} |"


def _estimates(one: Finding) -> dict[str, Estimate]:
    """What is estimated of an entry, by its name in the file of findings."""
    return {
        "birth": one.birth,
        "end": one.end,
        "retention": one.retention,
        "area": one.area,
        "over_copy_parent": one.over_copy,
        "over_linear_0_5": one.over_linear,
    }


def _how_to_read(findings: Findings, num_seeds: int, settings: RetentionSettings) -> list[str]:
    num_judged = sum(one.verdict != "control" for one in findings.entries)
    return [
        f"- Brackets are {CONFIDENCE:.0%} bootstrap intervals ({NUM_RESAMPLES:,} draws) over seeds and held-out "
        f"programs at once. With {num_seeds} seeds they are rather too narrow than too wide.",
        "- *change*: |dW_child - dW_parent| / |dW_parent|, mean over seeds. *retention*: (child - base) / (first "
        "parent - base) at birth. *area*: area under the recovery curve divided by its length, a mean score.",
        "- *back after*: the first measured update at which the mean score has reached the first parents' "
        f"(measured every {settings.measure_every}).",
        f"- *keeps*: the area's difference to `copy_parent` lies surely above -{100 * findings.margin:.1f} points, "
        f"{MARGIN_FRAC:.0%} of the gain. *loses*: it lies surely below 0. *undecided*: neither.",
        f"- Of {num_judged} comparisons about {num_judged * (1 - CONFIDENCE):.0f} stand out by chance alone.",
        "- One child an operator, space and seed: an operator that draws much varies more than these children show.",
    ]


def _write_curves(path: Path, trials: Sequence[Trial], entries: Sequence[Entry]) -> None:
    """One row a seed, member and measured update; base and parents stand at update 0."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["seed", "operator", "space", "update", "score"])
        for trial in trials:
            named = [("base", trial.base), *((f"parent_{i}", s) for i, s in enumerate(trial.parents, start=1))]
            writer.writerows([trial.seed, name, "", 0, _text(_mean(scores))] for name, scores in named)
            for i, entry in enumerate(entries):
                for update, measured in zip(trial.updates, trial.curves, strict=True):
                    row = [trial.seed, entry.operator, entry.space, update, _text(_mean(measured[i]))]
                    writer.writerow(row)


def _mean(scores: Scores) -> float | None:
    known = [value for value in scores if value is not None]
    return sum(known) / len(known) if known else None


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    low, high = estimate.interval
    return {"value": _plain(estimate.value), "low": _plain(low), "high": _plain(high)}


def _plain(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _percent(estimate: Estimate) -> str:
    if not math.isfinite(estimate.value):
        return "–"
    low, high = (100 * bound for bound in estimate.interval)
    return f"{100 * estimate.value:.1f} % [{low:.1f}, {high:.1f}]"
