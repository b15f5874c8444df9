"""The typed configuration: one section a stage; every field says unit, range and where its default comes from.

A field's docstring says what it is, then its ground and why: *Paper* (a reader of the paper states it),
*Re-implementation*, *AZR* (Absolute Zero Reasoner's default), *Ours* (the paper is silent or unknown);
``docs/paper_map.md`` is written from them. This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from redqueen.errors import UserError
from redqueen.files import apply_override, by_kind, read_toml

EMBEDDED = "embedded"

OPERATORS = (*(f"M{i}" for i in range(1, 7)), *(f"X{i}" for i in range(1, 10)), "copy_parent", "linear_0_5")
"""Ids of the evolutionary operators (``redqueen operators`` lists them); a test holds them to those of ``evolve``."""


class Section(BaseModel):
    """What all sections share: unknown fields are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class RunConfig(Section):
    """The run as a whole."""

    name: str = Field(default="run", min_length=1, max_length=80, pattern=r"^[\w .+-]+$")
    """Name shown in reports and in the default run directory. Ours."""
    rng_seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of every random stream; each is derived from it by name, so a run repeats. Ours."""
    num_steps: int = Field(default=200, ge=1)
    """Steps of self-play. Paper: 200."""
    max_tokens: int = Field(default=0, ge=0)
    """Stop after the step in which this many tokens were sampled in all; 0: never. Ours: two arms, equal totals."""
    max_seconds: float = Field(default=0.0, ge=0)
    """Stop after this many seconds of steps, evaluation and checkpoints apart; 0: never. Ours: two arms, equal time."""
    num_threads: int = Field(default=0, ge=0)
    """CPU threads for tensor work; 0: all cores. The result depends on it in the last bits. Ours."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the base runs; auto: CUDA when there is one. Ours: the same config runs on both."""
    checkpoint_every_steps: int = Field(default=10, ge=1)
    """Steps between checkpoints. Ours: one generation, what a crash may cost."""
    num_checkpoints_kept: int = Field(default=2, ge=1)
    """Newest checkpoints kept. Ours: one to fall back on when the newest is damaged."""
    milestone_every_steps: int = Field(default=100, ge=0)
    """Checkpoints at multiples of this many steps are kept for good; 0: none. Ours: members of earlier times can be
    exported and played against; few, since each is as large as the whole population."""
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    """Where metrics are sent beside the journal, which holds everything; each is an extra of the same name. Ours."""


class ModelConfig(Section):
    """The frozen base."""

    base: str = EMBEDDED
    """``embedded``, a model folder, or a name on the hub. Ours: runs without a download; the paper has
    Qwen2.5-Coder-7B, as in ``configs/paper-7b.toml``."""
    precision: Literal["bf16", "fp32"] = "bf16"
    """Precision of the base's products. Ours: cheap in bf16; adapters and moments are fp32, which keeps small steps."""
    prompt_format: Literal["auto", "compact", "compact-forced", "chat"] = "auto"
    """``auto``: ``compact``, its notation, for the embedded base and ``chat``, plain English, for all others. The
    control ``compact-forced`` is ``compact`` with each thought begun in the prompt. Ours."""


class PopulationConfig(Section):
    """Who lives."""

    num_teachers: int = Field(default=4, ge=0)
    """Teachers. Paper: 4 (ablations 1 and 8)."""
    num_students: int = Field(default=4, ge=0)
    """Students. Paper: 4 (ablations 1 and 8)."""
    single: bool = False
    """One adapter plays both roles; then both numbers must be 1. Paper: its baseline, AZR."""
    lora_rank: int = Field(default=32, ge=1)
    """Rank of every adapter. Paper: 32."""
    lora_alpha: float = Field(default=64.0, gt=0)
    """Adapter scale is lora_alpha / lora_rank. Paper: 64."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Adapted modules. Ours: all linear projections, consistent with the reported adapter size."""

    @model_validator(mode="after")
    def _somebody_on_each_side(self) -> PopulationConfig:
        if self.single and (self.num_teachers, self.num_students) != (1, 1):
            raise ValueError("single = true is one adapter in both roles: set num_teachers = 1 and num_students = 1")
        if self.num_teachers < 1:
            raise ValueError("num_teachers must be at least 1: a teacher has to write the tasks")
        if self.num_students < 1:
            raise ValueError("num_students must be at least 1: a student has to solve the tasks")
        return self

    @property
    def arm(self) -> str:
        """``single`` or ``4T+4S``."""
        return "single" if self.single else f"{self.num_teachers}T+{self.num_students}S"

    @property
    def num_members(self) -> int:
        """Members that live at a time."""
        return 1 if self.single else self.num_teachers + self.num_students


