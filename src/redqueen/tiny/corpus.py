"""The training corpus of the embedded base: generated problems in every format that self-play will use.

The base is made to be able to do more than it does by habit. Solvers are taught both to answer at once and to think
(trace the execution) first, in about equal measure; but the weight of the one token that opens a thought is turned
down so that by habit the model answers at once (``THINK_HABIT_FRAC``). Reinforcement can find out that thinking pays.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from redqueen.domains.prompts_compact import ANSWER, BOS, END_THINK, EOS, IN, MSG, NEW, OUT, REF, THINK
from redqueen.policy.packing import Group, Pack, pack
from redqueen.tiny.generator import LEVELS
from redqueen.tiny.problems import Problem, fresh_input, write_problem
from redqueen.tiny.tracing import PROGRAM_ERRORS, TooMuch, instrument, run

THINK_HABIT_FRAC = 0.12
NUM_SHOWN = 5
IDENTITY = "def f(x):\n    return x"

Segment = tuple[str, float]
"""A stretch of text and the weight of its tokens in the loss."""


@dataclass(frozen=True)
class Mix:
    """What a stretch of the corpus is made of.

    ``level_weights``: how often each of the five levels is drawn. ``proposal_frac``: chance that a problem is used as
    a proposal too. ``program_weight``: weight of program text in the loss; it is mostly chance, and its gradient noise
    beside that of answers, so it counts less.
    """

    level_weights: tuple[float, ...]
    proposal_frac: float
    program_weight: float


MIXES: tuple[tuple[int, Mix], ...] = (
    (0, Mix((1.0, 1.3, 1.5, 1.5, 1.2), 0.4, 0.4)),
    (1920, Mix((1.4, 2.0, 1.8, 0.8, 0.3), 0.6, 0.8)),
)
"""(first batch, mix). The first stretch is broad; the second drills what a model of this size can master (a base that
met mostly long programs had learned too little of the short ones when a third of the steps were over)."""


def mix_at(index: int) -> Mix:
    """Return the mix of batch ``index``."""
    return [mix for first, mix in MIXES if first <= index][-1]


@dataclass(frozen=True)
class Sample:
    """One prompt and its weighted completions, still as text."""

    prompt: str
    completions: tuple[tuple[Segment, ...], ...]


class Author:
    """Writes samples; every choice comes from ``rng``."""

    def __init__(self, rng: Random, held_out: Set[str] = frozenset(), mix: Mix = MIXES[-1][1]) -> None:
        self.rng = rng
        self.held_out = held_out
        self.mix = mix

    def problem(self, level: int) -> Problem:
        """Write one problem of this level, drawing until one is useful."""
        while True:
            problem = write_problem(self.rng, level, self.held_out)
            if problem is not None:
                return problem

    def samples(self) -> list[Sample]:
        """Write one problem and return the samples made from it."""
        r = self.rng
        level = r.choices(LEVELS, self.mix.level_weights)[0]
        problem = self.problem(level)
        result = [self.solving(problem)]
        if r.random() < (0.8 if level <= 3 else 0.4):
            result.append(self.induction(problem))
        if r.random() < self.mix.proposal_frac:
            result.append(self.proposal(problem))
        if r.random() < 0.12:
            result.append(self.input_proposal(problem))
        return result

    def solving(self, problem: Problem) -> Sample:
        """Deduction and abduction on one program: direct and thinking branches behind the shared program."""
        r = self.rng
        order = r.sample(range(len(problem.inputs)), len(problem.inputs))
        branches = [self.deduce(problem, order[0], False), self.deduce(problem, order[1], False)]
        branches += [self.deduce(problem, order[2], True), self.deduce(problem, order[3], True)]
        branches.append(self.abduce(problem, order[4], False))
        branches.append(self.abduce(problem, order[5], True))
        return Sample(BOS + problem.code, tuple(branches))

    def deduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        run_ = problem.runs[index]
        asked = (f"{IN}{problem.inputs[index]}{ANSWER['code_o']}", 0.0)
        answer = (f"{run_.result}{EOS}", 1.0)
        if not think:
            return asked, answer
        return asked, _opening(1.0), (f"{run_.trace}{END_THINK}", 1.0), answer

    def abduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        """Find an input: at once, or by guessing, tracing the guess, and guessing again when it does not fit."""
        run_, right = problem.runs[index], problem.inputs[index]
        asked = (f"{OUT}{run_.result}{ANSWER['code_i']}", 0.0)
        answer = (f"{right}{EOS}", 1.0)
        if not think:
            return asked, answer
        segments = [asked, _opening(1.0)]
        wrong = self.wrong_guess(problem, run_.result) if self.rng.random() < 0.5 else None
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
        text = fresh_input(self.rng, problem.types)
        try:
            run_ = run(instrument(problem.code), eval(f"({text},)"))  # our own text, just written
        except (TooMuch, *PROGRAM_ERRORS):
            return None
        return (text, run_.trace) if run_.result != target else None

    def induction(self, problem: Problem) -> Sample:
        """Shown pairs and a hint (left out at times) to the program."""
        hint = problem.message if self.rng.random() < 0.6 else ""
        pairs = "".join(
            f"{IN}{i}{OUT}{r.result}" for i, r in list(zip(problem.inputs, problem.runs, strict=True))[:NUM_SHOWN]
        )
        return Sample(f"{BOS}{MSG}{hint}{pairs}{ANSWER['code_f']}", (((problem.code + EOS, 1.0),),))

    def proposal(self, problem: Problem) -> Sample:
        """References of about the same level, then a new program with an input that works."""
        r = self.rng
        references = []
        for _ in range(r.choices((1, 2, 3), (2, 5, 1))[0]):
            if r.random() < 0.06:
                references.append((IDENTITY, fresh_input(r, ("int",))))
                continue
            other = self.problem(min(5, max(1, problem.level + r.choice((-1, 0, 0, 0, 0, 1)))))
            references.append((other.code, other.inputs[0]))
        new = NEW[r.choice(("code_o", "code_i"))]
        segments: list[Segment] = []
        for code, input_ in references:
            segments += [(REF, 0.0), (f"{code}{IN}{input_}", self.mix.program_weight)]
        segments += [(new, 0.0), (f"{problem.code}{IN}{problem.inputs[0]}{EOS}", self.mix.program_weight)]
        return Sample(BOS, (tuple(segments),))

    def input_proposal(self, problem: Problem) -> Sample:
        """A given program to a hint and ten inputs."""
        inputs = "".join(IN + i for i in problem.inputs)
        return Sample(
            f"{BOS}{problem.code}{NEW['code_f']}", (((f"{problem.message}{inputs}{EOS}", self.mix.program_weight),),)
        )


def _opening(weight: float) -> Segment:
    # Direct and thinking branches are equally many: weights h and 1-h make the habit h.
    return THINK, weight * THINK_HABIT_FRAC / (1 - THINK_HABIT_FRAC)


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
    ) -> None:
        self.tokenizer = tokenizer
        self.rng_seed = rng_seed
        self.num_batches = num_batches
        self.num_rows = num_rows
        self.row_tokens = row_tokens
        self.held_out = held_out

    def __len__(self) -> int:
        return self.num_batches

    def __getitem__(self, index: int) -> Batch:
        if index >= self.num_batches:
            raise IndexError(index)
        author = Author(Random(f"corpus/{self.rng_seed}/{index}"), self.held_out, mix_at(index))
        groups: list[Group] = []
        weights: list[list[list[float]]] = []
        room = int(self.num_rows * self.row_tokens * 0.96)  # what first fit fills
        while room > 0:
            for sample in author.samples():
                encoded = self._encode(sample)
                if encoded is None:
                    continue
                groups.append(encoded[0])
                weights.append(encoded[1])
                room -= len(encoded[0].prompt) + sum(map(len, encoded[0].completions))
        packed = pack(groups, self.row_tokens, int(self.tokenizer.pad_token_id))  # type: ignore[arg-type]
        flat = [
            weights[g][c][o]
            for g, c, o in zip(packed.group.tolist(), packed.completion.tolist(), packed.offset.tolist(), strict=True)
        ]
        return Batch(packed, torch.from_numpy(np.asarray(flat, dtype=np.float32)))

    def _encode(self, sample: Sample) -> tuple[Group, list[list[float]]] | None:
        """Tokenize a sample; None when its longest branch does not fit a row."""
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
            completions.append(tuple(tokens))
            weights.append(weight)
        if len(prompt) + max(map(len, completions)) > self.row_tokens:
            return None
        return Group(prompt, tuple(completions)), weights
