"""Sections of the config: learning, evolution, distillation, evaluation, shards and sampling servers."""

from __future__ import annotations

import math
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from redqueen.config.episodes import Section

FLOOR_FRAC = 0.05
"""Share of the learning rate that is left after a decay (ours): members can still adapt to their opponents."""


class LearnConfig(Section):
    """The policy-gradient step."""

    estimator: Literal["reinforce_pp_baseline", "trr_pp", "grpo", "rloo"] = "reinforce_pp_baseline"
    """How rewards become advantages. Paper: REINFORCE++ with a group baseline. ``trr_pp`` is AZR's."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Of AdamW. Ours: unknown in the paper; AZR has 1e-6 for full fine-tuning, and LoRA needs 10 to 100 times that. If
    it is not set, ``fit_to_base`` in ``redqueen/fitting.py`` chooses it by the size of the base: 2e-3 (embedded, if
    only the sections run and model are set), 3e-4, 1e-4, and 2e-5 from three billion parameters. It decays by
    ``rate_frac``; ``tunings`` in ``loop.py`` passes it to ``learn/torch_learner.py``. Distillation uses
    ``distill.learning_rate``."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls between ``decay_from_step`` and ``decay_to_step``. Ours: no schedule is known; with a
    constant rate the gains were lost again over 300 steps."""
    decay_from_step: int = Field(default=0, ge=0)
    """The last step with the full learning rate. Ours."""
    decay_to_step: int = Field(default=0, ge=0)
    """The first step with the learning rate at its floor; 0: the run's last. Ours: a run with a limit of tokens has to
    set it."""
    proposal_weight: float = Field(default=1.0, gt=0)
    """Factor on the advantages of proposals in the loss. For the single agent it balances proposing and solving; for a
    teacher it has little effect, since AdamW normalises. Ours: one step serves both roles, and writing short tasks is
    learned faster than solving long ones."""
    kl_weight: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the base in the loss, per nat and token; 0: none. Paper: none."""
    teacher_baseline: Literal["group", "running"] = "group"
    """Baseline of a teacher's reward: its proposals of the kind in this step, or a running mean over its steps. Ours:
    with ``group``, proposals that are all invalid have no gradient, so a teacher cannot recover."""
    train_teachers: bool = True
    """False freezes the proposing role. Ours: a control."""
    train_students: bool = True
    """False freezes the solving role. Ours: a control."""
    clip: float = Field(default=0.2, gt=0)
    """Range of the importance ratio. AZR: 0.2. It has an effect only if ``updates_per_step`` is above 1."""
    updates_per_step: int = Field(default=1, ge=1, le=64)
    """Mini-batches of each member's rollouts in a step, with an update for each. With two or more, the importance ratio
    to the sampler's log-probabilities is clipped. Ours: one, which is cheaper; AZR has three (384 samples in
    mini-batches of 128)."""
    micro_batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one forward and backward pass. Ours: affects speed and memory only."""
    gradient_checkpointing: bool = False
    """Trade time for memory on large models. Ours: a small base does not need it."""
    unsolved_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when no attempt solved the task. Paper: 0 (AZR's code: -0.5)."""
    certain_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when every attempt solved it. Paper: 1 - s = 0 (AZR's code: -0.5)."""
    novelty_bonus: float = Field(default=0.0, ge=0, le=1)
    """Added to a teacher's reward for a solved task of a new class. Ours: a diversity term, off as in the paper."""
    crowding_penalty: float = Field(default=0.0, ge=0, le=1)
    """Times the share of a task's class among recent tasks, subtracted from the teacher's reward. Ours: as above."""
    size_guard_frac: float = Field(default=0.0, ge=0, le=1)
    """Share of the hardness explained by size alone that is subtracted from the teacher's reward. Ours: as above."""

    @model_validator(mode="after")
    def _consistent(self) -> LearnConfig:
        if 0 < self.decay_to_step <= self.decay_from_step:
            raise ValueError("decay_to_step must be above decay_from_step, or 0 for the run's last step")
        return self

    def rate_frac(self, step: int, num_steps: int) -> float:
        """Return the factor on the learning rate at ``step`` (from 1) of a run of ``num_steps``.

        1 up to ``decay_from_step``, the floor f from ``decay_to_step`` on; between them, with t from 0 to 1, linear
        1 - (1 - f) t or cosine f + (1 - f) (1 + cos(pi t)) / 2. Source: ours (common practice).
        """
        if self.decay == "constant":
            return 1.0
        start, end = self.decay_from_step, self.decay_to_step or num_steps
        way = min(1.0, max(0.0, (step - start) / max(1, end - start)))
        left = 1.0 - way if self.decay == "linear" else (1.0 + math.cos(math.pi * way)) / 2.0
        return FLOOR_FRAC + (1.0 - FLOOR_FRAC) * left


OPERATORS = (*(f"M{i}" for i in range(1, 7)), *(f"X{i}" for i in range(1, 10)), "copy_parent", "linear_0_5")
"""Ids of the evolutionary operators (``redqueen operators`` lists them); a test compares them with ``evolve``."""


class EvolveConfig(Section):
    """Replacement of the weakest members by children bred in weight space."""

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
    """The fitness of selection. Paper: ``rating``, its lower confidence bound. ``reward``, the mean over the last
    ``every_steps`` steps, is ours: a rating counts an unsolved task as the teacher's win, a reward does not. Under
    ``probe`` all students attempt the same archived tasks, and teachers are measured by reward. ``module:NAME`` is your
    function from a member and the evidence to a number."""
    probe_tasks: int = Field(default=64, ge=1)
    """Archived tasks that all students attempt at the end of a generation with ``fitness = "probe"``. Ours: a tenth of
    the tasks that they attempt in a generation."""
    protected_steps: int = Field(default=0, ge=0)
    """The fitness of a member younger than this many steps is at least its role's median; 0: no protection. Ours: it is
    only needed with ``child_rating = "reset"``, not if a child inherits its rating."""
    genes: tuple[Literal["learning_rate", "temperature"], ...] = ()
    """Settings for which each member has its own factor, inherited and mutated. Ours: population-based training; a
    population can tune itself while it runs."""
    constants: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Operators' constants other than the defaults: ``constants.M4 = {mutation_std = 0.1}``. Ours."""
    child_rating: Literal["reset", "inherit"] = "inherit"
    """A child's rating. ``inherit``: the parents' mean mu and root mean square sigma. ``reset``, the
    re-implementation's rule: a newcomer's. Ours: not known from the paper. In simulation ``inherit`` replaces the truly
    worst of four in 67 % of generations and the newest in 13 %; ``reset`` the newest, rated below all, in 88 %."""

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
                "when the next generation is chosen, so a shorter protection has no effect"
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
    """Learning rate, before the factors of the warm-up and of a linear decay to zero. Ours: measured for the embedded
    base. If it is not set, a larger base gets the ``learn.learning_rate`` for its size (``fitting.py``)."""
    warmup_updates: int = Field(default=20, ge=0)
    """Updates over which a factor of the rate rises to 1; with few answers, and so few updates, lower it. Ours."""


class EvaluateConfig(Section):
    """External fitness on the frozen held-out suite: reported, never used for selection."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: only before the first step and after the last. Ours: selection ignores it."""
    num_samples: int = Field(default=2, ge=1)
    """Sampled attempts per item, in addition to a greedy one. Ours: there are many items, so few attempts suffice."""
    control: bool = True
    """Score once, before the first step, the bare base with every thought begun in the prompt; in the format
    ``compact`` alone. Ours: it measures the effect of prompting alone."""
    max_items: int = Field(default=800, ge=0)
    """Items scored, spread over the suite; 0: all. Ours: all items took a quarter of a run; with 800 the 95 % interval
    of a paired difference is about +-2.5 points."""
    students: bool = True
    """Score students at evaluations. False: only the base, its control and the run's product. Ours."""


class ClusterConfig(Section):
    """Shards of the population; ``redqueen train --cluster`` chooses the machines on which they run."""

    num_shards: int = Field(default=1, ge=1)
    """Parts of the population, each with its own base, sampler and learner: the member in slot i is in part i modulo
    this. Ours: the result depends on it in the last bits, since batches differ, but not on the machines."""
    verify: Literal["driver", "shard"] = "driver"
    """Where proposals are verified and answers graded: on the driver's machine, or on the shards' machines, each with
    ``verify.num_workers``. Ours: verdicts are the same; ``shard`` helps if the driver has too few cores, and needs a
    working sandbox on all machines."""


class SamplerConfig(Section):
    """Where completions are sampled: in this process, or by vLLM servers, which load each version of each adapter."""

    kind: Literal["torch", "vllm"] = "torch"
    """``torch``: the learner's own process and weights. ``vllm``: the servers at ``urls``. Ours: the first needs no
    setup; servers are faster if a large base samples on its own GPUs, as in all large trainers."""
    urls: tuple[str, ...] = Field(default=("http://127.0.0.1:8000",), min_length=1)
    """Addresses of the servers, all with the run's base; requests are spread over them. Ours: vLLM's default port."""
    adapter_folder: str = ""
    """Folder in which adapters are written for the servers, which must have it at the same path; "": a temporary folder
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
            raise ValueError("an address is listed twice: name each server once")
        return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0  # reading it checks its range
    except ValueError:
        return False
    return bool(known) and not (parts.query or parts.fragment or parts.path.rstrip("/").endswith("/v1"))