class MatchConfig(Section):
    """Matchmaking and the Gaussian skill ratings."""

    rule: Literal["pfsp", "uniform", "all_pairs"] = "pfsp"
    """Who is paired. Paper: prioritised fictitious self-play. ``uniform`` is its control, ``all_pairs`` fills the
    payoff matrix; both are ours."""
    pfsp_exponent: float = Field(default=1.0, ge=0)
    """Weight of a pair is (p (1 - p)) to this power. Re-implementation: 1."""
    rating_mu: float = 25.0
    """Mean of a newcomer's rating, in rating points. Paper: standard constant."""
    rating_sigma: float = Field(default=25.0 / 3, gt=0)
    """Standard deviation of a newcomer's rating. Paper: standard constant, 25/3."""
    rating_beta: float = Field(default=25.0 / 6, gt=0)
    """Spread of one performance. Paper: standard constant, 25/6."""
    rating_tau: float = Field(default=25.0 / 300, ge=0)
    """Drift of a skill between matches. Paper: standard constant, 25/300."""
    draw_frac: float = Field(default=0.1, ge=0, lt=1)
    """Probability of a draw between equals; it fixes the draw margin, which enters the update of wins too. Ours: the
    rating system's usual value, no reader names one."""
    payoff_decay_frac: float = Field(default=0.95, gt=0, le=1)
    """Share of a payoff cell's weight kept each step. Ours: members learn, so it remembers tens of steps."""
    hall_of_fame_frac: float = Field(default=0.0, ge=0, le=1)
    """Chance that a match is played against a frozen past member; 0: no hall of fame. Ours: no reader names one."""
    hall_of_fame_size: int = Field(default=4, ge=1)
    """Past members of each role that are kept, each in an adapter slot of its own. Ours: as many as live."""


class ProposeConfig(Section):
    """What teachers are asked for."""

    domains: tuple[str, ...] = Field(default=("code",), min_length=1)
    """Domains whose kinds of task are asked for, by name, or ``module:NAME`` for one of your own. Paper: code."""
    num_proposals: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Proposals of each teacher a step, by kind of task: ``{NAME = 6}``. Ours: AZR has 64 of each, for one adapter."""
    num_of_each_kind: int = Field(default=8, ge=0)
    """Proposals of each teacher a step of a kind that ``num_proposals`` does not name. Ours: as above."""
    num_per_prompt: int = Field(default=4, ge=1)
    """Proposals drawn from one prompt. Ours: it is read once; more would narrow what references a step shows."""
    num_references: int = Field(default=6, ge=0)
    """Reference programs in a proposal prompt. AZR: 6."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. AZR: 1."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling. AZR: 1."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest proposal, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest proposal prompt, in tokens; references that do not fit are left out. AZR: 6144."""
    buffer_capacity: int = Field(default=1024, ge=8)
    """Tasks remembered for references; the oldest leave. Ours: AZR keeps the oldest, so later ones are not shown."""
    buffer_scope: Literal["shared", "per_teacher"] = "shared"
    """Whether all teachers draw references from one buffer. Ours: what one teacher finds, all can build on."""
    num_seed_proposals: int = Field(default=16, ge=0)
    """Proposals of each kind by the untrained base that grow the seed buffer before step 1. Ours: step 1 needs
    something to refer to beside the identity program; AZR grows a set too."""
    reject_duplicates: bool = True
    """Refuse a task whose program (up to names) and inputs are in the buffer or were proposed this step. Ours: without
    it a teacher can repeat one program for ever."""
    class_decay_frac: float = Field(default=0.95, gt=0, le=1)
    """Share kept each step of the counts of what was posed (classes and sizes of tasks). Ours: as for payoffs."""
    policy_rules: tuple[str, ...] = ()
    """Regular expressions; a proposal whose program, inputs or message match one is refused. Ours: the user's say."""
    policy_hook: str = ""
    """``module:function`` that is asked about every proposal and returns why it is refused, or None. Ours."""

    @model_validator(mode="before")
    @classmethod
    def _numbers_by_kind(cls, data: Any) -> Any:
        """Read ``num_NAME`` for a kind called NAME, as configs once had it; of two numbers the later one counts."""
        return by_kind(data, set(cls.model_fields)) if isinstance(data, dict) else data


