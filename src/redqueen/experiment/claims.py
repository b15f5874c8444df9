"""The verdict on each of the paper's claims, and on each objection to it, computed from an experiment's numbers.

A claim is a few statements ("parts") about arms. A part is *seen* when its whole 95 % interval over seeds lies where
the statement says and, where two arms are compared, the permutation test gives p <= ``MOST_P`` too; *not seen* when
its whole interval lies on the other side of ``margin``, the smallest effect that would matter (ours; 0 unless said);
else *undecided*. With fewer than ``FEWEST_SEEDS`` runs of an arm it is undecided, whatever the interval says; so it is
where the runs do not differ, and what programs are or do is undecided where none was traced. A claim is not seen when
one of its parts is not, seen when all of them are, else undecided.

An interval over few seeds is wide (Student's t, ``statistics``): "undecided" means that this experiment cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from redqueen.display import number
from redqueen.propose.curriculum import STRUCTURE
from redqueen.statistics import Interval, difference, mean_interval, ratio_interval

Word = Literal["seen", "not seen", "undecided"]
Results = Mapping[str, Mapping[str, Sequence[float]]]
"""By arm and measure, one number a seed."""

SINGLE, PAIR, POPULATION = "single", "1T+1S", "4T+4S"
NO_EVOLUTION, COPIES, UNIFORM = "4T+4S no evolution", "4T+4S copy_parent", "4T+4S uniform"
SINGLE_TOTAL = "single equal total"
"""The names that arms must have for the verdicts to find them."""

FEWEST_SEEDS = 3
MOST_P = 0.05
TOWARDS_ONE_FRAC = 0.9
"""A solve rate at or above this at the end has "climbed towards 1" (ours)."""
GONE_FRAC = 0.1
"""Entropy below this share of what it was at the start has gone "to about 0" (ours)."""
EXPANDING_FRAC = 0.2
"""At least this share of the last tenth's tasks must be new for coverage to "keep expanding" (ours)."""
STALL_FRAC = 0.05
"""A structural measure that grows by less than this share of its value at the end has "stalled" (ours)."""
PAPER_COST, COST_SLACK = 1.31, 0.1
"""Claim 7's factor, and how far above it a factor still counts as the same (ours)."""
SECONDS_A_CHILD = 10.0
"""A child made within this is made "in seconds" (ours)."""

FITNESS = "fitness/greedy/mean"

OF_PROGRAMS = ("semantic/", *STRUCTURE)
"""Begin the names of measures of what programs are and do; a run whose tasks are none has 0 for them, or nothing."""
RAREFIED_TO, UNTRACED_FRAC = "semantic/rarefied_to", "semantic/untraced_frac"
UNTRACED = "no program was traced"
ALIKE = "the runs do not differ, so nothing says how far others would lie"


@dataclass(frozen=True)
class Part:
    """One statement with its word; ``figure`` says the numbers, or what is missing."""

    statement: str
    word: Word
    figure: str


@dataclass(frozen=True)
class Verdict:
    """``id``: ``1`` to ``8`` for the paper's claims, ``R`` for its remark on reward, ``a`` to ``f`` for objections."""

    id: str
    claim: str
    parts: tuple[Part, ...]

    @property
    def word(self) -> Word:
        """Return the word on the whole: one part that is not seen decides, and all must be seen."""
        words = {part.word for part in self.parts}
        if "not seen" in words:
            return "not seen"
        return "seen" if words == {"seen"} else "undecided"


def verdicts(results: Results) -> list[Verdict]:
    """Return the verdict on every claim and objection; what the experiment has no runs for is undecided."""
    return [Verdict(id_, claim, tuple(parts(results))) for id_, claim, parts in _ALL]


# Statements --------------------------------------------------------------------------------------------------------


def larger(results: Results, arm: str, reference: str, measure: str, margin: float = 0.0) -> Part:
    """State that the arm's mean is above the reference's."""
    statement = f"{measure}: {arm} above {reference}"
    first, second = _values(results, arm, measure), _values(results, reference, measure)
    missing = _untraced(results, measure, arm, reference) or _too_few((arm, first), (reference, second))
    if not first or not second or missing.startswith(UNTRACED):
        return Part(statement, "undecided", missing)
    found = difference(first, second)
    figure = f"{_figure(found.estimate, found.interval)}, p = {found.p:.3f} (least {found.least_p:.3f})"
    if missing or not found.interval.known:
        return Part(statement, "undecided", f"{figure}; {missing or ALIKE}")
    word: Word = "undecided"
    if found.interval.low > 0 and found.p <= MOST_P:
        word = "seen"
    elif found.interval.high <= margin:
        word = "not seen"
    return Part(statement, word, figure)


