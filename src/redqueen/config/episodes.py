"""Sections of the config: the run, its base and population, and how tasks are proposed, checked and solved."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from redqueen.files import by_kind


class Section(BaseModel):
    """The base of all sections: unknown fields, NaN and infinity are refused, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _list_of_one(cls, value: object, info: ValidationInfo) -> object:
        """Read a string as a list of one if only a list or a table is allowed, and refuse a bool as a number."""
        kind = str(cls.model_fields[str(info.field_name)].annotation)
        if isinstance(value, bool) and kind in ("<class 'int'>", "<class 'float'>"):
            return str(value)
        return (value,) if isinstance(value, str) and kind.startswith("tuple[") else value


class RunConfig(Section):
    """The run as a whole."""

    name: str = Field(default="run", min_length=1, max_length=80, pattern=r"^[\w .+-]+$")
    """Name shown in reports and in the default run directory. Ours."""
    rng_seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of every random stream; each is derived from it by name, so a run repeats. Ours."""
    num_steps: int = Field(default=200, ge=1)
    """Steps of self-play. Paper: 200."""
    max_tokens: int = Field(default=0, ge=0)
    """Stop after the step in which the total of sampled tokens reaches this; 0: never. Ours: for arms of equal cost."""
    max_seconds: float = Field(default=0.0, ge=0)
    """Stop after this many seconds of steps, without evaluation; 0: never. Ours: for arms of equal time."""
    num_threads: int = Field(default=0, ge=0)
    """CPU threads for tensor work; 0: all cores. The result depends on it in the last bits. Ours."""
    num_lanes: int = Field(default=1, ge=1, le=64)
    """Parallel workers of sampling and learning on a CPU; a GPU has one. Each is a thread with ``num_threads`` (0:
    the cores divided by the lanes) and its share of ``solve.max_rows`` and ``learn.micro_batch_tokens``. The result
    depends on it in the last bits. Ours: measured (bench/results/lanes.md)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the base; auto: CUDA if available. Ours: the same config runs on both."""
    checkpoint_every_steps: int = Field(default=10, ge=1)
    """Steps between checkpoints. Ours: a crash costs at most one generation."""
    product: Literal["probe", "distilled", "merged", "none"] = "probe"
    """The one adapter that the run produces. ``probe``: of the students and their mean in delta space, the one that
    solves most archived tasks. ``distilled``: with another candidate, distilled from all correct answers. ``merged``:
    the mean. ``none``. Ours: a user wants one model, and the held-out suite must not choose it."""
    product_tasks: int = Field(default=256, ge=1)
    """Archived tasks by which the product is chosen. Ours: candidates are close to each other."""
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    """Tracker that gets metrics in addition to the journal; each needs the extra of the same name. Ours."""


EMBEDDED = "embedded"
GYM_PREFIX, FILE_PREFIX = "gym:", "file:"


class ModelConfig(Section):
    """The frozen base."""

    base: str = EMBEDDED
    """``embedded``, a model folder, a GGUF file, or a name on the hub. Ours: needs no download; the paper has
    Qwen2.5-Coder-7B, as in ``configs/paper-7b.toml``."""
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """Precision of the base's products; auto: bf16 on a GPU and on a CPU that multiplies it faster, else fp32, and a
    resumed run keeps it. Ours: whichever is fast (bench/results/precision.md); adapters and moments are always fp32, so
    that small updates are not lost."""
    prompt_format: Literal["auto", "compact", "compact-forced", "chat", "plain", "r1", "fewshot"] = "auto"
    """``compact``: the notation of the embedded base (``compact-forced``, a control, begins each thought).
    ``chat``: plain English. ``plain``: the same without think and answer marks. ``r1``: chat for base models, in AZR's
    template. ``fewshot``: examples to continue. ``auto``: chosen by the base; a new run prints the reason. Ours."""


class PopulationConfig(Section):
    """Population size and LoRA shape."""

    num_teachers: int = Field(default=4, ge=0, le=10_000)
    """Teachers. Paper: 4 (ablations 1 and 8)."""
    num_students: int = Field(default=4, ge=0, le=10_000)
    """Students. Paper: 4 (ablations 1 and 8)."""
    single: bool = False
    """One adapter has both roles; then both numbers must be 1. Paper: its baseline, AZR."""
    lora_rank: int = Field(default=32, ge=1, le=65_536)
    """Rank of every adapter. Paper: 32."""
    lora_alpha: float = Field(default=64.0, gt=0)
    """Adapter scale is lora_alpha / lora_rank. Paper: 64."""
    lora_targets: str | tuple[str, ...] = "all-linear"
    """Adapted modules. Ours: all linear projections, consistent with the reported adapter size."""

    founders: tuple[str, ...] = ()
    """PEFT folders of the same base with which the members begin, repeated in order; their rank is at most
    ``lora_rank``. Empty: fresh adapters, equal to the base. Ours: a population can continue earlier training."""

    @field_validator("lora_targets")
    @classmethod
    def _something_adapted(cls, targets: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not targets or "" in (targets if isinstance(targets, tuple) else ()):
            raise ValueError('name at least one kind of module, as ["q_proj", "v_proj"], or "all-linear"')
        return targets

    @model_validator(mode="after")
    def _members_on_each_side(self) -> PopulationConfig:
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
        """Number of present members."""
        return 1 if self.single else self.num_teachers + self.num_students


class MatchConfig(Section):
    """Matchmaking and the Gaussian skill ratings."""

    rule: Literal["pfsp", "uniform", "all_pairs"] = "pfsp"
    """How pairs are chosen. Paper: prioritised fictitious self-play. ``uniform`` is its control, ``all_pairs`` fills
    the payoff matrix; both are ours."""
    hall_of_fame_frac: float = Field(default=0.0, ge=0, le=1)
    """Probability that a match is against a frozen past member; 0: no hall of fame. Ours: not known from the paper."""
    hall_of_fame_size: int = Field(default=4, ge=1, le=10_000)
    """Past members kept of each role, each in its own adapter slot. Ours: as many as present ones."""


class ProposeConfig(Section):
    """How teachers propose tasks."""

    domains: tuple[str, ...] | dict[str, Annotated[float, Field(gt=0)]] = ("code",)
    """Domains of the tasks, by name; ``gym:FAMILY`` for a generator of Reasoning Gym (or ``gym:CATEGORY``, ``gym:*``);
    ``module:NAME`` for your own domain; ``file:PATH`` for your own tasks, with which the buffer begins. A table of
    shares (``{code = 0.6, maths = 0.4}``) divides each teacher's proposals, without changing their number; a file's
    share is of each student's tasks. Paper: code."""
    num_proposals: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Proposals per teacher and step, by kind of task: ``{NAME = 6}``. Ours: AZR has 64 of each, for one adapter."""
    num_of_each_kind: int = Field(default=8, ge=0)
    """Proposals per teacher and step of a kind that ``num_proposals`` does not name. Ours: as above."""
    num_per_prompt: int = Field(default=4, ge=1)
    """Proposals sampled from one prompt. Ours: each prompt is run once; more would show fewer references per step."""
    num_references: int = Field(default=6, ge=0)
    """Reference programs in a proposal prompt. AZR: 6."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of proposals; 0: ``solve.temperature``. Ours: varied tasks and right answers may need
    different temperatures."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest proposal, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest proposal prompt, in tokens; references that do not fit are left out. AZR: 6144."""
    buffer_capacity: int = Field(default=1024, ge=8)
    """Tasks kept as references; the oldest are dropped. Ours: AZR keeps the oldest, so later ones are not shown."""
    num_seed_proposals: int = Field(default=16, ge=0)
    """Proposals of each kind (except those about given tasks) by the untrained first teacher, which fill the buffer
    before step 1. Ours: step 1 needs more references than the identity program; AZR grows a seed set too."""
    num_check_proposals: int = Field(default=8, ge=0)
    """Proposals of each kind for the cold-start check before step 1; 0: no check. Ours: it shows in a minute, not after
    days, that a base writes nothing valid."""
    complete_at_last_input: bool = False
    """Cut a proposal off after the last input that its kind needs, before it is parsed or learned from. It applies to
    formats in which inputs have no end mark (a program with its inputs, in the compact one). Ours: without it, text
    after the last input costs nothing up to the token limit and invalidates the proposal beyond, so teachers drift into
    texts that are cut off."""
    references_over: Literal["tasks", "cells"] = "tasks"
    """References are drawn from the tasks of the buffer, with preference for new ones, or first evenly over its cells
    (behaviour class and size) and then in the same way. Ours: without cells, frequent tasks are shown and proposed more
    often, and programs shrink; quality-diversity searches draw over cells."""
    policy_rules: tuple[str, ...] = ()
    """Regular expressions; a proposal whose program, inputs or message match one is refused. Ours: the user decides."""
    policy_hook: str = ""
    """``module:function`` that gets every proposal and returns the reason to refuse it, or None. Ours."""

    @property
    def domains_to_import(self) -> tuple[str, ...]:
        """The domains named as ``module:NAME``; importing them runs code that the config names."""
        return tuple(name for name in self.domains if ":" in name and not name.startswith((GYM_PREFIX, FILE_PREFIX)))

    @property
    def files(self) -> tuple[str, ...]:
        """The user's files of tasks (``file:PATH``), as paths or names on the hub."""
        return tuple(name.removeprefix(FILE_PREFIX) for name in self.domains if name.startswith(FILE_PREFIX))

    @property
    def anchor_frac(self) -> float:
        """The share of each student's tasks that comes from the files; 0 if domains have no shares."""
        shares = self.domains if isinstance(self.domains, dict) else {}
        return sum(share for name, share in shares.items() if name.startswith(FILE_PREFIX)) / sum(
            shares.values() or [1]
        )

    @model_validator(mode="after")
    def _some_domain(self) -> ProposeConfig:
        if len(self.files) == len(self.domains):
            raise ValueError("domains must name at least one domain for which teachers write tasks")
        return self

    @model_validator(mode="before")
    @classmethod
    def _numbers_by_kind(cls, data: Any) -> Any:
        """Read ``num_NAME``, the former field for the kind NAME; of two numbers the later one counts."""
        return by_kind(data, set(cls.model_fields)) if isinstance(data, dict) else data


