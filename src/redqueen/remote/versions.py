"""Versions of adapters: each has its own folder and name, so that no server can confuse two of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from secrets import token_hex

import torch
from torch import Tensor

from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.genotype import Genotype
from redqueen.adapters.peft import publish_adapter, read_adapter
from redqueen.files import naming_remedy
from redqueen.records import BASE_SLOT

Version = Path
"""The folder from which servers read one version of an adapter."""


def name_of(version: Version) -> str:
    """Return the name under which servers know a version."""
    return f"{version.parent.name}-{version.name}"


class Versions:
    """Writes the members of ``bank`` below ``folder`` ("": the system's temporary folder), and removes them at the end.

    Names begin with a random word of this session, so that no server confuses them with those of an earlier one.
    """

    def __init__(self, bank: AdapterBank, folder: str) -> None:
        self.bank = bank
        self.root = Path(folder or tempfile.gettempdir()).resolve() / f"redqueen-{token_hex(4)}"
        remedy = "name one that you may write to and the servers can read"
        with naming_remedy(f"sampler.adapter_folder {folder!r}: no folder can be made there", remedy):
            self.root.mkdir(mode=0o777 if folder else 0o700, parents=True)

    def of(self, slot: int) -> Version:
        """Write the current version of a member, unless it exists.

        The base model is written as an adapter of zeros: in a batch with adapters, some servers have applied a
        neighbour's adapter to rows without one.
        """
        if slot == BASE_SLOT:
            return self.write("base", torch.zeros(self.bank.num_parameters))
        return self.write(f"slot-{slot}", self.bank.flat[slot].detach().cpu())

    def write(self, name: str, row: Tensor) -> Version:
        """Write the adapter with the factors ``row`` (parameters,), in the bank's order."""
        bank = self.bank
        factors = {
            site.name: (row[site.a_slice].view(bank.rank, -1), row[site.b_slice].view(-1, bank.rank))
            for site in bank.sites
        }
        base_name = bank.base.model.name_or_path or ""
        return publish_adapter(self.root, name, Genotype(factors, bank.alpha), base_name, bank.shortest_targets())

    def row(self, version: Version) -> Tensor:
        """Read the factors of a version (parameters,), fp32."""
        factors = read_adapter(version).genotype.factors
        return torch.cat([part.reshape(-1).float() for site in self.bank.sites for part in factors[site.name]])

    def keep_only(self, used: Collection[Version]) -> None:
        """Remove the folders of all other versions."""
        for folder in set(self.root.iterdir()).difference(used):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything that was written."""
        shutil.rmtree(self.root, ignore_errors=True)
