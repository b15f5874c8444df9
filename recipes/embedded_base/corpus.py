"""The training corpus: generated problems and lessons in every format of self-play.

Direct and thinking answers are equally frequent. The loss weight of their first token alone sets how often the model
thinks (``Stage.think_frac``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from functools import partial
from random import Random

from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from recipes.embedded_base.lessons import LESSONS, Lesson, Segment
from recipes.embedded_base.packing import Batch, Sample, pack
from recipes.embedded_base.problems import BASIC, WORLDS, Problem, World, fresh_input, run_on, write_problem
from recipes.embedded_base.programs import LEVEL_WEIGHTS, LEVELS
from recipes.embedded_base.stages import STAGES, Stage
from recipes.embedded_base.tokenizer import build_tokenizer, build_vocabulary, pieces_of
from recipes.embedded_base.traces import instrument
from redqueen.domains.code.prompts_compact import ANSWER, NEW
from redqueen.domains.frames import BOS, END_THINK, EOS, IN, MARKS, MSG, OUT, REF, THINK

INDUCTION_FRAC, HARD_INDUCTION_FRAC = 0.8, 0.4
"""Probability that a problem up to level 3, and above, is used for induction too."""
PROPOSAL_FRAC = 0.6
PROGRAM_WEIGHT = 0.8
"""Loss weight of a proposal's text: most of it is random, so its gradient is noisier than that of answers."""
HINT_FRAC = 0.75
SEED_FRAC = 0.06
"""Probability that a reference is the seed program."""
NUM_SHOWN = 5
IDENTITY = "def f(x):\n    return x"
ROW_FILL = 0.96
"""Share of the rows' tokens that first-fit packing fills."""
_MARK = re.compile("|".join(map(re.escape, MARKS)))


class Author:
    """Writes lessons from the programs of one world; every choice comes from ``rng``.

    ``held_out`` holds skeletons (see ``problems.skeleton``) of programs that must not be used.
    """

    def __init__(
        self, rng: Random, held_out: Set[str] = frozenset(), stage: Stage = STAGES[0], world: World = BASIC
    ) -> None:
        self.rng, self.held_out, self.stage, self.world = rng, held_out, stage, world

    def problem(self, level: int) -> Problem:
        """Write one problem of this level, drawing until one is useful."""
        while True:
            problem = write_problem(self.rng, level, self.held_out, self.stage.num_inputs, self.world)
            if problem is not None:
                return problem

    def lessons(self) -> list[Lesson]:
        """Write one problem and return the lessons made from it."""
        r = self.rng
        level = r.choices(LEVELS, LEVEL_WEIGHTS)[0]
        problem = self.problem(level)
        result = [self.solving(problem)]
        if r.random() < (INDUCTION_FRAC if level <= 3 else HARD_INDUCTION_FRAC):
            result.append(self.induction(problem))
        if r.random() < PROPOSAL_FRAC:
            result.append(self.proposal(problem))
        if r.random() < self.stage.input_proposal_frac:
            result.append(self.input_proposal(problem))
        return result

    def solving(self, problem: Problem) -> Lesson:
        """Return deduction and abduction on one program: direct and thinking completions of the same prompt."""
        order = self.rng.sample(range(len(problem.inputs)), len(problem.inputs))
        branches = [self._deduce(problem, order[at], think) for at, think in enumerate((False, False, True, True))]
        branches += [self._abduce(problem, order[4], False), self._abduce(problem, order[5], True)]
        return Lesson(BOS + problem.code, tuple(branches))

    def _deduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        run = problem.runs[index]
        asked = (f"{IN}{problem.inputs[index]}{ANSWER['code_o']}", 0.0)
        answer = (f"{run.result}{EOS}", 1.0)
        if not think:
            return asked, *self._at_once(answer[0])
        return asked, self._opening(), (f"{run.trace}{END_THINK}", 1.0), answer

    def _abduce(self, problem: Problem, index: int, think: bool) -> tuple[Segment, ...]:
        """Find an input: at once, or by guessing, tracing the guess, and guessing again when it does not fit."""
        run, right = problem.runs[index], problem.inputs[index]
        asked = (f"{OUT}{run.result}{ANSWER['code_i']}", 0.0)
        answer = (f"{right}{EOS}", 1.0)
        if not think:
            return asked, *self._at_once(answer[0])
        segments = [asked, self._opening()]
        wrong = self.wrong_guess(problem, run.result) if self.rng.random() < 0.5 else None
        if wrong is not None:
            # A wrong guess has loss weight 0; only its trace and its verdict are trained on.
            segments += [(wrong[0], 0.0), (f"|{wrong[1]}!", 1.0)]
        return *segments, (f"{right}|{run.trace}{END_THINK}", 1.0), answer

    def wrong_guess(self, problem: Problem, target: str) -> tuple[str, str] | None:
        """Return an input whose result is not the target, with its trace; None when none was found."""
        others = [k for k, r in enumerate(problem.runs) if r.result != target]
        if others and self.rng.random() < 0.5:
            k = self.rng.choice(others)
            return problem.inputs[k], problem.runs[k].trace
        text = fresh_input(self.rng, problem.types, self.world)
        run = run_on(instrument(problem.code, self.world.bounds.detailed), text, self.world)
        return (text, run.trace) if run is not None and run.result != target else None

    def induction(self, problem: Problem) -> Lesson:
        """Return a lesson from pairs and a hint (sometimes left out) to the program."""
        hint = problem.message if self.rng.random() < HINT_FRAC else ""
        shown = list(zip(problem.inputs, problem.runs, strict=True))[:NUM_SHOWN]
        pairs = "".join(f"{IN}{text}{OUT}{run.result}" for text, run in shown)
        return Lesson(f"{BOS}{MSG}{hint}{pairs}{ANSWER['code_f']}", (((problem.code + EOS, 1.0),),))

    def proposal(self, problem: Problem) -> Lesson:
        """Return a lesson with references of about the same level, then a new program with a valid input."""
        r = self.rng
        references = []
        for _ in range(r.choices((1, 2, 3), (2, 5, 1))[0]):
            if r.random() < SEED_FRAC:
                references.append((IDENTITY, fresh_input(r, ("int",), self.world)))
                continue
            other = self.problem(min(5, max(1, problem.level + r.choice((-1, 0, 0, 0, 0, 1)))))
            references.append((other.code, other.inputs[0]))
        new = NEW[r.choice(("code_o", "code_i"))]
        segments: list[Segment] = []
        for code, text in references:
            segments += [(REF, 0.0), (f"{code}{IN}{text}", PROGRAM_WEIGHT)]
        segments += [(new, 0.0), (f"{problem.code}{IN}{problem.inputs[0]}{EOS}", PROGRAM_WEIGHT)]
        return Lesson(BOS, (tuple(segments),))

    def input_proposal(self, problem: Problem) -> Lesson:
        """Return a lesson from a given program to a hint and inputs."""
        inputs = "".join(IN + text for text in problem.inputs)
        return Lesson(f"{BOS}{problem.code}{NEW['code_f']}", (((f"{problem.message}{inputs}{EOS}", PROGRAM_WEIGHT),),))

    def _opening(self) -> Segment:
        # Direct and thinking answers are equally frequent, so weights h : 1-h give thinking with probability h.
        return THINK, min(1.0, self.stage.think_frac / (1 - self.stage.think_frac))

    def _at_once(self, text: str) -> tuple[Segment, ...]:
        """Split off the first token of a direct answer; its weight sets the probability of not thinking."""
        first = pieces_of(text)[0]
        weight = min(1.0, (1 - self.stage.think_frac) / self.stage.think_frac)
        return (first, weight), (text.removeprefix(first), 1.0)


