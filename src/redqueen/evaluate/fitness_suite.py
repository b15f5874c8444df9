"""External fitness: members' scores on the held-out suite, sampled and greedy, with intervals. Not used for selection.

An item's score is the share of its attempts that were right. The interval of a mean over items is from a bootstrap. It
resamples whole functions, because tasks made from one function are not independent, and it keeps the number of
functions in each stratum of difficulty, because the suite fixes it. Attempts whose grading was lost do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from redqueen.domains.domain import Item
from redqueen.domains.prompt_format import PromptFormat
from redqueen.domains.registry import JobRunner, grade
from redqueen.records import Completion, Request, Task
from redqueen.statistics import Interval, bootstrap_mean

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from redqueen.adapters.protocols import Sampler

Mode = Literal["sampled", "greedy"]
MODES: tuple[Mode, ...] = ("sampled", "greedy")
ALL = "all"

NUM_RESAMPLES = 1000
"""Bootstrap resamples of every interval in a score (ours)."""

SamplerFactory = Callable[[float], "Sampler"]
"""Returns a sampler for a temperature (0 is greedy)."""


@dataclass(frozen=True)
class Cell:
    """A mean over some items: ``mean`` and ``interval`` are shares of correct answers in [0, 1], nan without items.

    ``thought_frac`` is the share of attempts with a thought, ``mean_tokens`` their mean length with the end token.
    """

    num_items: int
    mean: float
    interval: Interval
    thought_frac: float
    mean_tokens: float


@dataclass(frozen=True)
class Score:
    """One member (or several pooled) on the suite in one mode.

    ``item_means``, ``item_thought_fracs`` and ``item_tokens`` are in the order of the items; the mean of an item whose
    grades were all lost is nan. ``cells`` maps (stratum, kind) to a mean. The stratum is that of an item, a suite's
    name (all its strata), or "all"; the kind is that of an item or "all".
    """

    slots: tuple[int, ...]
    mode: Mode
    item_means: tuple[float, ...]
    item_thought_fracs: tuple[float, ...]
    item_tokens: tuple[float, ...]
    num_lost: int
    cells: dict[tuple[str, str], Cell]

    @property
    def overall(self) -> Cell:
        """The mean over all items."""
        return self.cells[ALL, ALL]


def score(
    slots: Sequence[int],
    items: Sequence[Item],
    sampler_factory: SamplerFactory,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    verifier: JobRunner,
    num_samples: int,
    rng_seed: int,
    temperature: float = 1.0,
    modes: Sequence[Mode] = MODES,
) -> list[Score]:
    """Score every member of ``slots``, once per mode: sampled (``num_samples`` attempts per item at ``temperature``),
    then greedy (one attempt).

    All members and items of a mode are sampled in one call; all answers are graded in one call, equal ones once.
    Samples are independent for every (slot, item) and reproducible by ``rng_seed``. Raises ValueError when there are no
    items or ``num_samples`` is below 1.
    """
    if not items or num_samples < 1:
        raise ValueError("scoring needs at least one item and one sample an item")
    prompts = [prompt_format.encode(tokenizer, prompt_format.solve(item.task)) for item in items]
    groups: list[list[Completion]] = []
    for mode in modes:
        count, mode_temperature = (num_samples, temperature) if mode == "sampled" else (1, 0.0)
        requests = [
            Request(slot, prompt, count, request_seed(rng_seed, slot, number))
            for slot in slots
            for number, prompt in enumerate(prompts)
        ]
        groups += sampler_factory(mode_temperature).sample(requests)
    blocks = [(mode, slot) for mode in modes for slot in slots]
    marked = _mark([item.task for _ in blocks for item in items], groups, prompt_format, tokenizer, verifier)
    scores: dict[tuple[Mode, int], Score] = {}
    for position, (mode, slot) in enumerate(blocks):
        own = marked[position * len(items) : (position + 1) * len(items)]
        scores[mode, slot] = build_score((slot,), mode, items, own[:, :3].T, int(own[:, 3].sum()), rng_seed)
    return [scores[mode, slot] for slot in slots for mode in modes]


def pool(scores: Sequence[Score], items: Sequence[Item], rng_seed: int) -> Score:
    """Average several members' scores of one mode: first over the members for each item, then over items.

    The interval is over items, for the mean of these members; it does not include variation between members. Raises
    ValueError unless all scores have one mode and are for ``items``.
    """
    if not scores or len({one.mode for one in scores}) != 1 or any(len(s.item_means) != len(items) for s in scores):
        raise ValueError("pooling needs scores of one mode on the same items")
    slots = tuple(slot for one in scores for slot in one.slots)
    stacked = np.array([[one.item_means, one.item_thought_fracs, one.item_tokens] for one in scores])
    num_lost = sum(one.num_lost for one in scores)
    means = np.ma.masked_invalid(stacked).mean(axis=0).filled(np.nan)
    return build_score(slots, scores[0].mode, items, means, num_lost, rng_seed)


def difference(a: Score, b: Score, items: Sequence[Item], rng_seed: int) -> Interval:
    """Return the interval of mean(a) - mean(b), paired item by item and clustered by function."""
    first, second = np.array(a.item_means), np.array(b.item_means)
    if first.shape != second.shape or len(items) != len(first):
        raise ValueError("a difference needs two scores on the same items")
    kept = np.isfinite(first) & np.isfinite(second)
    clusters = [item.cluster for item, keep in zip(items, kept, strict=True) if keep]
    strata = [item.stratum for item, keep in zip(items, kept, strict=True) if keep]
    rng = np.random.default_rng(rng_seed)
    return bootstrap_mean((first - second)[kept], rng, clusters, NUM_RESAMPLES, strata=strata)


def _mark(
    tasks: Sequence[Task],
    groups: Sequence[Sequence[Completion]],
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    verifier: JobRunner,
) -> NDArray[np.float64]:
    """Parse and grade the completions of each task; (tasks, 4): mean, thought_frac, mean_tokens, num_lost."""
    parsed = [
        [prompt_format.read_attempt(task.kind, tokenizer, one)[1] for one in group]
        for task, group in zip(tasks, groups, strict=True)
    ]
    grades = iter(
        grade([(t, one.answer) for t, answers in zip(tasks, parsed, strict=True) for one in answers], verifier)
    )
    rows = []
    for answers, group in zip(parsed, groups, strict=True):
        judged = [next(grades) for _ in answers]
        right = [grade.correct for grade in judged if not grade.lost]
        thought = sum(bool(one.thought) for one in answers) / len(answers)
        tokens = sum(len(one.tokens) for one in group) / len(group)
        rows.append((sum(right) / len(right) if right else float("nan"), thought, tokens, len(judged) - len(right)))
    return np.array(rows)


def build_score(
    slots: tuple[int, ...],
    mode: Mode,
    items: Sequence[Item],
    columns: NDArray[np.float64],
    num_lost: int,
    rng_seed: int,
) -> Score:
    """Build a score from ``columns`` (3, items): the mean, thought_frac and tokens of each item."""
    rng = np.random.default_rng(rng_seed)
    cells = {key: _cell(index, items, columns, rng) for key, index in _cell_items(items).items()}
    means, thoughts, tokens = (tuple(float(value) for value in row) for row in columns)
    return Score(slots, mode, means, thoughts, tokens, num_lost, cells)


def _cell_items(items: Sequence[Item]) -> dict[tuple[str, str], list[int]]:
    """Return the indices of the items of each (stratum, kind): "all", suite and stratum times "all" and kind."""
    covered: dict[tuple[str, str], list[int]] = {}
    for number, item in enumerate(items):
        for stratum in dict.fromkeys((ALL, item.suite, item.stratum)):
            for kind in (ALL, item.kind):
                covered.setdefault((stratum, kind), []).append(number)
    return dict(sorted(covered.items()))


def _cell(index: list[int], items: Sequence[Item], columns: NDArray[np.float64], rng: np.random.Generator) -> Cell:
    kept = [number for number in index if np.isfinite(columns[0, number])]
    means = columns[0, kept]
    clusters = [items[number].cluster for number in kept]
    strata = [items[number].stratum for number in kept]
    return Cell(
        num_items=len(kept),
        mean=float(means.mean()) if kept else float("nan"),
        interval=bootstrap_mean(means, rng, clusters, NUM_RESAMPLES, strata=strata),
        thought_frac=float(columns[1, index].mean()),
        mean_tokens=float(columns[2, index].mean()),
    )


def request_seed(rng_seed: int, slot: int, number: int) -> int:
    """Derive the seed of one request (63 bits), independent of the other requests. The bare base is slot -1."""
    return int(np.random.SeedSequence([rng_seed, slot + 1, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
