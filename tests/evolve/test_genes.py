"""Genes beside weights."""

import numpy as np
import pytest

from redqueen.evolve.selection import founder_genes, mutated
from redqueen.records import Genes


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_without_enabled_genes_every_factor_is_one() -> None:
    assert founder_genes((), rng()) == mutated(Genes(), (), rng()) == Genes()


def test_a_founders_factor_is_g_to_a_normal_number() -> None:
    logs = [np.log(founder_genes(("temperature",), rng(seed)).temperature) for seed in range(500)]
    assert np.mean(logs) == pytest.approx(0.0, abs=0.04)
    assert np.std(logs) == pytest.approx(np.log(1.25), rel=0.1)


def test_a_child_moves_one_step_up_or_down_from_its_parent_in_what_is_enabled() -> None:
    parent = Genes(learning_rate=2.0, temperature=0.8)
    found = {mutated(parent, ("learning_rate",), rng(seed)) for seed in range(20)}
    assert found == {Genes(2.5, 0.8), Genes(1.6, 0.8)}


def test_no_factor_leaves_its_bounds() -> None:
    for bound, inside in ((10.0, 8.0), (0.1, 0.125)):
        found = {mutated(Genes(bound), ("learning_rate",), rng(seed)).learning_rate for seed in range(20)}
        assert sorted(found) == pytest.approx(sorted((bound, inside)))