class VerifyConfig(Section):
    """How untrusted programs are run."""

    num_workers: int = Field(default=2, ge=1)
    """Sandboxed processes at a time. Ours: the cores of a small machine."""
    num_hash_seeds: int = Field(default=2, ge=1)
    """Hash seeds a program must agree under, 8 or more where sets appear. Ours: the fewest that can disagree."""
    accept_cpu_ms: int = Field(default=50, ge=1)
    """CPU time within which a proposed program must finish, in milliseconds. Ours: well under the kill limit, so that
    no program is valid once and killed the next time."""
    kill_cpu_ms: int = Field(default=200, ge=1)
    """CPU time after which any program is killed, in milliseconds. Ours: what takes longer is no puzzle."""
    num_inputs: int = Field(default=10, ge=2)
    """Pairs of an induction task; the embedded base writes ten at most. AZR: 10."""
    num_shown: int = Field(default=5, ge=1)
    """Pairs of an induction task that the solver sees. AZR: the first half."""
    allow_weak: bool = False
    """Run even where no system-call filter can be had. Ours: a hostile program could do harm."""

    @model_validator(mode="after")
    def _some_hidden(self) -> VerifyConfig:
        if self.num_shown >= self.num_inputs:
            raise ValueError("num_shown must be below num_inputs: some pairs stay hidden")
        if self.accept_cpu_ms > self.kill_cpu_ms:
            raise ValueError("accept_cpu_ms must not be above kill_cpu_ms")
        return self


class SolveConfig(Section):
    """How students answer."""

    num_attempts: int = Field(default=8, ge=1)
    """Attempts at each task: the solve rate's sample and the training group. AZR: 8."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. AZR: 1."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling. AZR: 1."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest attempt, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest solving prompt, in tokens; a task that needs more is rejected. AZR: 6144."""
    max_rows: int = Field(default=512, ge=1)
    """Sequences decoded at a time. Ours: affects speed and memory only."""


