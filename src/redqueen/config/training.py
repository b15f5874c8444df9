"""Sections of the config: how members learn, evolve and are distilled, evaluated, spread and sampled."""

from __future__ import annotations

import math
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from redqueen.config.episodes import Section

FLOOR_FRAC = 0.05
"""Share of the learning rate that is left at the end of a decay (ours): members still follow their opponents."""


class LearnConfig(Section):
    """The policy-gradient step."""

    estimator: Literal["reinforce_pp_baseline", "trr_pp", "grpo", "rloo"] = "reinforce_pp_baseline"
    """How rewards become advantages. Paper: REINFORCE++ with a group baseline. ``trr_pp`` is AZR's."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Of AdamW. Ours: unknown in the paper; AZR has 1e-6 for full fine-tuning, LoRA wants 10 to 100 times that. Left
    open, ``fit_to_base`` in ``redqueen/fitting.py`` sets it by the size of the base, for a larger one needs less: 2e-3
    (embedded, if no section but run and model is set), 3e-4, 1e-4, and 2e-5 from three billion parameters.
    It decays by ``rate_frac``; ``tunings`` in ``loop.py`` hands it to ``learn/torch_learner.py``. Students that are
    distilled learn at ``distill.learning_rate``."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls between ``decay_from_step`` and ``decay_to_step``. Ours: readers name no schedule; a
    constant one lost over 300 steps what it had taught."""
    decay_from_step: int = Field(default=0, ge=0)
    """The last step with the full learning rate. Ours."""
    decay_to_step: int = Field(default=0, ge=0)
    """The step from which on the learning rate stays at its floor; 0: the run's last. Ours: a run that ends by tokens
    has to name it."""
    proposal_weight: float = Field(default=1.0, gt=0)
    """Times the advantages of proposals in the loss. Of the single agent it says how much a step is about proposing; a
    lone teacher's AdamW hardly heeds it. Ours: one step serves both roles, and to write
    short tasks is learned faster than to solve long ones."""
    kl_weight: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the base in the loss, per nat and token; 0: none. Paper: none."""
    teacher_baseline: Literal["group", "running"] = "group"
    """What a teacher's reward is compared with: its proposals of the kind in this step, or a running mean of them over
    its steps. Ours: a group that is wholly invalid has no gradient under the first, and nothing leads out of it."""
    train_teachers: bool = True
    """False freezes the proposing role. Ours: a control."""
    train_students: bool = True
    """False freezes the solving role. Ours: a control."""
    clip: float = Field(default=0.2, gt=0)
    """Range of the importance ratio. AZR: 0.2. It acts where ``updates_per_step`` is above 1."""
    updates_per_step: int = Field(default=1, ge=1, le=64)
    """Mini-batches into which each member's rollouts of a step are dealt, with an update for each. From two on the
    ratio is taken to the sampler's log-probabilities and clipped. Ours: one, which is cheaper; AZR has three (384
    samples in mini-batches of 128)."""
    micro_batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one forward and backward pass. Ours: affects speed and memory only."""
    gradient_checkpointing: bool = False
    """Trade time for memory on large models. Ours: a small base does not need it."""
    unsolved_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when no attempt solved the task. Paper: 0 (AZR's code: -0.5)."""
    certain_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when every attempt solved it. Paper: 1 - s = 0 (AZR's code: -0.5)."""
    novelty_bonus: float = Field(default=0.0, ge=0, le=1)
    """Added to a teacher's reward for a solved task of a new class. Ours: a
    diversity term, off, since the paper pays 1 - s alone."""
    crowding_penalty: float = Field(default=0.0, ge=0, le=1)
    """Times the share of a task's class among recent tasks, taken off the teacher's reward. Ours: as above."""
    size_guard_frac: float = Field(default=0.0, ge=0, le=1)
    """Share of the hardness explained by size alone that a teacher is not paid for. Ours: as above."""

    @model_validator(mode="after")
    def _consistent(self) -> LearnConfig:
        if 0 < self.decay_to_step <= self.decay_from_step:
            raise ValueError("decay_to_step must be above decay_from_step, or 0 for the run's last step")
        return self

    def rate_frac(self, step: int, num_steps: int) -> float:
        """Return the share of the learning rate that holds at ``step`` (from 1) of a run of ``num_steps``.

        1 up to ``decay_from_step``, the floor f from ``decay_to_step`` on; between them, with t the share of the way,
        linear 1 - (1 - f) t and cosine f + (1 - f) (1 + cos(pi t)) / 2. Source: ours (common practice).
        """
        if self.decay == "constant":
            return 1.0
        start, end = self.decay_from_step, self.decay_to_step or num_steps
        way = min(1.0, max(0.0, (step - start) / max(1, end - start)))
        left = 1.0 - way if self.decay == "linear" else (1.0 + math.cos(math.pi * way)) / 2.0
        return FLOOR_FRAC + (1.0 - FLOOR_FRAC) * left


OPERATORS = (*(f"M{i}" for i in range(1, 7)), *(f"X{i}" for i in range(1, 10)), "copy_parent", "linear_0_5")
"""Ids of the evolutionary operators (``redqueen operators`` lists them); a test holds them to those of ``evolve``."""


class EvolveConfig(Section):
    """Replacement of the weakest by children bred in weight space."""

    enabled: bool = True
    """False: no replacement at all. Ours: the ablation that the paper lacks."""
    every_steps: int = Field(default=10, ge=1)
    """Steps between generations. Paper: 10."""
    replaced_frac: float = Field(default=0.25, ge=0, lt=1)
    """Share of each role replaced. Paper: 25 %."""
    operators: tuple[str, ...] = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
    """Enabled operators, by id or as ``module:NAME`` of your own. Paper: these eight."""
    selection: Literal["truncation", "tournament", "rank"] = "truncation"
    """Parent selection. Paper: the fittest survivors. The other rules are ours."""
    fitness: str = Field(default="rating", pattern=r"^(rating|reward|probe|[\w.]+:\w+)$")
    """What selection reads. Paper: the rating's lower confidence bound. ``reward``, the mean over the last
    ``every_steps`` steps, is ours: a rating counts an unsolved task as the teacher's win, a reward does not. Under
    ``probe`` all students answer the same archived tasks, and teachers are judged by reward. ``module:NAME`` is a
    function of yours from a member and the evidence to a number."""
    probe_tasks: int = Field(default=64, ge=1)
    """Archived tasks that all students answer at the end of a generation under ``fitness = "probe"``. Ours: a tenth of
    what they answer in a generation."""
    protected_steps: int = Field(default=0, ge=0)
    """A member younger than this many steps counts at least as its role's median; 0: no protection. Ours: a child that
    inherits its rating needs none, one with ``child_rating = "reset"`` does."""
    genes: tuple[Literal["learning_rate", "temperature"], ...] = ()
    """Settings of which each member has a factor of its own, inherited and mutated. Ours: population-based training; a
    population can tune itself while it runs."""
    constants: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Operators' constants other than the defaults: ``constants.M4 = {mutation_std = 0.1}``. Ours."""
    child_rating: Literal["reset", "inherit"] = "inherit"
    """A newborn's rating; ``inherit``: the parents' mean mu and root mean square sigma; ``reset``, the
    re-implementation's rule: a newcomer's. Ours: the paper is silent; in simulation the truly worst of four leaves in
    67 % of generations and the newest in 13 %, under ``reset`` the newest in 88 %, whose rating is below all."""

    @property
    def imported(self) -> tuple[str, ...]:
        """The operators and the fitness that are named as ``module:NAME``: importing them runs the user's code."""
        return tuple(name for name in (*self.operators, self.fitness) if ":" in name)

    @model_validator(mode="after")
    def _consistent(self) -> EvolveConfig:
        unknown = [name for name in self.operators if name not in OPERATORS and ":" not in name]
        if unknown:
            raise ValueError(
                f"operators names {unknown[0]!r}, which is not an operator; choose from {', '.join(OPERATORS)}, or "
                "name your own as module:NAME"
            )
        if self.enabled and not self.operators:
            raise ValueError("operators is empty: name at least one, or set enabled = false")
        if 0 < self.protected_steps <= self.every_steps:
            raise ValueError(
                f"protected_steps must be above every_steps ({self.every_steps}), or 0: a newborn is as old as that "
                "when the next generation is chosen, so a shorter shelter has no effect"
            )
        strange = [name for name in self.constants if name not in (*OPERATORS, *self.operators)]
        if strange:
            usable = dict.fromkeys([*OPERATORS, *self.operators])
            raise ValueError(
                f"constants names {strange[0]!r}, which is not an operator of the run; choose from {', '.join(usable)}"
            )
        return self


class DistillConfig(Section):
    """How a fresh adapter is fine-tuned on verified answers, for the students and for a distilled product."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between distillations, each of which resets every student to an adapter fine-tuned on a verified answer
    to each task solved so far; 0: none. Ours: STaR and ReST-EM restart from the base in each round."""
    batch_size: int = Field(default=48, ge=1)
    """Answers of one update. Ours."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Highest learning rate; after the warm-up it falls linearly to zero. Ours: measured for the embedded base. Left
    open, a larger base takes the one of ``learn.learning_rate`` for its size (``fitting.py``)."""
    warmup_updates: int = Field(default=20, ge=0)
    """Updates over which the rate rises. Ours."""


class EvaluateConfig(Section):
    """External fitness on the frozen suite: reported, never selected on."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: only before the first step and after the last. Ours: selection ignores it."""
    num_samples: int = Field(default=2, ge=1)
    """Sampled attempts an item; greedy takes one more. Ours: items are many, so few attempts each suffice."""
    control: bool = True
    """Score once, before the first step, the bare base with every thought begun in the prompt, where the prompt format
    has thoughts. Ours: it measures what prompting alone reaches."""
    max_items: int = Field(default=800, ge=0)
    """Items scored, spread over the suite; 0: all. Ours: all items took a quarter of a run; with 800 the 95 % interval
    of a paired difference is about 2.5 points to either side."""
    students: bool = True
    """Score students at evaluations. False: the base, its control and the run's product alone. Ours."""


class ClusterConfig(Section):
    """Shards of the population; ``redqueen train --cluster`` says on which machines they run."""

    num_shards: int = Field(default=1, ge=1)
    """Parts of the population, each with a base, sampler and learner of its own: a member's slot i is in part i modulo
    this. Ours: the result depends on it in the last bits, as other rows share a batch, but not on where they are."""
    verify: Literal["driver", "shard"] = "driver"
    """Where proposals and answers are judged: on the driver's machine, or on those of the shards, each with a verifier
    of ``verify.num_workers``. Ours: verdicts are the same, and one machine is enough until the driver's cores are not;
    on the shards' machines the sandbox must hold too."""


class SamplerConfig(Section):
    """Where completions are sampled: in this process, or by vLLM servers that get each version of each adapter."""

    kind: Literal["torch", "vllm"] = "torch"
    """``torch``: the learner's own process and weights. ``vllm``: the servers at ``urls``. Ours: the first needs
    nothing; servers are faster where a large base samples on GPUs of its own, as all large trainers do it."""
    urls: tuple[str, ...] = Field(default=("http://127.0.0.1:8000",), min_length=1)
    """Addresses of the servers, all with the run's base; requests are spread over them. Ours: vLLM's own port."""
    adapter_folder: str = ""
    """Folder in which adapters are written for the servers, which must see it under the same path; "": a temporary one
    of this machine. Ours: servers on other machines need a shared disk."""

    @field_validator("urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not _is_address(url):
                raise ValueError(
                    f"{url!r} is not the address of a server: write it as http://127.0.0.1:8000, without /v1"
                )
        if len({url.rstrip("/") for url in urls}) < len(urls):
            raise ValueError("an address is there twice: name each server once")
        return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0  # reading it checks its range
    except ValueError:
        return False
    return bool(known) and not (parts.query or parts.fragment or parts.path.rstrip("/").endswith("/v1"))
