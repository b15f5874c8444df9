"""External fitness: members' scores on the held-out suite, sampled and greedy, with intervals. Never selected on.

An item's score is the share of its attempts that were right; a mean over items gets an interval from a bootstrap that
draws whole functions, since the results of tasks made from one function depend on each other, and as many from each
stratum of difficulty as the suite has, since its strata are fixed. Attempts whose grading was lost do not count.
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
"""Makes a sampler of the members at a temperature (0 is greedy)."""


@dataclass(frozen=True)
class Cell:
    """A mean over some items: ``mean`` and ``interval`` are shares of right answers in [0, 1], nan without items.

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

    ``item_means``, ``item_thought_fracs`` and ``item_tokens`` follow the order of the items; an item all of whose
    grades were lost is nan. ``cells`` maps (stratum, kind) to a mean; the stratum is one of the items' own, a suite's
    name for all of its strata, or "all", and the kind one of theirs or "all".
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
    """Score every member of ``slots``: a record for each mode, sampled (``num_samples`` attempts an item at
    ``temperature``) and greedy (one).

    All members and items of a mode go to the sampler in one call; all answers go to the verifier in one, where equal
    ones are graded once. Samples are drawn independently for every (slot, item) and repeat with ``rng_seed``. Raises
    ValueError when there are no items or ``num_samples`` is below 1.
    """
    if not items or num_samples < 1:
        raise ValueError("scoring needs at least one item and one sample an item")
    prompts = [prompt_format.encode(tokenizer, prompt_format.solve(item.task)) for item in items]
    groups: list[list[Completion]] = []
    for mode in modes:
        count, heat = (num_samples, temperature) if mode == "sampled" else (1, 0.0)
        requests = [
            Request(slot, prompt, count, request_seed(rng_seed, slot, number))
            for slot in slots
            for number, prompt in enumerate(prompts)
        ]
        groups += sampler_factory(heat).sample(requests)
    blocks = [(mode, slot) for mode in modes for slot in slots]
    marked = _mark([item.task for _ in blocks for item in items], groups, prompt_format, tokenizer, verifier)
    scores: dict[tuple[Mode, int], Score] = {}
    for position, (mode, slot) in enumerate(blocks):
        own = marked[position * len(items) : (position + 1) * len(items)]
        scores[mode, slot] = summed_up((slot,), mode, items, own[:, :3].T, int(own[:, 3].sum()), rng_seed)
    return [scores[mode, slot] for slot in slots for mode in modes]


def pool(scores: Sequence[Score], items: Sequence[Item], rng_seed: int) -> Score:
    """Average several members' scores of one mode: item by item over the members, then over items, with the usual
    clusters.

    The interval is that of these members' mean over a population of items; it says nothing about other members. Raises
    ValueError unless all scores have one mode and belong to ``items``.
    """
    if not scores or len({one.mode for one in scores}) != 1 or any(len(s.item_means) != len(items) for s in scores):
        raise ValueError("pooling needs scores of one mode on the same items")
    slots = tuple(slot for one in scores for slot in one.slots)
    stacked = np.array([[one.item_means, one.item_thought_fracs, one.item_tokens] for one in scores])
    num_lost = sum(one.num_lost for one in scores)
    means = np.ma.masked_invalid(stacked).mean(axis=0).filled(np.nan)
    return summed_up(slots, scores[0].mode, items, means, num_lost, rng_seed)


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
    """Read and grade the completions of each task: shape (tasks, 4), by mean, thought_frac, mean_tokens, num_lost."""
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


def summed_up(
    slots: tuple[int, ...],
    mode: Mode,
    items: Sequence[Item],
    columns: NDArray[np.float64],
    num_lost: int,
    rng_seed: int,
) -> Score:
    """Return the score that per-item figures (3, items) make: means, thought_fracs and tokens of each item."""
    rng = np.random.default_rng(rng_seed)
    cells = {key: _cell(index, items, columns, rng) for key, index in _cell_items(items).items()}
    means, thoughts, tokens = (tuple(float(value) for value in row) for row in columns)
    return Score(slots, mode, means, thoughts, tokens, num_lost, cells)


def _cell_items(items: Sequence[Item]) -> dict[tuple[str, str], list[int]]:
    """Return which items each (stratum, kind) covers: every level of strata times every kind and all of them."""
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
    """Derive the seed of one request, independent of what else is scored; 63 bits. The bare base is slot -1."""
    return int(np.random.SeedSequence([rng_seed, slot + 1, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
