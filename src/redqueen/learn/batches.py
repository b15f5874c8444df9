"""From rollouts to micro-batches: each prompt is run once for all its completions.

A few-shot prompt is mostly examples that all prompts of its kind share: a member's prompts are adjacent, and their
common prefix is run once in a micro-batch. A member's groups form one stream of tokens, which is cut into short rows
of one member each (``TokenRows``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redqueen.adapters.routing import TokenRows
from redqueen.adapters.shared_prefixes import group_by_prefix
from redqueen.adapters.tree_attention import Run, TreePlan
from redqueen.records import Rollout


@dataclass(frozen=True)
class MemberData:
    """One member's rollouts of one step.

    ``num_tokens`` counts the tokens of all its completions, ``num_run`` those of completions with an advantage other
    than 0.
    """

    slot: int
    rollouts: tuple[Rollout, ...]
    num_tokens: int
    num_run: int

    @property
    def has_signal(self) -> bool:
        """Whether any completion has an advantage other than 0."""
        return self.num_run > 0


@dataclass(frozen=True)
class Branch:
    """One completion to learn from: its advantage, the weight of each token, and the sampler's log-probabilities."""

    tokens: tuple[int, ...]
    advantage: float
    weight: float
    logprobs: tuple[float, ...]


@dataclass(frozen=True)
class Piece:
    """A prompt with as many of its completions as fit into one micro-batch.

    ``num_shared``: length of the prefix that the member's neighbouring pieces may share; 0: none.
    """

    slot: int
    prompt: tuple[int, ...]
    branches: tuple[Branch, ...]
    num_shared: int = 0

    @property
    def shared(self) -> tuple[int, ...]:
        """The prefix that it may share."""
        return self.prompt[: self.num_shared]

    @property
    def num_tokens(self) -> int:
        """Tokens to run: the prompt once and every completion."""
        return len(self.prompt) + sum(len(b.tokens) for b in self.branches)

    def follows(self, other: Piece | None) -> bool:
        """Return whether ``other``, the piece before, is of the same member and has the same prefix."""
        return other is not None and other.slot == self.slot and self.num_shared > 0 and other.shared == self.shared


@dataclass(frozen=True)
class Batch:
    """One forward and backward pass: ``tokens``, ``positions`` (rows, length); ``owners``: the slot of each row.

    The other tensors have one entry for each of n completion tokens: the hidden state at ``source`` (an index into the
    flattened rows) predicts the token id ``target`` of the member ``slot``; ``weights`` are 1 / the member's tokens.
    """

    tokens: Tensor  # (rows, length) int64
    positions: Tensor  # (rows, length) int64
    tree: TreePlan
    owners: list[int]
    source: Tensor  # (n,) int64, in 0 .. rows * length - 1
    target: Tensor  # (n,) int64
    slot: Tensor  # (n,) int64
    advantages: Tensor  # (n,) fp32
    old_logprobs: Tensor  # (n,) fp32, nats
    weights: Tensor  # (n,) fp32

    def to(self, device: torch.device) -> Batch:
        """Return the batch with every tensor on ``device``."""
        return replace(self, **{name: part.to(device) for name, part in vars(self).items() if name != "owners"})


def by_member(rollouts: Sequence[Rollout]) -> list[MemberData]:
    """Gather rollouts by slot, ascending.

    Raises ValueError when a rollout does not have one advantage for each completion, or has an empty prompt.
    """
    found: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if len(rollout.advantages) != len(rollout.completions):
            raise ValueError("a rollout needs one advantage for each completion")
        if not rollout.prompt:
            raise ValueError("a rollout needs a prompt of at least one token")
        found.setdefault(rollout.slot, []).append(rollout)
    members = []
    for slot, own in sorted(found.items()):
        num_tokens = sum(len(c.tokens) for r in own for c in r.completions)
        num_run = sum(_tokens_to_run(rollout) for rollout in own)
        members.append(MemberData(slot, tuple(own), num_tokens, num_run))
    return members


def mini_batches(rollouts: Sequence[Rollout], num_updates: Mapping[int, int]) -> list[list[Rollout]]:
    """Distribute each member's rollouts over mini-batches, as many as ``num_updates`` has for its slot.

    They are dealt in turn: if a member has at least as many of a kind as mini-batches, each gets some of it.
    """
    parts: list[list[Rollout]] = [[] for _ in range(max(num_updates.values(), default=0))]
    seen = dict.fromkeys(num_updates, 0)
    for rollout in rollouts:
        parts[seen[rollout.slot] % num_updates[rollout.slot]].append(rollout)
        seen[rollout.slot] += 1
    return [part for part in parts if part]


