"""The training corpus of the embedded base: generated problems in every format that self-play will use.

Solvers are taught both to answer at once and to think (trace the execution) first, in about equal measure. Which of
the two is the habit is set by the weight of the first token alone (``Teaching.think_habit_frac``): a base that
thinks by habit is its own control.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from redqueen.domains.code.prompts_compact import ANSWER, NEW
from redqueen.domains.compact import BOS, END_THINK, EOS, IN, MSG, OUT, REF, THINK
from redqueen.domains.domain import Lesson
from redqueen.tiny.candidates import MOST_CHECKED, wrong_candidate
from redqueen.tiny.generator import LEVEL_WEIGHTS, LEVELS
from redqueen.tiny.mixture import Tally, lessons_of
from redqueen.tiny.packing import Group, Pack, pack
from redqueen.tiny.problems import NUM_INPUTS, Problem, fresh_input, run_on, write_problem
from redqueen.tiny.thought_traces import instrument
from redqueen.tiny.tokenizer import pieces_of
from redqueen.tiny.worlds import BASIC, WORLDS, World

INDUCTION_FRAC, HARD_INDUCTION_FRAC = 0.8, 0.4
"""Chance that a problem up to level 3, and above, is used for induction too."""
PROPOSAL_FRAC = 0.6
PROGRAM_WEIGHT = 0.8
"""Weight of proposals' text in the loss: most of it is chance, whose gradient noise stands beside that of answers."""
HINT_FRAC = 0.75
SECOND_CHECK_FRAC = 0.3
"""Share of right candidates that are traced on a second pair too."""
NUM_SHOWN = 5
IDENTITY = "def f(x):\n    return x"

BASIC_ALONE: Mapping[str, float] = {BASIC.name: 1.0}

Segment = tuple[str, float]
"""A stretch of text and the weight of its tokens in the loss."""


@dataclass(frozen=True)
class Teaching:
    """How the corpus teaches; a recipe has each of these as a field of its own (see there)."""

    think_habit_frac: float = 0.12
    input_proposal_frac: float = 0.2
    num_proposed_inputs: int = NUM_INPUTS
    most_wrong_guesses: int = 1
    tries_programs: bool = False