class VerifyConfig(Section):
    """How untrusted programs are run."""

    num_workers: int = Field(default=2, ge=1, le=1_024)
    """Sandboxed processes at a time. Ours: the cores of a small machine."""
    accept_cpu_ms: int = Field(default=50, ge=1)
    """CPU time within which a proposed program must finish, in milliseconds; at most 10 for kinds whose answers run or
    imitate it. Ours: well below the kill limit, so that a valid program is not killed later."""
    kill_cpu_ms: int = Field(default=200, ge=1)
    """CPU time after which any program is killed, in milliseconds; programs that grade answers have less. Ours: longer
    computations make poor puzzles."""
    num_inputs: int = Field(default=10, ge=2)
    """Pairs of an induction task; the embedded base writes ten at most. AZR: 10."""
    refuse_constant: bool = False
    """Refuse a proposal with one input if its program accepts no variation of the input, or returns the same output for
    all. Ours: a program that ignores its input is always valid, and any input answers it."""
    allow_weak: bool = False
    """Run even without a system-call filter. Ours: a hostile program could do harm."""

    @property
    def num_shown(self) -> int:
        """Pairs of an induction task that the solver sees; the others stay hidden. AZR: half of ten."""
        return min(5, self.num_inputs - 1)

    @model_validator(mode="after")
    def _some_hidden(self) -> VerifyConfig:
        if self.accept_cpu_ms > self.kill_cpu_ms:
            raise ValueError("accept_cpu_ms must not be above kill_cpu_ms")
        return self


class SolveConfig(Section):
    """How students answer."""

    num_attempts: int = Field(default=8, ge=1)
    """Attempts per student and task: the sample of the solve rate and the training group. AZR: 8."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of attempts. AZR: 1."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest attempt, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest solving prompt, in tokens; a task that needs more is rejected. AZR: 6144."""
    max_rows: int = Field(default=512, ge=1)
    """Sequences decoded at a time. Ours: affects speed and memory only."""
