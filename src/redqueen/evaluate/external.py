"""External fitness of a run: the students and the bare base on the frozen suite, as rows for the journal."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from redqueen import __version__
from redqueen.adapters.base_shape import identify_base
from redqueen.config import Config
from redqueen.domains.domain import Item
from redqueen.domains.prompt_format import with_forced_thoughts
from redqueen.domains.registry import apportioned, load_suites, num_proposals, open_domain
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.evaluate.fitness_suite import MODES, Mode, Score, build_score, difference, pool, score
from redqueen.files import read_plain, write_whole
from redqueen.journal.schema import ALL, CHANGE, GAIN, STUDENTS, EvaluationRecord
from redqueen.records import BASE_SLOT, Individual
from redqueen.streams import Streams

EVALUATION_SEED = 20_260_101
"""Seed of sampling on the suite, the same at every step and in every run: the same adapter in the same slot gives the
same samples. The seed of a request also depends on the slot, and its samples on the prompt. Sampled scores of two
members, or of base and control, are thus independent draws: they differ by chance even for equal policies."""


@dataclass(frozen=True)
class Examiner:
    """Scores members on a fixed list of items."""

    engine: Engine
    items: tuple[Item, ...]
    num_samples: int

    @staticmethod
    def of(engine: Engine) -> Examiner:
        """Return the examiner that the config asks for."""
        return Examiner(engine, items_of(engine.config), engine.config.evaluate.num_samples)

    def base(self) -> list[Score]:
        """Score the bare base, sampled and greedy, or read its scores under equal settings from the cache."""
        path = _cache_file(self)
        found = _read_scores(path, self.items)
        if found is None:
            found = self._score([BASE_SLOT])
            _write_scores(path, found)
        return found

    @property
    def of_control(self) -> Examiner | None:
        """The examiner of the control, the base with forced thoughts; None if the config or format has none."""
        forced = with_forced_thoughts(self.engine.prompt_format)
        if forced is None or not self.engine.config.evaluate.control:
            return None
        return replace(self, engine=replace(self.engine, prompt_format=forced))

    def control(self, base: Sequence[Score]) -> list[Score]:
        """Score the control. If the run's own format forces thoughts, it equals ``base``, the base's scores."""
        control = self.of_control
        if control is None:
            return []
        return list(base) if control == self else control.base()

    @property
    def num_new(self) -> int:
        """Number of scores of base and control that are not in the cache."""
        control = self.of_control
        examiners = [self] if control is None or control == self else [self, control]
        return sum(_read_scores(_cache_file(one), one.items) is None for one in examiners)

    def members(self, members: Sequence[Individual]) -> list[Score]:
        """Score members, two records each: sampled, then greedy."""
        return self._score([m.slot for m in members])

    def _score(self, slots: Sequence[int]) -> list[Score]:
        engine = self.engine
        if not self.items or not slots:  # a domain without a suite, or no members to score
            return []
        return score(
            slots,
            self.items,
            engine.sampler,
            engine.prompt_format,
            engine.tokenizer,
            engine.verifier,
            self.num_samples,
            EVALUATION_SEED,
            engine.config.solve.temperature,
        )


def items_of(config: Config) -> tuple[Item, ...]:
    """Return the items of the frozen suite that the config asks for."""
    suites = {name: list(own) for name, own in load_suites(config.propose).items()}
    max_items = config.evaluate.max_items
    if 0 < max_items < sum(map(len, suites.values())):  # shares are those of the proposals
        asked = num_proposals(config.propose)
        shares = {name: sum(asked.get(kind.name, 0) for kind in open_domain(name).kinds) for name in suites}
        num_of = {name: min(num, len(suites[name])) for name, num in apportioned(max_items, shares).items()}
        suites = {name: subset(own, num_of[name]) if num_of[name] else [] for name, own in suites.items()}
    return tuple(item for own in suites.values() for item in own)


# The base's scores -----------------------------------------------------------------------------------------------

CACHE_VARIABLE = "REDQUEEN_CACHE"
"""Environment variable with the folder of the cache; if it is empty, nothing is cached."""

_Share = Annotated[float, Field(ge=0, le=1)]
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_CACHED = TypeAdapter(list[tuple[Mode, Annotated[int, Field(ge=0)], list[_Share | None], list[_Share], list[_Number]]])
"""A cache file. For each mode: number of lost grades; each item's mean (None: all lost), thought_frac and tokens."""


def _cache_file(examiner: Examiner) -> Path | None:
    """Return the cache file of the base's scores, named by a digest of everything that they depend on.

    None if they are not cached: without a cache folder or the base's weights on this machine, or with remote samplers.
    """
    engine, config = examiner.engine, examiner.engine.config
    folder = os.environ.get(CACHE_VARIABLE, os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "redqueen"))
    if not folder or config.sampler.kind != "torch" or not examiner.items:
        return None
    if not (base := identify_base(config.model.base)).sha256:
        return None
    model = config.model.model_copy(update={"base": base.name})  # independent of the path to the folder
    prompts = [
        engine.prompt_format.encode(engine.tokenizer, engine.prompt_format.solve(i.task)) for i in examiner.items
    ]
    parts = (
        base.sha256,
        [__version__, *(version(name) for name in ("torch", "transformers"))],
        [section.model_dump(mode="json") for section in (model, config.solve, config.verify, config.cluster)],
        [config.run.device, config.run.num_lanes, config.run.num_threads, examiner.num_samples, EVALUATION_SEED],
        [type(engine.prompt_format.frame).__name__, repr(examiner.items), prompts],
    )
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return Path(folder).expanduser() / "base_scores" / f"{name[:32]}.json"