class LearnConfig(Section):
    """The policy-gradient step."""

    estimator: Literal["reinforce_pp_baseline", "trr_pp", "grpo", "rloo"] = "reinforce_pp_baseline"
    """How rewards become advantages. Paper: REINFORCE++ with a group baseline. ``trr_pp`` is AZR's."""
    learning_rate: float = Field(default=2e-5, gt=0)
    """Of AdamW. Ours: unknown in the paper; AZR has 1e-6 for full fine-tuning, LoRA wants 10 to 100 times that."""
    train_teachers: bool = True
    """False freezes the proposing role. Ours: a control."""
    train_students: bool = True
    """False freezes the solving role. Ours: a control."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW. Ours: the common default."""
    beta2: float = Field(default=0.99, ge=0, lt=1)
    """AdamW. Ours: runs of a few hundred steps want a shorter memory than 0.999."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW. Ours: decay would pull an adapter back to the base for no stated reason."""
    clip: float = Field(default=0.2, gt=0)
    """Range of the importance ratio. AZR: 0.2. It never acts while ``old_logprobs`` is
    ``recompute``: a batch is used once, by the weights that sampled it."""
    old_logprobs: Literal["recompute", "sampler"] = "recompute"
    """Whose log-probabilities count as those of the policy that sampled: ``recompute`` takes those of the training
    pass itself, right where sampler and learner share the weights, since rounding then cannot clip anything;
    ``sampler`` takes those that came with the samples, for a sampler elsewhere. Ours."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping, per member. Ours: one member's outlier does not slow the others."""
    micro_batch_tokens: int = Field(default=8192, ge=64)
    """Tokens of one forward and backward pass. Ours: affects speed and memory only."""
    gradient_checkpointing: bool = False
    """Trade time for memory on large models. Ours: a small base does not need it."""
    unsolved_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when no attempt solved the task. Paper: 0 (AZR's code: -0.5)."""
    certain_reward: float = Field(default=0.0, ge=-1, le=1)
    """Teacher's reward when every attempt solved it. Paper: 1 - s = 0 (AZR's code: -0.5)."""
    novelty_bonus: float = Field(default=0.0, ge=0, le=1)
    """Added to a teacher's reward for a solved task of a class never seen before. Ours: a
    counter-pressure, off, since the paper pays 1 - s alone."""
    crowding_penalty: float = Field(default=0.0, ge=0, le=1)
    """Times the share of a task's class among recent tasks, taken off the teacher's reward. Ours: as above."""
    size_guard_frac: float = Field(default=0.0, ge=0, le=1)
    """Share of the hardness explained by size alone that a teacher is not paid for. Ours: as above."""


class EvolveConfig(Section):
    """Replacement of the weakest by children bred in weight space."""

    enabled: bool = True
    """False: no replacement at all. Ours: the ablation that the paper lacks."""
    every_steps: int = Field(default=10, ge=1)
    """Steps between generations. Paper: 10."""
    replaced_frac: float = Field(default=0.25, ge=0, lt=1)
    """Share of each role replaced. Paper: 25 %."""
    operators: tuple[str, ...] = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
    """Enabled operators. Paper: these eight."""
    crossover_frac: float = Field(default=0.5, ge=0, le=1)
    """Chance of crossover against mutation. Re-implementation: a fair coin."""
    selection: Literal["truncation", "tournament", "rank"] = "truncation"
    """Parent selection. Paper: the fittest survivors. The other rules are ours."""
    tournament_size: int = Field(default=2, ge=1)
    """Contestants of a tournament. Ours: the mildest."""
    fitness: Literal["rating", "payoff"] = "rating"
    """What selection reads. Paper: the rating's lower confidence bound. The mean of late payoffs is ours."""
    payoff_window: int = Field(default=10, ge=1)
    """Latest games in a member's mean payoff. Ours: about a generation's."""
    protected_steps: int = Field(default=0, ge=0)
    """A member younger than this many steps counts at least as its role's median; 0: no protection. Ours."""
    replacement: Literal["worst_fraction", "steady_state", "crowding"] = "worst_fraction"
    """Who leaves. Paper: the least fit share. The least fit one, or the less fit of the two most similar: ours."""
    num_elite: int = Field(default=1, ge=1)
    """Fittest members of a role that stay under every rule. Ours: a generation must not lose the best."""
    constants: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Operators' constants other than the defaults: ``constants.M4 = {mutation_std = 0.1}``. Ours."""
    space: Literal["delta", "factor"] = "delta"
    """Whether operators act on the adapter's effect or on its factors. Ours: one dW, one child."""
    preserve_norm: bool = False
    """Rescale a child to its parents' norm. Ours: the paper's operators do not say that they do."""
    child_rating: Literal["reset", "inherit"] = "reset"
    """A newborn's rating; ``inherit``: the parents' mean mu, their sigma doubled but at most a newcomer's.
    Re-implementation: reset."""
    child_moments: Literal["reset", "inherit"] = "reset"
    """A newborn's optimiser state; ``inherit``: its first parent's. Ours: in delta space the factors are written anew,
    so the parent's moments do not fit them."""

    @model_validator(mode="after")
    def _known_operators(self) -> EvolveConfig:
        unknown = [name for name in self.operators if name not in OPERATORS]
        if unknown:
            raise ValueError(f"operators names {unknown[0]!r}, which is none; choose from {', '.join(OPERATORS)}")
        if self.enabled and not self.operators:
            raise ValueError("operators is empty: name at least one, or set enabled = false")
        strange = [name for name in self.constants if name not in OPERATORS]
        if strange:
            raise ValueError(
                f"constants names {strange[0]!r}, which is no operator; choose from {', '.join(OPERATORS)}"
            )
        return self


class EvaluateConfig(Section):
    """External fitness on the frozen suite: reported, never selected on."""

    every_steps: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: only before the first step and after the last. Ours: selection ignores it."""
    num_samples: int = Field(default=2, ge=1)
    """Sampled attempts an item; greedy takes one more. Ours: items are many, so few attempts each suffice."""
    max_items: int = Field(default=0, ge=0)
    """Items scored, spread over the suite; 0: all. Ours."""


class Config(Section):
    """A whole run."""

    run: RunConfig = RunConfig()
    model: ModelConfig = ModelConfig()
    population: PopulationConfig = PopulationConfig()
    match: MatchConfig = MatchConfig()
    propose: ProposeConfig = ProposeConfig()
    verify: VerifyConfig = VerifyConfig()
    solve: SolveConfig = SolveConfig()
    learn: LearnConfig = LearnConfig()
    evolve: EvolveConfig = EvolveConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    @model_validator(mode="after")
    def _something_to_propose(self) -> Config:
        propose = self.propose
        if (propose.temperature, propose.top_p) != (self.solve.temperature, self.solve.top_p):
            raise ValueError("propose and solve must have equal temperature and top_p: the learner knows one policy")
        if self.population.single and self.match.hall_of_fame_frac > 0:
            raise ValueError("match.hall_of_fame_frac needs two roles: the single agent has no opponents, set it to 0")
        return self

    @property
    def num_hall_places(self) -> int:
        """Adapter slots of the hall of fame behind those of the members: teachers' first, then students'."""
        return 2 * self.match.hall_of_fame_size if self.match.hall_of_fame_frac > 0 else 0

    @property
    def num_adapters(self) -> int:
        """Adapters in the bank: the population and the hall of fame."""
        return self.population.num_members + self.num_hall_places


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file (None: all defaults) and apply ``section.field=value`` overrides.

    Raises UserError naming the file and field, with what is wrong and what would be right.
    """
    data = {} if path is None else read_toml(path, "config", "configs/population.toml")
    for override in overrides:
        apply_override(data, override)
    return parse_config(data, "the defaults" if path is None else str(path))


def parse_config(data: dict[str, Any], source: str) -> Config:
    """Validate plain data. Raises UserError with one line for each fault."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        faults = "; ".join(_explain(fault) for fault in error.errors())
        raise UserError(f"{source}: {faults}") from None


def _explain(fault: Any) -> str:
    """Say in one phrase what is wrong with a field and what would be right."""
    place = ".".join(str(p) for p in fault["loc"]) or "the config"
    if fault["type"] == "extra_forbidden":
        section = Config.model_fields.get(str(fault["loc"][0]))
        if len(fault["loc"]) == 1 or section is None:
            return f"there is no section {place}; the sections are {', '.join(Config.model_fields)}"
        known = section.annotation.model_fields if section.annotation else {}
        return f"there is no field {place}; {fault['loc'][0]} has {', '.join(known)}"
    message = fault["msg"].removeprefix("Value error, ")
    shown = f" (got {fault['input']!r})" if fault["type"] != "value_error" else ""
    return f"{place}: {message[0].lower()}{message[1:]}{shown}"