class Author:
    """Writes samples of one world; every choice comes from ``rng``."""

    def __init__(
        self,
        rng: Random,
        held_out: Set[str] = frozenset(),
        teaching: Teaching = Teaching(),
        world: World = BASIC,
    ) -> None:
        self.rng = rng
        self.world = world
        self.held_out = held_out
        self.teaching = teaching

    def level(self) -> int:
        """Draw a level."""
        return self.rng.choices(LEVELS, LEVEL_WEIGHTS)[0]

    def problem(self, level: int) -> Problem:
        """Write one problem of this level, drawing until one is useful."""
        while True:
            problem = write_problem(self.rng, level, self.held_out, self.teaching.num_proposed_inputs, self.world)
            if problem is not None:
                return problem

    def samples(self) -> list[Lesson]:
        """Write one problem and return the samples made from it."""
        r = self.rng
        level = self.level()
        problem = self.problem(level)
        result = [self.solving(problem)]
        if r.random() < (INDUCTION_FRAC if level <= 3 else HARD_INDUCTION_FRAC):
            result.append(self.induction(problem))
        if r.random() < PROPOSAL_FRAC:
            result.append(self.proposal(problem))
        if r.random() < self.teaching.input_proposal_frac:
            result.append(self.input_proposal(problem))
        return result

    def solving(self, problem: Problem) -> Lesson:
        """Deduction and abduction on one program: direct and thinking branches behind the shared program."""
        r = self.rng
        order = r.sample(range(len(problem.inputs)), len(problem.inputs))
        branches = [self.deduce(problem, order[0], False), self.deduce(problem, order[1], False)]
        branches += [self.deduce(problem, order[2], True), self.deduce(problem, order[3], True)]
        branches.append(self.abduce(problem, order[4], False))
        branches.append(self.abduce(problem, order[5], True))
        return Lesson(BOS + problem.code, tuple(branches))

    def deduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        run_ = problem.runs[index]
        asked = (f"{IN}{problem.inputs[index]}{ANSWER['code_o']}", 0.0)
        answer = (f"{run_.result}{EOS}", 1.0)
        if not think:
            return asked, *self._at_once(*answer)
        return asked, self._opening(), (f"{run_.trace}{END_THINK}", 1.0), answer

    def abduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        """Find an input: at once, or by guessing, tracing the guess, and guessing again when it does not fit."""
        run_, right = problem.runs[index], problem.inputs[index]
        asked = (f"{OUT}{run_.result}{ANSWER['code_i']}", 0.0)
        answer = (f"{right}{EOS}", 1.0)
        if not think:
            return asked, *self._at_once(*answer)
        segments = [asked, self._opening()]
        for _ in range(self._num_wrong()):
            wrong = self.wrong_guess(problem, run_.result)
            if wrong is not None:
                # A wrong guess is shown, never taught: only its trace and the verdict on it are.
                segments += [(wrong[0], 0.0), (f"|{wrong[1]}!", 1.0)]
        segments.append((f"{right}|{run_.trace}{END_THINK}", 1.0))
        return *segments, answer

    def wrong_guess(self, problem: Problem, target: str) -> tuple[str, str] | None:
        """Return an input whose result is not the target, with its trace; None when none came up."""
        others = [k for k, r in enumerate(problem.runs) if r.result != target]
        if others and self.rng.random() < 0.5:
            k = self.rng.choice(others)
            return problem.inputs[k], problem.runs[k].trace
        text = fresh_input(self.rng, problem.types, self.world)
        run_ = run_on(instrument(problem.code, self.world.bounds.detailed), text, self.world)
        return (text, run_.trace) if run_ is not None and run_.result != target else None

    def induction(self, problem: Problem) -> Lesson:
        """Shown pairs and a hint (left out at times) to the program, at once or by trying candidates."""
        hint = problem.message if self.rng.random() < HINT_FRAC else ""
        pairs = "".join(
            f"{IN}{i}{OUT}{r.result}" for i, r in list(zip(problem.inputs, problem.runs, strict=True))[:NUM_SHOWN]
        )
        prompt, answer = f"{BOS}{MSG}{hint}{pairs}{ANSWER['code_f']}", (problem.code + EOS, 1.0)
        if not self.teaching.tries_programs:
            return Lesson(prompt, ((answer,),))
        return Lesson(prompt, (self._at_once(*answer), self._try_programs(problem), self._try_programs(problem)))

    def _try_programs(self, problem: Problem) -> tuple[Segment, ...]:
        """Find a program: write candidates, trace each on shown pairs, and take the first that fits."""
        segments = [self._opening()]
        for _ in range(self._num_wrong()):
            wrong = wrong_candidate(self.rng, problem, self.world)
            if wrong is not None:
                segments += [(wrong[0], 0.0), ("".join(f"|{trace}" for trace in wrong[1]) + "!", 1.0)]
        num_checked = MOST_CHECKED if self.rng.random() < SECOND_CHECK_FRAC else 1
        checks = "".join(f"|{r.trace}" for r in problem.runs[:num_checked])
        return *segments, (f"{problem.code}{checks}{END_THINK}", 1.0), (problem.code + EOS, 1.0)

    def _num_wrong(self) -> int:
        """Draw how many wrong guesses a thought holds: each is followed by another half of the time."""
        num = 0
        while num < self.teaching.most_wrong_guesses and self.rng.random() < 0.5:
            num += 1
        return num

    def proposal(self, problem: Problem) -> Lesson:
        """References of about the same level, then a new program with an input that works."""
        r = self.rng
        references = []
        for _ in range(r.choices((1, 2, 3), (2, 5, 1))[0]):
            if r.random() < 0.06:
                references.append((IDENTITY, fresh_input(r, ("int",), self.world)))
                continue
            other = self.problem(min(5, max(1, problem.level + r.choice((-1, 0, 0, 0, 0, 1)))))
            references.append((other.code, other.inputs[0]))
        new = NEW[r.choice(("code_o", "code_i"))]
        segments: list[Segment] = []
        for code, input_ in references:
            segments += [(REF, 0.0), (f"{code}{IN}{input_}", PROGRAM_WEIGHT)]
        segments += [(new, 0.0), (f"{problem.code}{IN}{problem.inputs[0]}{EOS}", PROGRAM_WEIGHT)]
        return Lesson(BOS, (tuple(segments),))

    def input_proposal(self, problem: Problem) -> Lesson:
        """A given program to a hint and inputs."""
        inputs = "".join(IN + i for i in problem.inputs)
        return Lesson(f"{BOS}{problem.code}{NEW['code_f']}", (((f"{problem.message}{inputs}{EOS}", PROGRAM_WEIGHT),),))

    def _opening(self) -> Segment:
        # Direct and thinking branches are equally many: weights in the ratio h : 1-h make the habit h.
        habit = self.teaching.think_habit_frac
        return THINK, min(1.0, habit / (1 - habit))

    def _at_once(self, text: str, weight: float) -> tuple[Segment, ...]:
        """Split off what a direct answer begins with, whose weight is that of the choice not to think."""
        habit = self.teaching.think_habit_frac
        first = pieces_of(text)[0]
        return (first, weight * min(1.0, (1 - habit) / habit)), (text.removeprefix(first), weight)


