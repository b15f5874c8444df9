"""The records that flow through one step: matches, proposals, verdicts, answers and updates.

Everything here is a frozen dataclass of plain values (no tensors, no handles), so a record can be logged,
compared and stored as it is. Stages take records and return records; no later stage changes an earlier record.
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
    """One teacher paired with one student for one step. ``expected_win_frac`` is the student's, from the ratings."""

    teacher: str
    student: str
    expected_win_frac: float


@dataclass(frozen=True)
class Candidate:
    """What a teacher wrote, not verified yet.

    ``kind`` is the name of a kind of task, whose domain defines the other fields: see ``Task``. ``error`` is set
    when the text could not be parsed, and then they may be empty. ``text`` is the raw model text (untrusted).
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
    """A candidate that did not become a task, with one reason (a verdict name, ``unparsable`` or ``duplicate``...)."""

    candidate: Candidate
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Task:
    """A candidate that was verified. The domain of its ``kind`` defines the fields, all of them texts.

    ``code`` is what the task is about, in the form that counts: a program, an equation, a lemma. ``message`` is what a
    student gets in words. ``inputs`` are what belongs to it, and ``outputs`` their truth, computed in checking and
    canonical: of a program its arguments and values; of an equation its solution. There are as many of each, one at
    least; an input is "" where nothing belongs to it. Where ``num_shown`` is not 0, the solver is shown that many pairs
    of input and output, and the rest are hidden. ``chance`` in [0, 1) is the share of guesses that would be right.
    ``signature`` is a digest of what a program gives for the inputs and for others like them, "" where that tells
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
    """How crowded the class of one task is, compared with earlier tasks; each measure lies in [0, 1].

    ``novelty``: 1 shared among the step's tasks of a new class, 0 for a known class. ``crowd_frac``: the
    class's share of all recent tasks, this step's included. ``size_hardness``: how much less than others of its kind
    recent tasks of this size were solved, and at most what this task was missed: hardness that size alone explains.
    """

    behaviour_class: str
    novelty: float
    crowd_frac: float
    size_hardness: float


@dataclass(frozen=True)
class Attempt:
    """One answer of one student to one task. ``answer`` is None when no answer could be read from ``text``.

    ``thought`` is the text between the think marks ("" when the student answered directly).
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
"""The slot of the bare base: a request to it is answered without any adapter."""


@dataclass(frozen=True)
class Request:
    """Ask the sampler for ``num_samples`` continuations of one prompt by one member (its ``slot``, or ``BASE_SLOT``).

    ``rng_seed`` fixes the samples of this request whatever else is in the batch. ``temperature`` is a factor on the
    sampler's own. A sample ends, finished, with the ``stop_count``-th ``stop_token`` in it (0: no such stop).
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

    ``tokens`` includes the end token when ``finished``; ``logprobs`` (nats, one a token) are those of the sampling
    policy at its temperature; ``entropy`` is the mean entropy of the next-token distribution in nats a token.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropy: float
    finished: bool


@dataclass(frozen=True)
class Rollout:
    """A group for the learner: one prompt of one member with its completions and one scalar advantage for each."""

    slot: int
    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]
    advantages: tuple[float, ...]


@dataclass(frozen=True)
class Tuning:
    """What one member is stepped with: learning rate, factor on its temperature, and number of mini-batches.

    ``supervised``: its completions are text of any origin to be learned by cross-entropy, weighted by the advantage.
    """

    learning_rate: float
    temperature: float = 1.0
    supervised: bool = False
    num_updates: int = 1


@dataclass(frozen=True)
class Mismatch:
    """How far the engine that sampled is from the learner, over a member's tokens that were learned from.

    With d = log p - log q (p: the learner's probability of a token, q: that with which it was sampled): mean and
    largest |d| in nats; ``kl``, the mean of exp(d) - 1 - d, which estimates KL(q, p) in nats a token and is never below
    0; and the share of tokens whose weight p / q was cut at the cap.
    """

    mean_abs: float
    max_abs: float
    kl: float
    truncated_frac: float


@dataclass(frozen=True)
class UpdateStats:
    """What one update of one member did. ``grad_norm`` is before clipping; ``ok`` False: it was not finite.

    ``kl`` is the mean divergence from the reference in nats a token that was run (0 without a reference). ``stepped``
    False: there was no gradient, or it was not finite. ``mismatch``: where the samples came from another engine.
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
    """One replacement: the member that left, the child in its slot, its parents, the operator and its constants."""

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
    """What happened to a shard of the population: it was ``opened``, ``lost`` or ``moved``, where and why."""

    shard: int
    what: str
    node: str
    detail: str = ""
