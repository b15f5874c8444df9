"""Operators and fitness of the user's own, and adapters evolved without a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_adapters import adapter, dense

import redqueen
from redqueen.adapters.peft import plain_config, read_adapter, write_adapter
from redqueen.config import EvolveConfig
from redqueen.errors import UserError
from redqueen.evolve.operators import find
from redqueen.evolve.selection import Evidence, internal_fitness
from redqueen.match import STANDARD
from redqueen.records import Individual

OWN = """
from redqueen.adapters.genotype import Genotype
from redqueen.evolve.crossover import NoConstants
from redqueen.evolve.operators import Operator
from redqueen.evolve.variation import Variation


def halve(breeding, constants):
    [parent] = breeding.parents
    return Variation(Genotype({name: (a, b / 2) for name, (a, b) in parent.factors.items()}, parent.alpha), {})


HALF = Operator("half", "half of the parent", "mutation", 1, "dW / 2", "mine", halve, NoConstants())
THREE = Operator("three", "of three parents", "crossover", 3, "dW / 2", "mine", halve, NoConstants())


def youngest(member, evidence):
    return float(member.born_step)


def oldest(member, evidence):
    return -float(member.born_step)


def nothing(member, evidence):
    return float("nan")
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_operators.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "my_operators", raising=False)


def saved(folder: Path, seed: int, rank: int = 4) -> Path:
    genotype = adapter(seed, rank)
    write_adapter(folder, plain_config(genotype, "base", ["q_proj", "up_proj"]), genotype)
    return folder


def norm_of(folder: Path) -> float:
    """Minus the norm of the adapter's dW: half of an adapter is better."""
    genotype = read_adapter(folder).genotype
    return -sum(float(torch.linalg.norm(dense(genotype, name))) for name in genotype.factors)


def distance(folder: Path) -> float:
    """Minus the distance of the adapter's dW from one target matrix."""
    genotype, target = read_adapter(folder).genotype, adapter(99)
    return -sum(float(torch.linalg.norm(dense(genotype, n) - dense(target, n))) for n in target.factors)


def test_an_operator_of_the_users_own_breeds_and_an_unknown_one_is_refused_with_the_remedy(tmp_path: Path) -> None:
    parent = saved(tmp_path / "a", 1)
    told = redqueen.breed("my_operators:HALF", [parent], tmp_path / "child")
    assert told["relative_change"]["overall"] == pytest.approx(0.5)
    for name, reason in {"OWL": "cannot be imported", "youngest": "is a function", "THREE": "takes 3 parents"}.items():
        with pytest.raises(UserError, match=reason):
            find(f"my_operators:{name}")
    with pytest.raises(ValueError, match="module:NAME"):
        EvolveConfig(operators=("half",))


def test_a_config_with_own_operators_or_fitness_says_what_it_would_import() -> None:
    config = EvolveConfig(operators=("M1", "my_operators:HALF"), fitness="my_operators:youngest")
    assert config.imported == ("my_operators:HALF", "my_operators:youngest")
    assert EvolveConfig().imported == ()
    with pytest.raises(ValueError, match="fitness"):
        EvolveConfig(fitness="best")


def test_a_fitness_of_the_users_own_is_asked_for_each_member_and_must_be_finite() -> None:
    members = [Individual(f"S{at}", "student", at, STANDARD.newcomer(), born_step=at) for at in range(2)]
    config = EvolveConfig(fitness="my_operators:youngest")
    assert internal_fitness(members, Evidence(), 3, config) == {"S0": 0.0, "S1": 1.0}
    kept = EvolveConfig(fitness="my_operators:oldest", protected_steps=20)
    assert internal_fitness(members, Evidence(), 30, kept) == {"S0": 0.0, "S1": -1.0}
    young = [members[0], replace(members[1], born_step=30)]
    assert internal_fitness(young, Evidence(), 31, kept) == {"S0": 0.0, "S1": 0.0}
    with pytest.raises(UserError, match="returns nan for S0"):
        internal_fitness(members, Evidence(), 3, EvolveConfig(fitness="my_operators:nothing"))


def test_evolve_adapters_improves_a_toy_fitness_and_leaves_the_given_adapters_alone(tmp_path: Path) -> None:
    given = [saved(tmp_path / name, seed) for seed, name in enumerate("abcd")]
    before = [path.read_bytes() for folder in given for path in sorted(folder.iterdir())]
    survivors = redqueen.evolve_adapters(given, distance, tmp_path / "out", generations=6, seed=1)
    best = max(map(distance, given))
    assert survivors[0]["fitness"] > best and len(survivors) == 4
    assert [one["fitness"] for one in survivors] == sorted((one["fitness"] for one in survivors), reverse=True)
    assert survivors[0]["fitness"] == distance(Path(survivors[0]["folder"])) and survivors[0]["parents"]
    assert before == [path.read_bytes() for folder in given for path in sorted(folder.iterdir())]
    kept = {Path(one["folder"]) for one in survivors if one["generation"]}
    assert set((tmp_path / "out").iterdir()) == kept


def test_evolve_adapters_repeats_with_its_seed_and_refuses_what_does_not_fit(tmp_path: Path) -> None:
    given = [saved(tmp_path / name, seed) for seed, name in enumerate("ab")]
    runs = [redqueen.evolve_adapters(given, distance, tmp_path / out, generations=2, seed=3) for out in ("x", "y")]
    assert [one["fitness"] for one in runs[0]] == [one["fitness"] for one in runs[1]]
    own = redqueen.evolve_adapters(given, norm_of, tmp_path / "own", generations=1, operators=["my_operators:HALF"])
    assert [one["operator"] for one in own] == ["my_operators:HALF"] * 2, "as `breed` names it"
    with pytest.raises(UserError, match="exists already"):
        redqueen.evolve_adapters(given, distance, tmp_path / "x")
    with pytest.raises(UserError, match="return a finite number"):
        redqueen.evolve_adapters(given, lambda folder: float("inf"), tmp_path / "z")
    with pytest.raises(UserError, match="adapters of the same rank"):
        redqueen.evolve_adapters([given[0], saved(tmp_path / "c", 5, rank=2)], distance, tmp_path / "z")
