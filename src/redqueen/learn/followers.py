"""What follows a member in slots of its own: a reference that it is held to, an average that is judged in its place.

A **reference** is a frozen copy, renewed from time to time, from which the divergence in the loss is measured. An
**average** moves after each step of its member: average <- d average + (1 - d) member, for A and for B each. The mean
of the factors is that of their products only to first order, and another writing of the member would give another mean;
along one member's own path both factors move by small steps from one start, so the difference is of second order.
Both begin as the member itself, also for a newborn. Ground: ProRL (resets), Polyak averaging; the slots are ours.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from redqueen.config import LearnConfig
from redqueen.config.slots import Slots
from redqueen.nouns import BASE_SLOT
from redqueen.policy.bank import AdapterBank
from redqueen.policy.protocols import AdapterStore


class Followers:
    """The references and averages of a bank's members; without ``slots`` there are none."""

    def __init__(self, bank: AdapterBank, slots: Slots | None) -> None:
        self.bank = bank
        self.references = dict(zip(slots.members, slots.references, strict=False)) if slots else {}
        self.averages = slots.judged if slots else {}
        for slot in slots.members if slots else ():
            self.restart(slot)

    def reference(self, slot: int) -> int:
        """Return the slot that a member's divergence is measured from: its reference's, or the base's."""
        return self.references.get(slot, BASE_SLOT)

    def restart(self, slot: int) -> None:
        """Let what follows ``slot`` begin as the member that is there now."""
        for followers in (self.references, self.averages):
            if slot in followers:
                self.bank.copy(slot, followers[slot])

    @torch.no_grad()
    def average(self, stepped: Iterable[int], decay_frac: float) -> None:
        """Move the averages of the members that were stepped."""
        for slot in stepped:
            if slot in self.averages:
                rows = (self.bank.flat[row] for row in (self.averages[slot], slot))
                average, member = (row.to(self.bank.base.device) for row in rows)
                self.bank.flat[self.averages[slot]].copy_(average.lerp_(member, 1.0 - decay_frac))


def renew_references(store: AdapterStore, slots: Slots, step: int, config: LearnConfig) -> bool:
    """Every ``reference_every_steps`` steps (0: never) make each reference its member as it is now; say whether.

    With ``reference_resets_moments`` the optimiser begins anew too, as in ProRL.
    """
    if not config.reference_every_steps or step % config.reference_every_steps:
        return False
    for slot, reference in zip(slots.members, slots.references, strict=False):
        store.copy(slot, reference)
        if config.reference_resets_moments:
            store.forget(slot)
    return True
