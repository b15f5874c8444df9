"""One seed of the experiment: train two parents, breed every child, train all children together, measure on the way.

A trial is a walk of numbered steps: first the parents' updates, then the children's. Everything that a step draws is
named by (seed, step), and the walk is checkpointed, so a stopped trial continues as if it had not been stopped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from redqueen.engine import Engine
from redqueen.experiment.retention.lineup import Entry, breed_all
from redqueen.experiment.retention.settings import RetentionSettings
from redqueen.experiment.retention.tasks import TaskSource
from redqueen.files import write_whole
from redqueen.learn.credit import assign_credit
from redqueen.nouns import BASE_SLOT, Individual, Rating, Request, Task
from redqueen.population.genotype import distance, norm
from redqueen.run.checkpoint import Checkpoint, remove_after
from redqueen.solve.solving import Answered, Sampled, grade
from redqueen.streams import Streams

PARENTS = (0, 1)
"""Slots of the parents; the children follow in the order of the line-up."""

Scores = list[float | None]
"""Share of right attempts at each held-out task, in their order; None where every grade was lost."""

SCORES = "scores.json"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Bench:
    """What all trials share: the engine, the tasks, the line-up and the numbers."""

    engine: Engine
    source: TaskSource
    entries: tuple[Entry, ...]
    settings: RetentionSettings

    @property
    def children(self) -> tuple[int, ...]:
        """Slots of the children."""
        return tuple(len(PARENTS) + i for i in range(len(self.entries)))

    @property
    def num_steps(self) -> int:
        """Steps of a trial."""
        return self.settings.num_parent_updates + self.settings.num_updates


@dataclass(frozen=True)
class Trial:
    """What a trial has found so far. ``curves[m][i]`` are entry i's scores at the m-th measured update.

    ``num_broken`` counts updates that were not finite and therefore not made, ``num_lost`` training attempts that the
    verifier lost, which are no samples. ``parents`` and ``fitness`` have the
    fitter parent first. ``parent_distance`` is |dW1 - dW2| over the mean of both norms, ``relative_changes[i]`` entry
    i's from its first parent.
    """

    seed: int
    step: int
    base: Scores
    num_broken: int = 0
    num_lost: int = 0
    parents: tuple[Scores, ...] = ()
    fitness: tuple[float, ...] = ()
    parent_distance: float = 0.0
    relative_changes: tuple[float, ...] = ()
    updates: tuple[int, ...] = ()
    curves: tuple[tuple[Scores, ...], ...] = ()


TRIAL = TypeAdapter(Trial)
"""Reads back what JSON made of a trial."""

Tell = Callable[[int, str], None]
"""Told after every step: the step, and what was done, in words."""


def play_trial(bench: Bench, seed: int, folder: Path, tell: Tell) -> Trial:
    """Play one seed in ``folder`` to its end, from its newest checkpoint if it has one, and return what it found."""
    if (folder / SCORES).is_file():
        return TRIAL.validate_json((folder / SCORES).read_text())
    checkpoints = folder / CHECKPOINTS
    checkpoint = Checkpoint.latest_valid(checkpoints) if checkpoints.is_dir() else None
    trial = _restore(bench, checkpoint, checkpoints) if checkpoint else _begin(bench, seed)
    num_parent_updates = bench.settings.num_parent_updates
    while trial.step < bench.num_steps:
        trial = replace(trial, step=trial.step + 1)
        update = trial.step - num_parent_updates
        if update <= 0:
            trial, solved = _train_parents(bench, trial)
            words = f"parents {trial.step}/{num_parent_updates}"
        else:
            trial, solved = _train_children(bench, trial)
            words = f"children {update}/{bench.settings.num_updates}"
        if update == 0:
            trial = _breed(bench, trial)
        if is_measured(bench.settings, update):
            trial = _measure_children(bench, trial, update)
        if is_measured(bench.settings, update) or trial.step % bench.settings.checkpoint_every == 0:
            _save(bench, trial, checkpoints)
        tell(trial.step, f"{words}, solved {100 * solved:.0f} %")
    write_whole(folder / SCORES, json.dumps(asdict(trial)) + "\n")
    shutil.rmtree(checkpoints)
    return trial


def is_measured(settings: RetentionSettings, update: int) -> bool:
    """Tell whether the children are measured after this update; 0 is their birth."""
    return update >= 0 and (update % settings.measure_every == 0 or update == settings.num_updates)


def work_of_step(settings: RetentionSettings, num_children: int, step: int) -> int:
    """Return how many attempts a step takes, those of its measurement included."""
    update = step - settings.num_parent_updates
    num_members = len(PARENTS) if update <= 0 else num_children
    num_programs = settings.num_parent_programs if update <= 0 else settings.num_programs
    training = num_members * num_programs * len(settings.kinds) * settings.num_attempts
    measuring = num_children * settings.num_held_out * len(settings.kinds) * settings.num_samples
    return training + (measuring if is_measured(settings, update) else 0)


def _begin(bench: Bench, seed: int) -> Trial:
    """Make both parents founders and score the bare base."""
    for slot in (*PARENTS, *bench.children):
        bench.engine.store.reset(slot, seed)
    return Trial(seed, 0, _scores(bench, [BASE_SLOT])[0])


def _train_parents(bench: Bench, trial: Trial) -> tuple[Trial, float]:
    """One update of each parent, on tasks of its own."""
    count = bench.settings.num_parent_programs
    pairs = [
        (task, slot) for slot in PARENTS for task in bench.source.write(f"{trial.seed}/{trial.step}/{slot}", count)
    ]
    return _train(bench, trial, pairs)


def _train_children(bench: Bench, trial: Trial) -> tuple[Trial, float]:
    """One update of every child, all on the same tasks and with the same dice."""
    tasks = bench.source.write(f"{trial.seed}/{trial.step}/children", bench.settings.num_programs)
    return _train(bench, trial, [(task, slot) for slot in bench.children for task in tasks])


def _train(bench: Bench, trial: Trial, pairs: Sequence[tuple[Task, int]]) -> tuple[Trial, float]:
    """Attempt, grade, reward and step, as in a run; return also the share solved."""
    streams = Streams(trial.seed, trial.step)
    answered = _attempt(bench.engine, pairs, bench.settings.num_attempts, streams)
    updates = bench.engine.learner.update(assign_credit([], [], answered, bench.engine.config.learn).rollouts)
    num_lost = sum(len(one.outcomes) - len(one.kept) for one in answered)
    num_broken = sum(not update.ok for update in updates)
    trial = replace(trial, num_broken=trial.num_broken + num_broken, num_lost=trial.num_lost + num_lost)
    return trial, _solved(answered)


def _solved(answered: Sequence[Answered]) -> float:
    """Share of right attempts; those whose grade was lost are no samples (0 when there are no others)."""
    grades = [one.outcomes[i].grade.correct for one in answered for i in one.kept]
    return sum(grades) / max(1, len(grades))


def _breed(bench: Bench, trial: Trial) -> Trial:
    """Say which parent is the fitter, score both, and put every child into its slot with a fresh optimiser state."""
    engine, streams = bench.engine, Streams(trial.seed, trial.step)
    tasks = bench.source.write(f"{trial.seed}/fitness", bench.settings.num_fitness)
    answered = _attempt(engine, [(task, slot) for slot in PARENTS for task in tasks], 1, streams)
    fitness = {slot: _solved([one for one in answered if one.student.slot == slot]) for slot in PARENTS}
    order = sorted(PARENTS, key=lambda slot: -fitness[slot])
    genotypes = [engine.store.genotype(slot) for slot in order]
    values = tuple(fitness[slot] for slot in order)
    children = breed_all(bench.entries, genotypes, values, streams)
    for slot, child in zip(bench.children, children, strict=True):
        engine.store.load(slot, child.genotype)
    size = sum(norm(genotype) for genotype in genotypes) / len(genotypes)
    return replace(
        trial,
        parents=tuple(_scores(bench, order)),
        fitness=values,
        parent_distance=distance(*genotypes) / size if size else 0.0,
        relative_changes=tuple(child.change.overall for child in children),
    )


def _measure_children(bench: Bench, trial: Trial, update: int) -> Trial:
    scores = tuple(_scores(bench, bench.children))
    return replace(trial, updates=(*trial.updates, update), curves=(*trial.curves, scores))


def _scores(bench: Bench, slots: Sequence[int]) -> list[Scores]:
    """Score members on the held-out tasks, with the same dice for all, so that equal members score equally."""
    tasks = bench.source.held_out
    pairs = [(task, slot) for slot in slots for task in tasks]
    answered = _attempt(bench.engine, pairs, bench.settings.num_samples, Streams(0, 0))
    values = [one.solve_frac for one in answered]
    return [values[i : i + len(tasks)] for i in range(0, len(values), len(tasks))]


def _attempt(engine: Engine, pairs: Sequence[tuple[Task, int]], num_attempts: int, streams: Streams) -> list[Answered]:
    """Have members (slots) attempt tasks, all in one batch. A task's seed does not depend on who attempts it."""
    prompts = [engine.prompt_format.encode(engine.tokenizer, engine.prompt_format.solve(task)) for task, _ in pairs]
    requests = [
        Request(slot, prompt, num_attempts, streams.seed("solve", task.id))
        for (task, slot), prompt in zip(pairs, prompts, strict=True)
    ]
    groups = engine.solver.sample(requests)
    sampled = [
        Sampled(task, _member(slot), prompt, tuple(group))
        for (task, slot), prompt, group in zip(pairs, prompts, groups, strict=True)
    ]
    return grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer)


def _member(slot: int) -> Individual:
    """The solver in a slot; ratings are not used here."""
    return Individual(f"slot {slot}", "student", slot, Rating(0.0, 0.0))


def _restore(bench: Bench, checkpoint: Checkpoint, folder: Path) -> Trial:
    remove_after(folder, checkpoint.step)  # damaged ones
    bench.engine.store.load_state(checkpoint.tensors)
    return TRIAL.validate_python(checkpoint.state["trial"])


def _save(bench: Bench, trial: Trial, folder: Path) -> None:
    Checkpoint.save(folder, trial.step, bench.engine.store.state_dict(), {"trial": asdict(trial)}, num_kept=2)
