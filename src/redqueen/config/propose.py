"""What teachers are asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from redqueen.config.section import Section
from redqueen.files import by_kind


class ProposeConfig(Section):
    """What teachers are asked for."""

    domains: tuple[str, ...] | dict[str, Annotated[float, Field(gt=0)]] = ("code",)
    """Domains whose kinds of task are asked for, by name, or ``module:NAME`` for one of your own; with shares
    (``{code = 0.6, maths = 0.4}``) of each teacher's proposals, whose number stays. Paper: code."""
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
    buffer_per_teacher: bool = False
    """Give the buffer ``buffer_capacity`` places for each teacher. Ours: otherwise four teachers turn it over four
    times as fast as one, and everybody is shown what was written last."""
    num_seed_proposals: int = Field(default=16, ge=0)
    """Proposals of each kind by the untrained base that grow the seed buffer before step 1. Ours: step 1 needs
    something to refer to beside the identity program; AZR grows a set too."""
    num_check_proposals: int = Field(default=8, ge=0)
    """Proposals of each kind by which the cold-start check tells, before step 1, whether the base can begin; 0: no
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
    reject_duplicates: bool = True
    """Refuse a task whose program (up to names) and inputs are in the buffer or were proposed this step. Ours: without
    it a teacher can repeat one program for ever."""
    class_decay_frac: float = Field(default=0.95, gt=0, le=1)
    """Share kept each step of the counts of what was posed (classes and sizes of tasks). Ours: teachers learn, so it
    remembers tens of steps."""
    policy_rules: tuple[str, ...] = ()
    """Regular expressions; a proposal whose program, inputs or message match one is refused. Ours: the user's say."""
    policy_hook: str = ""
    """``module:function`` that is asked about every proposal and returns why it is refused, or None. Ours."""

    @property
    def domains_to_import(self) -> tuple[str, ...]:
        """The domains that a name such as ``module:NAME`` would import: that runs code of whoever wrote the config."""
        return tuple(name for name in self.domains if ":" in name)

    @model_validator(mode="after")
    def _some_domain(self) -> ProposeConfig:
        if not self.domains:
            raise ValueError("domains must name at least one domain")
        return self

    @model_validator(mode="before")
    @classmethod
    def _numbers_by_kind(cls, data: Any) -> Any:
        """Read ``num_NAME`` for a kind called NAME, as configs once had it; of two numbers the later one counts."""
        return by_kind(data, set(cls.model_fields)) if isinstance(data, dict) else data