@dataclass(frozen=True)
class Batch:
    """A pack of samples and the loss weight of each of its N completion tokens, float32 (N,)."""

    pack: Pack
    weights: Tensor


class Corpus(Dataset[Batch]):
    """Batch ``i`` of an endless corpus: a function of (rng_seed, i), so training resumes anywhere exactly."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        rng_seed: int,
        num_batches: int,
        num_rows: int,
        row_tokens: int,
        held_out: Set[str] = frozenset(),
        teaching: Teaching = Teaching(),
        mixture: Mapping[str, float] = BASIC_ALONE,
    ) -> None:
        self.tokenizer = tokenizer
        self.rng_seed = rng_seed
        self.num_batches = num_batches
        self.num_rows = num_rows
        self.row_tokens = row_tokens
        self.held_out = held_out
        self.teaching = teaching
        self.mixture = mixture

    def __len__(self) -> int:
        return self.num_batches

    def __getitem__(self, index: int) -> Batch:
        if index >= self.num_batches:
            raise IndexError(index)
        write = self._writers(Random(f"corpus/{self.rng_seed}/{index}"))
        tally = Tally(self.mixture)
        groups: list[Group] = []
        weights: list[list[list[float]]] = []
        room = int(self.num_rows * self.row_tokens * 0.96)  # what first fit fills
        while room > 0:
            name = tally.furthest_behind()
            for sample in write[name]():
                encoded = self._encode(sample)
                if encoded is None:
                    continue
                groups.append(encoded[0])
                weights.append(encoded[1])
                size = len(encoded[0].prompt) + sum(map(len, encoded[0].completions))
                tally.add(name, size)
                room -= size
        packed = pack(groups, self.row_tokens, int(self.tokenizer.pad_token_id))  # type: ignore[arg-type]
        flat = [
            weights[g][c][o]
            for g, c, o in zip(packed.group.tolist(), packed.completion.tolist(), packed.offset.tolist(), strict=True)
        ]
        return Batch(packed, torch.from_numpy(np.asarray(flat, dtype=np.float32)))

    def _writers(self, rng: Random) -> dict[str, Callable[[], list[Lesson]]]:
        """Return what writes the next samples of each source of the mixture, all drawing from ``rng``."""
        return {
            name: Author(rng, self.held_out, self.teaching, WORLDS[name]).samples
            if name in WORLDS
            else partial(lessons_of(name), rng)
            for name in self.mixture
        }

    def _encode(self, sample: Lesson) -> tuple[Group, list[list[float]]] | None:
        """Tokenize a sample without the branches that do not fit a row; None when none does."""
        texts = [sample.prompt, *(text for branch in sample.completions for text, _ in branch)]
        ids = iter(self.tokenizer(texts, add_special_tokens=False)["input_ids"])
        prompt = tuple(next(ids))
        completions: list[tuple[int, ...]] = []
        weights: list[list[float]] = []
        for branch in sample.completions:
            tokens: list[int] = []
            weight: list[float] = []
            for _, w in branch:
                piece = next(ids)
                tokens += piece
                weight += [w] * len(piece)
            if len(prompt) + len(tokens) <= self.row_tokens:
                completions.append(tuple(tokens))
                weights.append(weight)
        if not completions:
            return None
        return Group(prompt, tuple(completions)), weights
