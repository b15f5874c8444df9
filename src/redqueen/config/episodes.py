"""Sections of the config: the run, its base and population, and how tasks are proposed, checked and solved."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from redqueen.files import by_kind


class Section(BaseModel):
    """What all sections share: unknown fields and numbers that are none are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _list_of_one(cls, value: object, info: ValidationInfo) -> object:
        """Read a plain word as a list of one, where only a list or a table is allowed; no truth value is a number."""
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
    """Stop after the step in which this many tokens were sampled in all; 0: never. Ours: two arms, equal totals."""
    max_seconds: float = Field(default=0.0, ge=0)
    """Stop after this many seconds of steps, not of evaluation; 0: never. Ours: two arms, equal time."""
    num_threads: int = Field(default=0, ge=0)
    """CPU threads for tensor work; 0: all cores. The result depends on it in the last bits. Ours."""
    num_lanes: int = Field(default=1, ge=1, le=64)
    """Parts into which sampling and learning are dealt out on a CPU, each on a thread of its own, with ``num_threads``
    (0: the cores divided by the lanes) and its share of ``solve.max_rows`` and ``learn.micro_batch_tokens``; a GPU has
    one. The result depends on it in the last bits. Ours: measured (bench/results/lanes.md)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the base runs; auto: CUDA when there is one. Ours: the same config runs on both."""
    checkpoint_every_steps: int = Field(default=10, ge=1)
    """Steps between checkpoints. Ours: one generation, what a crash may cost."""
    product: Literal["probe", "distilled", "merged", "none"] = "probe"
    """The one adapter that the run ends with: of the students and their mean in delta space the one that solves most of
    a probe of archived tasks; the same with a further candidate that is distilled from the right answers of all; always
    the mean; or none. Ours: a user wants one model, and the suite must not choose."""
    product_tasks: int = Field(default=256, ge=1)
    """Archived tasks of that probe. Ours: candidates are close to each other."""
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    """Where metrics are sent in addition to the journal, which holds everything; each is an extra of the same name.
    Ours."""


EMBEDDED = "embedded"
GYM_PREFIX, FILE_PREFIX = "gym:", "file:"


class ModelConfig(Section):
    """The frozen base."""

    base: str = EMBEDDED
    """``embedded``, a model folder, a GGUF file, or a name on the hub. Ours: runs without a download; the paper
    has Qwen2.5-Coder-7B, as in ``configs/paper-7b.toml``."""
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """Precision of the base's products; auto: bf16 on a GPU and on a processor that multiplies it faster, else fp32,
    and a run keeps what it began with. Ours: whichever is fast (bench/results/precision.md); adapters and moments are
    fp32, which keeps small steps."""
    prompt_format: Literal["auto", "compact", "compact-forced", "chat", "plain", "r1", "fewshot"] = "auto"
    """``compact``: the notation of the embedded base (``compact-forced``, a control, begins each thought).
    ``chat``: plain English. ``plain``: the same without think and answer marks. ``r1``: chat for base models, in AZR's
    template. ``fewshot``: examples to continue. ``auto``: what suits the base, and a new run says why. Ours."""


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
    """PEFT folders of the same base that the members begin with, in turn; their rank is at most ``lora_rank``. Empty:
    fresh adapters, which change nothing. Ours: a population can go on from what was trained elsewhere."""

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
        """Members that live at a time."""
        return 1 if self.single else self.num_teachers + self.num_students


class MatchConfig(Section):
    """Matchmaking and the Gaussian skill ratings."""

    rule: Literal["pfsp", "uniform", "all_pairs"] = "pfsp"
    """How pairs are chosen. Paper: prioritised fictitious self-play. ``uniform`` is its control, ``all_pairs`` fills
    the payoff matrix; both are ours."""
    hall_of_fame_frac: float = Field(default=0.0, ge=0, le=1)
    """Chance that a match is against a frozen past member; 0: no hall of fame. Ours: no reader names one."""
    hall_of_fame_size: int = Field(default=4, ge=1, le=10_000)
    """Past members of each role that are kept, each in an adapter slot of its own. Ours: as many as live."""