def above(results: Results, arm: str, measure: str, bound: float) -> Part:
    """State that the arm's mean is above ``bound``."""
    statement = f"{measure}: {arm} above {number(bound)}"
    return _one_arm(results, arm, measure, statement, lambda i: i.low > bound, lambda i: i.high <= bound)


def below(results: Results, arm: str, measure: str, bound: float) -> Part:
    """State that the arm's mean is below ``bound``."""
    statement = f"{measure}: {arm} below {number(bound)}"
    return _one_arm(results, arm, measure, statement, lambda i: i.high < bound, lambda i: i.low >= bound)


def _one_arm(
    results: Results,
    arm: str,
    measure: str,
    statement: str,
    holds: Callable[[Interval], bool],
    fails: Callable[[Interval], bool],
) -> Part:
    values = _values(results, arm, measure)
    missing = _untraced(results, measure, arm) or _too_few((arm, values))
    if not values or missing.startswith(UNTRACED):
        return Part(statement, "undecided", missing)
    interval = mean_interval(values)
    figure = _figure(fmean(values), interval)
    if missing or not interval.known:
        return Part(statement, "undecided", f"{figure}; {missing or ALIKE}")
    return Part(statement, "seen" if holds(interval) else "not seen" if fails(interval) else "undecided", figure)


# The claims --------------------------------------------------------------------------------------------------------


def _structure(results: Results) -> list[Part]:
    parts = []
    for measure in STRUCTURE:
        at_end = _values(results, SINGLE, f"{measure}/end")
        stall = STALL_FRAC * abs(fmean(at_end)) if at_end else 0.0
        parts.append(below(results, SINGLE, f"{measure}/change", stall))
        parts.append(above(results, POPULATION, f"{measure}/change", 0.0))
        parts.append(larger(results, POPULATION, SINGLE, f"{measure}/change"))
    return parts


def _cost(results: Results) -> list[Part]:
    bound = PAPER_COST + COST_SLACK
    statement = f"seconds_per_step: {POPULATION} at most {bound:.2f} times {SINGLE}"
    first, second = (_values(results, arm, "seconds_per_step") for arm in (POPULATION, SINGLE))
    missing = _too_few((POPULATION, first), (SINGLE, second))
    if not first or not second:
        return [Part(statement, "undecided", missing)]
    interval = ratio_interval(first, second)
    figure = f"ratio {_figure(fmean(first) / fmean(second), interval)}"
    if missing or not interval.known:
        return [Part(statement, "undecided", f"{figure}; {missing or ALIKE}")]
    word: Word = "seen" if interval.high <= bound else "not seen" if interval.low > bound else "undecided"
    return [Part(statement, word, figure)]


def _seeds(results: Results) -> list[Part]:
    """The spread over seeds against that over a population's members: a statement of size, without a test.

    A spread of 0 is that of one scored member, or of members that are one adapter: no measure of how members differ.
    """
    statement = f"{FITNESS}: standard deviation over seeds above that over the members of a run, {POPULATION}"
    means, within = _values(results, POPULATION, FITNESS), _values(results, POPULATION, "fitness/greedy/spread")
    missing = _too_few((POPULATION, means))
    if missing or not within:
        return [Part(statement, "undecided", missing or "no spread was measured")]
    if not any(within):
        return [Part(statement, "undecided", "in no run two members were scored that differ")]
    seeds, members = stdev(means), fmean(within)
    figure = f"{number(seeds)} over seeds, {number(members)} over members"
    return [Part(statement, "seen" if seeds > members else "not seen", figure)]


def _parts(*statements: tuple[Any, ...]) -> Callable[[Results], list[Part]]:
    """Return the parts of a claim from rows of a statement's function and what it takes after the results."""
    return lambda results: [state(results, *about) for state, *about in statements]


_BETTER = (larger, POPULATION, SINGLE, FITNESS)
_MORE_OPERATIONS = (larger, POPULATION, SINGLE, "semantic/operations_rarefied")