def split_evenly(members: Sequence[MemberData], num_parts: int) -> list[list[MemberData]]:
    """Divide the members' rollouts, in order, into ``num_parts`` parts with about equally many tokens to run.

    A member that is divided keeps its total ``num_tokens``, over which its loss is the mean, in each part.
    """
    if num_parts == 1:
        return [list(members)]
    # Tokens to run of each rollout; neither prompt nor completions of a rollout without an advantage are run
    costs = [[run + len(r.prompt) if (run := _tokens_to_run(r)) else 0 for r in m.rollouts] for m in members]
    total, before = max(1, sum(sum(own) for own in costs)), 0
    parts: list[list[MemberData]] = [[] for _ in range(num_parts)]
    for member, own in zip(members, costs, strict=True):
        of_part: dict[int, list[Rollout]] = {}
        for rollout, cost in zip(member.rollouts, own, strict=True):
            middle = min(before + cost // 2, total - 1)  # a rollout goes to the part in which its middle token lies
            of_part.setdefault(middle * num_parts // total, []).append(rollout)
            before += cost
        for part, rollouts in of_part.items():
            num_run = sum(_tokens_to_run(rollout) for rollout in rollouts)
            parts[part].append(replace(member, rollouts=tuple(rollouts), num_run=num_run))
    return parts


def _tokens_to_run(rollout: Rollout) -> int:
    """Tokens of the completions with an advantage other than 0; NaN counts, so its member is reported as broken."""
    return sum(len(c.tokens) for a, c in zip(rollout.advantages, rollout.completions, strict=True) if a != 0.0)


def batches_of(
    members: Sequence[MemberData], micro_batch_tokens: int, pad_id: int, dtype: torch.dtype
) -> Iterator[Batch]:
    """Cut the members' rollouts into micro-batches of about ``micro_batch_tokens``, one member after the other.

    A prompt with one completion may exceed this. ``dtype`` is that of the model's attention.
    """
    waiting: list[Piece] = []
    size = 0
    for member in members:
        for piece in pieces_of(member, micro_batch_tokens):
            # Tokens that this micro-batch already runs for the previous piece
            known = piece.num_shared if waiting and piece.follows(waiting[-1]) else 0
            if waiting and size + piece.num_tokens - known > micro_batch_tokens:
                yield _lay_out(waiting, pad_id, dtype)
                waiting, size, known = [], 0, 0
            waiting.append(piece)
            size += piece.num_tokens - known
    if waiting:
        yield _lay_out(waiting, pad_id, dtype)


def pieces_of(member: MemberData, most_tokens: int) -> Iterator[Piece]:
    """Cut a member's groups into pieces of at most ``most_tokens``, repeating the prompt, by prefix.

    A completion with advantage 0 is left out (it still counts in the mean): its policy gradient is exactly zero, and
    the KL penalty applies only to tokens that are learned from. Completions without tokens are left out too.
    """
    # [(indices of rollouts, shared tokens)]
    groups = group_by_prefix([rollout.prompt for rollout in member.rollouts])
    for rollout, shared in ((member.rollouts[i], num) for group, num in groups for i in group):
        current: list[Branch] = []
        size = len(rollout.prompt)
        for completion, advantage in zip(rollout.completions, rollout.advantages, strict=True):
            if not completion.tokens or advantage == 0.0:
                continue
            if current and size + len(completion.tokens) > most_tokens:
                yield Piece(member.slot, rollout.prompt, tuple(current), shared)
                current, size = [], len(rollout.prompt)
            current.append(Branch(completion.tokens, advantage, 1.0 / member.num_tokens, completion.logprobs))
            size += len(completion.tokens)
        if current:
            yield Piece(member.slot, rollout.prompt, tuple(current), shared)


def _lay_out(pieces: Sequence[Piece], pad_id: int, dtype: torch.dtype) -> Batch:
    """Concatenate the pieces, each member's padded to whole rows, into one batch."""
    rows = TokenRows(pad_id)
    source: list[int] = []  # for each completion token, where the token before it lies
    branches: list[Branch] = []
    slots: list[int] = []
    shared: Run | None = None
    for i, piece in enumerate(pieces):
        if not piece.follows(pieces[i - 1] if i else None):
            shared = rows.add(piece.shared) if piece.num_shared else None
        prompt = rows.add(piece.prompt[piece.num_shared :], shared)
        for branch in piece.branches:
            run = rows.add(branch.tokens, prompt)
            # The last token of the prompt predicts the first of the completion, which predicts the second, and so on
            source += [prompt.start + prompt.length - 1, *range(run.start, run.start + run.length - 1)]
            branches.append(branch)
            slots += [piece.slot] * run.length
        if i + 1 == len(pieces) or pieces[i + 1].slot != piece.slot:
            rows.end_member(piece.slot)
    tokens, positions, tree = rows.laid_out(dtype)  # (rows, row length) each
    return Batch(
        tokens=tokens,
        positions=positions,
        tree=tree,
        owners=rows.owners,
        # The rest is flat: (n,), one entry for each completion token
        source=torch.tensor(source),
        target=torch.tensor([t for b in branches for t in b.tokens]),
        slot=torch.tensor(slots),
        advantages=torch.tensor([b.advantage for b in branches for _ in b.tokens], dtype=torch.float32),
        old_logprobs=torch.tensor([x for b in branches for x in b.logprobs], dtype=torch.float32),
        weights=torch.tensor([b.weight for b in branches for _ in b.tokens], dtype=torch.float32),
    )
