"""The hall of fame: frozen past members, kept as opponents, so that what was once beaten stays beaten.

An entry is a copy: the member itself goes on learning. When a role's hall is full the entry goes whose neighbours in
time are closest, so that the hall always spans the whole run; the oldest and the newest stay. Ground: Rosin and Belew
(1997), "New methods for competitive coevolution"; the thinning is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from redqueen.errors import UserError
from redqueen.nouns import Individual, Rating, Role
from redqueen.population.genotype import Genotype, clone


@dataclass(frozen=True)
class Entry:
    """A past member as it was at ``admitted_step``. Its id is the member's with the step: ``S2@40``."""

    individual: Individual
    genotype: Genotype
    admitted_step: int


@dataclass(frozen=True)
class HallOfFame:
    """Entries in order of admission; at most ``capacity`` >= 1 of each role."""

    capacity: int
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError when nobody would fit."""
        if self.capacity < 1:
            raise ValueError("a hall of fame needs room for at least one member of each role")


def admit(hall: HallOfFame, individual: Individual, genotype: Genotype, step: int) -> HallOfFame:
    """The hall with a copy of ``individual`` as it is now, thinned to its capacity; twice in one step counts once."""
    name = f"{individual.id}@{step}"
    if any(entry.individual.id == name for entry in hall.entries):
        return hall
    entry = Entry(replace(individual, id=name), clone(genotype), step)
    entries = (*hall.entries, entry)
    of_role = [e for e in entries if e.individual.role == individual.role]
    if len(of_role) > hall.capacity:
        gone = _redundant([e.admitted_step for e in of_role])
        entries = tuple(e for e in entries if e is not of_role[gone])
    return HallOfFame(hall.capacity, entries)


def opponents(hall: HallOfFame, role: Role) -> list[Individual]:
    """The past members of a role, oldest first, with the ratings they had."""
    return [entry.individual for entry in hall.entries if entry.individual.role == role]


def genotype_of(hall: HallOfFame, name: str) -> Genotype:
    """The frozen factors of one entry by its id. Raises KeyError when it is not there."""
    for entry in hall.entries:
        if entry.individual.id == name:
            return entry.genotype
    raise KeyError(name)


def to_plain(hall: HallOfFame) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Plain records (exact in JSON) and named tensors (for safetensors); ``from_plain`` reads both back."""
    records, tensors = [], {}
    for entry in hall.entries:
        record = {"individual": asdict(entry.individual), "admitted_step": entry.admitted_step}
        records.append({**record, "alpha": entry.genotype.alpha, "modules": list(entry.genotype.names)})
        for module, (a, b) in entry.genotype.factors.items():
            tensors[_key(entry.individual.id, module, "A")] = a
            tensors[_key(entry.individual.id, module, "B")] = b
    return {"capacity": hall.capacity, "entries": records}, tensors


def from_plain(plain: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> HallOfFame:
    """The hall that ``to_plain`` took apart. Raises UserError when a tensor is missing from the checkpoint."""
    entries = []
    for record in plain["entries"]:
        fields = dict(record["individual"])
        fields |= {"rating": Rating(**fields["rating"]), "parents": tuple(fields["parents"])}
        name = fields["id"]
        try:
            factors = {m: (tensors[_key(name, m, "A")], tensors[_key(name, m, "B")]) for m in record["modules"]}
        except KeyError as error:
            raise UserError(f"checkpoint: tensor {error} of the hall of fame is missing; take an older one") from error
        entries.append(Entry(Individual(**fields), Genotype(factors, record["alpha"]), record["admitted_step"]))
    return HallOfFame(plain["capacity"], tuple(entries))


def _key(name: str, module: str, part: str) -> str:
    return f"hall/{name}/{module}/{part}"


def _redundant(steps: Sequence[int]) -> int:
    """The place whose neighbours are closest in time, the first and the last excepted; of two, the first."""
    if len(steps) == 2:
        return 0
    return min(range(1, len(steps) - 1), key=lambda i: steps[i + 1] - steps[i - 1])