_ALL: tuple[tuple[str, str, Callable[[Results], list[Part]]], ...] = (
    ("1", "The single agent's tasks fall or stall in structure, the population's rise", _structure),
    (
        "2",
        "The single agent's solve rate climbs towards 1, the population's oscillates",
        _parts(
            (above, SINGLE, "solve/rate/change", 0.0),
            (above, SINGLE, "solve/rate/end", TOWARDS_ONE_FRAC),
            (below, POPULATION, "solve/rate/end", TOWARDS_ONE_FRAC),
            (larger, POPULATION, SINGLE, "solve/oscillation_beyond_chance"),
        ),
    ),
    (
        "3",
        "The covered problem space keeps expanding, and further than the single agent's",
        _parts((above, POPULATION, "semantic/new_frac/end", EXPANDING_FRAC), _MORE_OPERATIONS),
    ),
    (
        "4",
        "The baseline's entropy goes to about 0, the teachers' does not",
        _parts(
            (below, SINGLE, "propose/entropy/left_frac", GONE_FRAC),
            (above, POPULATION, "propose/entropy/left_frac", GONE_FRAC),
        ),
    ),
    ("5", "The population's mean beats the baseline (here: on the embedded suite, greedy)", _parts(_BETTER)),
    ("6", "So does its weakest member", _parts((larger, POPULATION, SINGLE, "fitness/greedy/worst"))),
    ("7", "Eight adapters cost 1.31 times the wall-clock of one", _cost),
    (
        "8",
        "Children are made in seconds",
        _parts((below, POPULATION, "evolve/seconds_per_birth", SECONDS_A_CHILD)),
    ),
    (
        "R",
        "Training reward is lower for the population",
        _parts(*((larger, SINGLE, POPULATION, f"reward/{role}_mean/end") for role in ("teacher", "student"))),
    ),
    (
        "a",
        "4T+4S does better than 1T+1S",
        _parts((larger, POPULATION, PAIR, FITNESS), (larger, POPULATION, PAIR, "semantic/operations_rarefied")),
    ),
    (
        "b",
        "It is evolution: better than without, and than with mere copies",
        _parts((larger, POPULATION, NO_EVOLUTION, FITNESS), (larger, POPULATION, COPIES, FITNESS)),
    ),
    (
        "c",
        "Prioritised matchmaking matters against random pairing",
        _parts((larger, POPULATION, UNIFORM, FITNESS)),
    ),
    (
        "d",
        "More kinds of problem among equally many tasks, not only longer ones",
        _parts(_MORE_OPERATIONS, (larger, POPULATION, SINGLE, "semantic/io_classes_rarefied")),
    ),
    ("e", "It also holds at equal total compute", _parts((larger, POPULATION, SINGLE_TOTAL, FITNESS))),
    ("f", "The spread over training seeds is larger than that over adapters", _seeds),
)


def _values(results: Results, arm: str, measure: str) -> Sequence[float]:
    return results.get(arm, {}).get(measure, ())


def _too_few(*arms: tuple[str, Sequence[float]]) -> str:
    few = [
        f"{arm} has {len(values)} of the {FEWEST_SEEDS} runs needed"
        for arm, values in arms
        if len(values) < FEWEST_SEEDS
    ]
    return ", ".join(few)


def _untraced(results: Results, measure: str, *arms: str) -> str:
    """Say of which arms no program was traced, for a measure of programs: tasks in mathematics have none."""
    if not measure.startswith(OF_PROGRAMS):
        return ""
    if measure.endswith("_rarefied") and not all(v for arm in arms for v in _values(results, arm, RAREFIED_TO)):
        return f"{UNTRACED} in one run at least"
    untraced = [arm for arm in arms if results.get(arm) and not any(_of_programs(results[arm]))]
    return f"{UNTRACED} of {', '.join(untraced)}" if untraced else ""


def _of_programs(numbers: Mapping[str, Sequence[float]]) -> list[float]:
    named = (name for name in numbers if name.startswith(OF_PROGRAMS) and name not in (RAREFIED_TO, UNTRACED_FRAC))
    return [value for name in named for value in numbers[name]]


def _figure(value: float, interval: Interval) -> str:
    return f"{number(value)} [{number(interval.low)}, {number(interval.high)}]" if interval.known else number(value)