def _read_scores(path: Path | None, items: Sequence[Item]) -> list[Score] | None:
    """Read the scores from a cache file; None where it is missing, damaged or does not fit the items."""
    if path is None:
        return None
    try:
        kept = _CACHED.validate_json(read_plain(path))
    except (FileNotFoundError, UserError, ValidationError):
        return None
    columns = [(means, thought_fracs, tokens) for _, _, means, thought_fracs, tokens in kept]
    if tuple(mode for mode, *_ in kept) != MODES or any(len(c) != len(items) for three in columns for c in three):
        return None
    return [
        build_score((BASE_SLOT,), mode, items, np.array(three, dtype=np.float64), num_lost, EVALUATION_SEED)
        for (mode, num_lost, *_), three in zip(kept, columns, strict=True)
    ]


def _write_scores(path: Path | None, scores: Sequence[Score]) -> None:
    """Write scores to the cache. Errors are ignored, because the cache only saves time."""
    if path is None:
        return
    means = [[None if np.isnan(mean) else mean for mean in one.item_means] for one in scores]
    kept = [(s.mode, s.num_lost, m, s.item_thought_fracs, s.item_tokens) for s, m in zip(scores, means, strict=True)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(kept))
    except OSError:
        pass


def subset(items: Sequence[Item], max_items: int) -> list[Item]:
    """Return at most ``max_items`` items, in order: whole clusters (at least one), in proportion to the strata."""
    sizes, strata = Counter(item.cluster for item in items), {item.cluster: item.stratum for item in items}
    rng, drawn = np.random.default_rng(EVALUATION_SEED), []
    for stratum in dict.fromkeys(strata.values()):
        names = [name for name, own in strata.items() if own == stratum]
        drawn += list(zip((rng.permutation(len(names)) + 0.5) / len(names), names, strict=True))
    order = [name for _, name in sorted(drawn)]
    totals = itertools.accumulate(sizes[name] for name in order)
    kept = {order[0]} | {name for name, total in zip(order, totals, strict=True) if total <= max_items}
    return [item for item in items if item.cluster in kept]


def member_records(name: str, scores: Sequence[Score]) -> list[EvaluationRecord]:
    """Return the rows of one member, or of the base or the control, under its name."""
    return [record for one in scores for record in _records(name, one)]


def scored_students(config: Config, students: Sequence[Individual], step: int) -> list[Individual]:
    """Return the students that are scored after ``step``, in order: all, a random subset, or none."""
    if config.num_scored_students >= len(students):
        return list(students)
    drawn = Streams(config.run.rng_seed, step).rng("scored").permutation(len(students))[: config.num_scored_students]
    return [students[i] for i in sorted(drawn)]


def student_records(
    students: Sequence[Individual], scores: Sequence[Score], base: Sequence[Score], items: Sequence[Item]
) -> list[EvaluationRecord]:
    """Return rows for each student, for the mean over students, and for its paired difference from the base."""
    names = {student.slot: student.id for student in students}
    records = [record for one in scores for record in _records(names[one.slots[0]], one)]
    for base_score in base if scores else ():
        same_mode = [one for one in scores if one.mode == base_score.mode]
        mean = pool(same_mode, items, EVALUATION_SEED)
        records += _records(STUDENTS, mean)
        records.append(_difference_record(CHANGE, mean, base_score, items))
    return records


def gain_records(product: Sequence[Score], controls: Sequence[Score], items: Sequence[Item]) -> list[EvaluationRecord]:
    """Return the product's paired difference from the best control, one row for each mode.

    ``controls`` are the scores of the base and of the control; the best of a mode has the highest mean.
    """
    records = []
    for one in product:
        same_mode = [control for control in controls if control.mode == one.mode]
        if same_mode:
            best = max(same_mode, key=lambda control: control.overall.mean)
            records.append(_difference_record(GAIN, one, best, items))
    return records


def _difference_record(name: str, a: Score, b: Score, items: Sequence[Item]) -> EvaluationRecord:
    """Return the row of mean(a - b) over the items, with its 95 % interval; both scores are of one mode."""
    mean = float(np.nanmean(np.array(a.item_means) - np.array(b.item_means)))
    low, high = difference(a, b, items, EVALUATION_SEED)
    return EvaluationRecord(name, ALL, ALL, a.mode, len(items), mean, low, high)


def _records(name: str, score_: Score) -> list[EvaluationRecord]:
    return [
        EvaluationRecord(
            individual=name,
            stratum=stratum,
            kind=kind,
            mode=score_.mode,
            num_items=cell.num_items,
            mean_frac=cell.mean,
            low_frac=cell.interval.low,
            high_frac=cell.interval.high,
            thought_frac=cell.thought_frac,
            mean_tokens=cell.mean_tokens,
        )
        for (stratum, kind), cell in score_.cells.items()
    ]