class ProposeConfig(Section):
    """What teachers are asked for."""

    domains: tuple[str, ...] | dict[str, Annotated[float, Field(gt=0)]] = ("code",)
    """Domains whose kinds of task are asked for, by name; ``gym:FAMILY`` for a generator of Reasoning Gym (or
    ``gym:CATEGORY``, ``gym:*``); ``module:NAME`` for one of your own; ``file:PATH`` for tasks of your own, which the
    buffer begins with. With shares (``{code = 0.6, maths = 0.4}``) of each teacher's proposals, whose number stays; a
    file's share is of each student's tasks. Paper: code."""
    num_proposals: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Proposals of each teacher a step, by kind of task: ``{NAME = 6}``. Ours: AZR has 64 of each, for one adapter."""
    num_of_each_kind: int = Field(default=8, ge=0)
    """Proposals of each teacher a step of a kind that ``num_proposals`` does not name. Ours: as above."""
    num_per_prompt: int = Field(default=4, ge=1)
    """Proposals drawn from one prompt. Ours: it is read once; more would narrow what references a step shows."""
    num_references: int = Field(default=6, ge=0)
    """Reference programs in a proposal prompt. AZR: 6."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of proposals; 0: that of ``solve.temperature``. Ours: what varies tasks most and what solves
    most need not be the same."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest proposal, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest proposal prompt, in tokens; references that do not fit are left out. AZR: 6144."""
    buffer_capacity: int = Field(default=1024, ge=8)
    """Tasks remembered for references; the oldest leave. Ours: AZR keeps the oldest, so later ones are not shown."""
    num_seed_proposals: int = Field(default=16, ge=0)
    """Proposals of each kind (but those about given tasks) by the first teacher before it learns, which grow the seed
    buffer before step 1. Ours: step 1 needs something to refer to besides the identity program; AZR grows a set too."""
    num_check_proposals: int = Field(default=8, ge=0)
    """Proposals of each kind by which the cold-start check decides, before step 1, whether the base can begin; 0: no
    check. Ours: a base that writes nothing valid is found out in a minute and not after days."""
    complete_at_last_input: bool = False
    """A proposal is whole once it holds all inputs that its kind needs; what follows is cut off before it is read or
    learned from. It acts where a format gives inputs no end (a program with its inputs, in the compact one). Ours:
    without it not stopping is free up to the token limit and fatal beyond, so teachers drift into texts that are cut
    off."""
    references_over: Literal["tasks", "cells"] = "tasks"
    """What references are drawn evenly over: the tasks of the buffer, newer ones rather, or its cells (tasks of one
    behaviour class and size) and within a cell so. Ours: over tasks, what is posed most is shown most and posed more,
    and programs shrink; quality-diversity searches draw over cells."""
    policy_rules: tuple[str, ...] = ()
    """Regular expressions; a proposal whose program, inputs or message match one is refused. Ours: the user decides."""
    policy_hook: str = ""
    """``module:function`` that is asked about every proposal and returns why it is refused, or None. Ours."""

    @property
    def domains_to_import(self) -> tuple[str, ...]:
        """The domains that a name such as ``module:NAME`` would import: that runs code which the config names."""
        return tuple(name for name in self.domains if ":" in name and not name.startswith((GYM_PREFIX, FILE_PREFIX)))

    @property
    def files(self) -> tuple[str, ...]:
        """The files of tasks of the user's own (``file:PATH``), as paths or names on the hub."""
        return tuple(name.removeprefix(FILE_PREFIX) for name in self.domains if name.startswith(FILE_PREFIX))

    @property
    def anchor_frac(self) -> float:
        """The share of each student's tasks that come from the files; 0 where domains have no shares."""
        shares = self.domains if isinstance(self.domains, dict) else {}
        return sum(share for name, share in shares.items() if name.startswith(FILE_PREFIX)) / sum(
            shares.values() or [1]
        )

    @model_validator(mode="after")
    def _some_domain(self) -> ProposeConfig:
        if len(self.files) == len(self.domains):
            raise ValueError("domains must name at least one domain that teachers write tasks of")
        return self

    @model_validator(mode="before")
    @classmethod
    def _numbers_by_kind(cls, data: Any) -> Any:
        """Read ``num_NAME`` for a kind called NAME, as configs once had it; of two numbers the later one counts."""
        return by_kind(data, set(cls.model_fields)) if isinstance(data, dict) else data


class VerifyConfig(Section):
    """How untrusted programs are run."""

    num_workers: int = Field(default=2, ge=1, le=1_024)
    """Sandboxed processes at a time. Ours: the cores of a small machine."""
    accept_cpu_ms: int = Field(default=50, ge=1)
    """CPU time within which a proposed program must finish, in milliseconds; where an answer runs or imitates it, 10 at
    most. Ours: well under the kill limit, so that no program is valid once and killed the next time."""
    kill_cpu_ms: int = Field(default=200, ge=1)
    """CPU time after which any program is killed, in milliseconds; one that grades answers has less. Ours: longer
    computations make poor puzzles."""
    num_inputs: int = Field(default=10, ge=2)
    """Pairs of an induction task; the embedded base writes ten at most. AZR: 10."""
    refuse_constant: bool = False
    """Refuse a proposal with one input whose program takes no other, or gives the same output for all others made from
    it. Ours: a program that ignores its input is always valid, and any input answers it."""
    allow_weak: bool = False
    """Run even where no system-call filter can be had. Ours: a hostile program could do harm."""

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
    """Attempts at each task: the solve rate's sample and the training group. AZR: 8."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of attempts. AZR: 1."""
    max_new_tokens: int = Field(default=8096, ge=1)
    """Longest attempt, in tokens; at most half of the base's positions. AZR: 8096."""
    max_prompt_tokens: int = Field(default=6144, ge=16)
    """Longest solving prompt, in tokens; a task that needs more is rejected. AZR: 6144."""
    max_rows: int = Field(default=512, ge=1)
    """Sequences decoded at a time. Ours: affects speed and memory only."""
