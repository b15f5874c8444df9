"""The owner of the members' adapters in this process: the torch bank with the moments of the torch learner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from redqueen.learn.torch_learner import TorchLearner
from redqueen.policy.bank import AdapterBank
from redqueen.population.genotype import Genotype
from redqueen.population.peft import publish_adapter

FACTORS, MOMENTS = "factors", "learner."
"""In ``state_dict``: the name of all members' factors (members, parameters), the prefix of the learner's tensors."""


class TorchStore:
    """Implements ``AdapterStore`` on a bank and the learner whose parameters share its memory."""

    def __init__(self, bank: AdapterBank, learner: TorchLearner) -> None:
        self.bank, self.learner = bank, learner

    def genotype(self, slot: int) -> Genotype:
        """Return a copy of a member's factors (fp32, on the CPU)."""
        return self.bank.genotype(slot)

    def load(self, slot: int, genotype: Genotype, moments_from: int | None = None) -> None:
        """Put a new member into ``slot``, with no moments or a copy of those of the member ``moments_from``."""
        self.bank.load(slot, genotype)
        self.learner.set_moments(slot, {} if moments_from is None else self.learner.moments(moments_from))

    def copy(self, slot: int, into: int) -> None:
        """Make ``into`` the same adapter as ``slot``, bit by bit, with no moments."""
        self.bank.copy(slot, into)
        self.learner.reset(into)

    def reset(self, slot: int, rng_seed: int) -> None:
        """Make ``slot`` a founder with no moments."""
        self.bank.reset(slot, rng_seed)
        self.learner.reset(slot)

    def forget(self, slot: int) -> None:
        """Drop a member's moments and step count; its factors stay."""
        self.learner.forget(slot)

    def publish(self, slot: int, folder: Path) -> Path:
        """Write a member as a PEFT adapter; its folder's name ends with a hash of its factors, so none is reused."""
        base_name = self.bank.base.model.name_or_path or ""
        return publish_adapter(folder, slot, self.genotype(slot), base_name, self.bank.shortest_targets())

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments as named tensors."""
        moments = self.learner.state_dict()
        return {FACTORS: self.bank.flat} | {f"{MOMENTS}{name}": tensor for name, tensor in moments.items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned."""
        self.bank.load_all(tensors[FACTORS])
        self.learner.load_state({k.removeprefix(MOMENTS): v for k, v in tensors.items() if k.startswith(MOMENTS)})