class Corpus(Dataset[Batch]):
    """Batch ``i`` of a stage is a function of (stage, i), so training resumes anywhere and needs no files."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stage: Stage, held_out: Set[str] = frozenset()) -> None:
        self.tokenizer, self.stage, self.held_out = tokenizer, stage, held_out

    def __len__(self) -> int:
        return self.stage.num_steps

    def __getitem__(self, index: int) -> Batch:
        if index >= len(self):
            raise IndexError(index)
        stage = self.stage
        write = self._writers(Random(f"corpus/{stage.rng_seed}/{index}"))
        tokens = dict.fromkeys(stage.mixture, 0)
        samples: list[Sample] = []
        room = int(stage.num_rows * stage.row_tokens * ROW_FILL)
        while room > 0:
            # The source furthest behind its share writes next.
            name = min(tokens, key=lambda name: tokens[name] / stage.mixture[name])
            for sample in filter(None, map(self._encode, write[name]())):
                samples.append(sample)
                tokens[name] += len(sample)
                room -= len(sample)
        return pack(samples, stage.row_tokens, int(self.tokenizer.pad_token_id))  # type: ignore[arg-type]

    def _writers(self, rng: Random) -> dict[str, Callable[[], list[Lesson]]]:
        """Return the writer of each source of the mixture; all draw from ``rng``."""
        return {
            name: Author(rng, self.held_out, self.stage, WORLDS[name]).lessons
            if name in WORLDS
            else partial(LESSONS[name], rng)
            for name in self.stage.mixture
        }

    def _encode(self, lesson: Lesson) -> Sample | None:
        """Tokenize a lesson without the completions that do not fit into a row; None when none does."""
        texts = [lesson.prompt, *(text for branch in lesson.completions for text, _ in branch)]
        ids = iter(self.tokenizer(texts, add_special_tokens=False)["input_ids"])
        prompt = tuple(next(ids))
        kept = []
        for branch in lesson.completions:
            pieces = [(token, weight) for _, weight in branch for token in next(ids)]
            if len(prompt) + len(pieces) <= self.stage.row_tokens:
                kept.append(pieces)
        if not kept:
            return None
        tokens = tuple(tuple(token for token, _ in pieces) for pieces in kept)
        return Sample(prompt, tokens, tuple(tuple(weight for _, weight in pieces) for pieces in kept))


def read_vocabulary(sources: tuple[str, ...], held_out: Set[str], num_programs: int) -> PreTrainedTokenizerBase:
    """Build the tokenizer from freshly written programs and lessons of these sources of a mixture."""
    programs: list[str] = []
    others: list[str] = []
    rng = Random("vocabulary/0")
    for name in sources:
        if name in WORLDS:
            author = Author(rng, held_out, world=WORLDS[name])
            problems = [author.problem(LEVELS[i % len(LEVELS)]) for i in range(num_programs)]
            programs += [p.code for p in problems]
            others += [p.message for p in problems]
        else:
            lessons = [lesson for _ in range(num_programs // 5) for lesson in LESSONS[name](rng)]
            others += [text for lesson in lessons for text in words_of(lesson)]
    return build_tokenizer(build_vocabulary(programs, others))


def words_of(lesson: Lesson) -> list[str]:
    """Return a lesson's text between its marks."""
    texts = [lesson.prompt, *(text for branch in lesson.completions for text, _ in branch)]
    return [part for text in texts for part in _MARK.split(text) if part]
