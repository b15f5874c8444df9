"""The owner of the members' adapters in this process: the torch bank with the moments of the torch learner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from redqueen.files import making_folder
from redqueen.learn.torch_learner import TorchLearner
from redqueen.policy.bank import AdapterBank
from redqueen.population.genotype import Genotype
from redqueen.population.peft import plain_config, write_adapter

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
        if moments_from is None:
            self.learner.reset(slot)
        else:
            self.learner.inherit(slot, moments_from)

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
        digest = hashlib.sha256(self.bank.flat[slot].cpu().numpy().tobytes()).hexdigest()[:16]
        published = folder / f"slot-{slot}-{digest}"
        if not published.is_dir():
            genotype, base_name = self.genotype(slot), self.bank.base.model.name_or_path or ""
            with making_folder(published) as aside:
                write_adapter(aside, plain_config(genotype, base_name, self.bank.shortest_targets()), genotype)
        return published

    def state_dict(self) -> dict[str, Tensor]:
        """Return all factors and moments as named tensors."""
        moments = self.learner.state_dict()
        return {FACTORS: self.bank.flat} | {f"{MOMENTS}{name}": tensor for name, tensor in moments.items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` returned."""
        self.bank.load_all(tensors[FACTORS])
        self.learner.load_state({k.removeprefix(MOMENTS): v for k, v in tensors.items() if k.startswith(MOMENTS)})
