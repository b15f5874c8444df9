"""The records that pass between the phases of a step: matches, proposals, verdicts, answers and updates.

All are frozen dataclasses of plain values (no tensors, no handles), so they can be logged, compared and stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from redqueen_sandbox.records import Grade as Grade

Role = Literal["teacher", "student", "both"]
"""``both`` is the single-agent baseline: one adapter that proposes and solves."""


@dataclass(frozen=True)
class Rating:
    """A Gaussian skill estimate. ``mu`` and ``sigma`` are in rating points (standard start: 25 and 25/3)."""

    mu: float
    sigma: float


@dataclass(frozen=True)
class Genes:
    """Genes of a member: factors on settings of the config, 1 where a gene is not enabled."""

    learning_rate: float = 1.0
    """A factor on ``learn.learning_rate``, not a rate."""
    temperature: float = 1.0
    """A factor on the sampling temperatures."""


@dataclass(frozen=True)
class Individual:
    """One member of the population: a LoRA adapter with a role, a slot in the bank, a rating and a history.

    ``id`` is unique within a run (``T2`` for a founder, ``T2.17`` for the individual born into its slot at
    step 17); ``slot`` is its row in the adapter bank, which a child takes over from the one it replaces.
    """

    id: str
    role: Role
    slot: int
    rating: Rating
    born_step: int = 0
    parents: tuple[str, ...] = ()
    operator: str = "founder"
    genes: Genes = Genes()


@dataclass(frozen=True)
class Match:
    """One teacher paired with one student for one step. ``expected_win_frac``: the student's chance by the ratings."""

    teacher: str
    student: str
    expected_win_frac: float


@dataclass(frozen=True)
class Candidate:
    """A teacher's proposal before verification.

    ``kind`` is the name of a kind of task, whose domain defines the other fields: see ``Task``. If the text could not
    be parsed, ``error`` is set and they may be empty. ``text`` is the raw model text (untrusted).
    """

    id: str
    teacher: str
    student: str
    kind: str
    text: str
    code: str = ""
    inputs: tuple[str, ...] = ()
    message: str = ""
    error: str = ""


@dataclass(frozen=True)
class Rejection:
    """A candidate that did not become a task, with one reason (a verdict, ``unparsable``, ``duplicate``...)."""

    candidate: Candidate
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Task:
    """A verified candidate. The domain of its ``kind`` defines the meaning of the text fields.

    ``code``: the formal content: a program, an equation, a lemma. ``message``: the student's question in words.
    ``inputs`` and ``outputs``: pairs, at least one, such as a program's arguments and return values; checking computes
    the canonical outputs, and an input is "" if the kind has none (an equation and its solution). If ``num_shown`` is
    not 0, the solver sees that many pairs, and the others are hidden. ``chance`` in [0, 1): the probability that a
    guess is right. ``signature``: a digest of a program's outputs for the inputs and similar ones; "" if they say
    little.
    """

    id: str
    teacher: str
    student: str
    kind: str
    code: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""
    num_shown: int = 0
    protection: str = ""
    chance: float = 0.0
    signature: str = ""


@dataclass(frozen=True)
class Crowding:
    """How one task's class compares with recent tasks; each measure is in [0, 1].

    ``novelty``: 1 divided by the number of the step's tasks in a new class, 0 for a known class. ``crowd_frac``: the
    class's share of all recent tasks, including this step's. ``size_hardness``, hardness that size alone explains: how
    much lower the solve rate of recent tasks of this size is than that of their kind, at most this task's failure rate.
    """

    behaviour_class: str
    novelty: float
    crowd_frac: float
    size_hardness: float


@dataclass(frozen=True)
class Attempt:
    """One student's attempt at one task. ``answer`` is None when no answer could be read from ``text``.

    ``thought`` is the text between the think marks ("" if there is none).
    """

    task_id: str
    student: str
    text: str
    answer: str | None
    thought: str = ""
    num_tokens: int = 0


@dataclass(frozen=True)
class Outcome:
    """An attempt together with its grade."""

    attempt: Attempt
    grade: Grade


BASE_SLOT = -1
"""The slot of the bare base: a request to it is sampled without an adapter."""


@dataclass(frozen=True)
class Request:
    """A request for ``num_samples`` continuations of one prompt by one member (its ``slot``, or ``BASE_SLOT``).

    ``rng_seed`` determines the samples, whatever else is in the batch. ``temperature`` multiplies the sampler's own. A
    sample ends, as finished, with its ``stop_count``-th ``stop_token`` (0: no such stop).
    """

    slot: int
    prompt: tuple[int, ...]
    num_samples: int
    rng_seed: int
    temperature: float = 1.0
    stop_token: int = -1
    stop_count: int = 0


@dataclass(frozen=True)
class Completion:
    """One sampled continuation.

    ``tokens`` includes the end token when ``finished``; ``logprobs`` (nats, one per token) are those of the sampling
    policy at its temperature; ``entropy`` is the mean entropy of the next-token distribution in nats per token.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropy: float
    finished: bool


@dataclass(frozen=True)
class Rollout:
    """A group for the learner: one prompt of one member, its completions, and an advantage for each of them."""

    slot: int
    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]
    advantages: tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """Settings of one member's update: learning rate, temperature factor, and number of mini-batches.

    ``supervised``: learn the completions, which may be any text, by cross-entropy weighted with the advantage.
    """

    learning_rate: float
    temperature: float = 1.0
    supervised: bool = False
    num_updates: int = 1


@dataclass(frozen=True)
class Mismatch:
    """The difference between sampling engine and learner over a member's tokens that were learned from.

    With d = log p - log q (p: the learner's probability of a token, q: the sampler's): mean and largest |d| in nats;
    ``kl``, the mean of exp(d) - 1 - d >= 0, which estimates KL(q, p) in nats per token; and the share of tokens whose
    weight p / q was truncated.
    """

    mean_abs: float
    max_abs: float
    kl: float
    truncated_frac: float


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of one member's update. ``grad_norm`` is before clipping; ``ok`` is False if it was not finite.

    ``kl``: mean divergence from the reference in nats per token that was run (0 without a reference). ``stepped`` is
    False if there was no gradient or it was not finite. ``mismatch``: None unless another engine sampled.
    """

    slot: int
    loss: float
    grad_norm: float
    clip_frac: float
    num_tokens: int
    ok: bool = True
    kl: float = 0.0
    stepped: bool = True
    mismatch: Mismatch | None = None


@dataclass(frozen=True)
class Birth:
    """One replacement: the replaced member, the child in its slot, its parents, the operator and its constants."""

    step: int
    child: str
    replaced: str
    parents: tuple[str, ...]
    operator: str
    constants: dict[str, float] = field(default_factory=dict)
    rng_seed: int = 0
    relative_change: float = 0.0
    layer_changes: dict[str, float] = field(default_factory=dict)
    """The relative change of each adapted module, by its name."""


@dataclass(frozen=True)
class ShardEvent:
    """An event of a shard of the population: it was ``opened``, ``lost`` or ``moved``, where and why."""

    shard: int
    what: str
    node: str
    detail: str = ""
