"""Versions of adapters: each has a folder and a name of its own, so that no server can mix two of them up."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import torch
from torch import Tensor

from redqueen.errors import UserError
from redqueen.files import making_folder
from redqueen.nouns import BASE_SLOT
from redqueen.policy.bank import AdapterBank
from redqueen.policy.protocols import AdapterStore
from redqueen.population.genotype import Genotype
from redqueen.population.peft import plain_config, read_adapter, write_adapter


@dataclass(frozen=True)
class Version:
    """One version of an adapter: the name under which servers know it, and the folder that they read it from."""

    name: str
    folder: Path


class Versions:
    """Writes the members of ``bank`` below ``folder`` ("": a temporary one), which is removed in the end.

    Names begin with a word drawn for this session, so that nothing that a server keeps of an earlier one is met again.
    """

    def __init__(self, bank: AdapterBank, store: AdapterStore, folder: str) -> None:
        self.bank, self.store = bank, store
        self.session = f"redqueen-{token_hex(4)}"
        try:
            if folder:
                self.root = Path(folder).resolve() / self.session
                self.root.mkdir(parents=True)
            else:
                self.root = Path(tempfile.mkdtemp(prefix=f"{self.session}-"))
        except OSError as error:
            raise UserError(
                f"sampler.adapter_folder {folder!r}: no folder can be made there ({error.strerror}): name one that "
                "you may write to and the servers can read"
            ) from None

    def of(self, slot: int) -> Version:
        """Write a member as it is now, unless that is there already.

        The bare base is an adapter too, of zeros: in a batch, servers have been seen to give rows without an adapter
        those of a neighbour.
        """
        if slot == BASE_SLOT:
            return self.write("base", torch.zeros(self.bank.num_parameters))
        folder = self.store.publish(slot, self.root)
        return Version(f"{self.session}-{folder.name}", folder)

    def write(self, name: str, row: Tensor) -> Version:
        """Write the adapter whose factors are ``row`` (parameters,), as the bank holds them."""
        digest = hashlib.sha256(row.numpy().tobytes()).hexdigest()[:16]
        folder = self.root / f"{name}-{digest}"
        if not folder.is_dir():
            genotype = self._genotype(row)
            base_name = self.bank.base.model.name_or_path or ""
            with making_folder(folder) as aside:
                write_adapter(aside, plain_config(genotype, base_name, self.bank.shortest_targets()), genotype)
        return Version(f"{self.session}-{folder.name}", folder)

    def row(self, version: Version) -> Tensor:
        """Read the factors of a version (parameters,), fp32."""
        factors = read_adapter(version.folder).genotype.factors
        return torch.cat([part.reshape(-1).float() for site in self.bank.sites for part in factors[site.name]])

    def keep_only(self, used: Iterable[Version]) -> None:
        """Remove the folders of all other versions."""
        kept = {version.folder for version in used}
        for folder in self.root.iterdir():
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything that was written."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _genotype(self, row: Tensor) -> Genotype:
        rank = self.bank.rank
        factors = {
            s.name: (row[s.a_slice].view(rank, s.num_in), row[s.b_slice].view(s.num_out, rank)) for s in self.bank.sites
        }
        return Genotype(factors, self.bank.alpha)
