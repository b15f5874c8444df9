"""Every operator by property: what a child keeps of its parents, whatever the adapter and the seed."""

from dataclasses import asdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_adapters import adapter, dense, distance, founder, rewritten

from redqueen.adapters.genotype import Genotype, clone, is_finite, norm, relative_change
from redqueen.errors import UserError
from redqueen.evolve.operators import OPERATORS, Offspring, apply, find, tuned

IDS = list(OPERATORS)
CROSSOVERS = [name for name, operator in OPERATORS.items() if operator.num_parents == 2]
DETERMINISTIC = {"X6", "X8", "X9", "copy_parent", "linear_0_5"}
"""Those that draw nothing: the child is the same for every seed."""
DROPPING = {"X1", "X7"}
"""Crossovers that drop entries at random, so that a parent crossed with itself is not given back."""
WITHOUT_STRENGTH = {"linear_0_5"}
"""Those that have no constants with which they do nothing."""

ZERO_STRENGTH = {
    "M1": {"mutation_std": 0},
    "M2": {"mutation_std": 0},
    "M3": {"mask_frac": 0},
    "M4": {"mutation_std": 0},
    "M5": {"mutation_std": 0},
    "M6": {"redraw_frac": 0},
    "X1": {"drop_frac": 0, "share_frac": 0},
    "X2": {"share_frac": 0},
    "X3": {"num_leading": 4},
    "X4": {"eta_low": 1, "eta_high": 1},
    "X5": {"share_low_frac": 0, "share_high_frac": 0},
    "X6": {"keep_frac": 1, "share_frac": 0},
    "X7": {"drop_frac": 0, "spread_frac": 0, "share_frac": 0},
    "X8": {"share_frac": 0},
    "X9": {"share_frac": 0},
    "copy_parent": {},
}
"""The constants with which each operator does nothing: the child is parent 1 (the mean has no such setting)."""

seeds = st.integers(0, 2**31 - 1)
few = settings(max_examples=8, deadline=None)


def child_of(name: str, parents: list[Genotype], seed: int, **constants: float) -> Offspring:
    operator = tuned(find(name), constants)
    return apply(operator, parents[: operator.num_parents], [2.0, 1.0][: operator.num_parents], seed)


@pytest.mark.parametrize("name", IDS)
@given(seed=seeds, rank=st.integers(1, 14), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
@few
def test_rank_names_alpha_and_dtype_are_kept_and_nothing_is_nan(
    name: str, seed: int, rank: int, dtype: torch.dtype
) -> None:
    parent = adapter(seed, rank, dtype)
    child = child_of(name, [parent, adapter(seed + 1, rank, dtype)], seed).genotype
    assert child.names == parent.names and child.alpha == parent.alpha and is_finite(child)
    for module, (a, b) in child.factors.items():
        assert a.shape == parent.factors[module][0].shape and b.shape == parent.factors[module][1].shape
        assert a.dtype == b.dtype == dtype
        assert a.is_contiguous() and b.is_contiguous()


@pytest.mark.parametrize("name", sorted(ZERO_STRENGTH))
@given(seed=seeds)
@few
def test_at_zero_strength_the_child_is_the_parent(name: str, seed: int) -> None:
    parent = adapter(seed)
    child = child_of(name, [parent, adapter(seed + 1)], seed, **ZERO_STRENGTH[name])
    assert relative_change(child.genotype, parent).overall < 1e-5
    assert child.change.overall < 1e-5


@pytest.mark.parametrize("name", IDS)
@given(seed=seeds, rank=st.integers(1, 14), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
@few
def test_the_change_that_is_told_is_the_stored_childs(name: str, seed: int, rank: int, dtype: torch.dtype) -> None:
    operator, parents = find(name), [adapter(seed, rank, dtype), adapter(seed + 1, rank, dtype)]
    chosen = parents[: operator.num_parents]
    child = apply(operator, chosen, [2.0, 1.0][: len(chosen)], seed)
    measured = relative_change(child.genotype, parents[0])
    assert child.change.overall == pytest.approx(measured.overall, abs=1e-5)
    assert child.change.per_layer == pytest.approx(measured.per_layer, abs=1e-5)
    assert list(child.change.per_layer) == list(parents[0].names)


@pytest.mark.parametrize("name", IDS)
@given(seed=seeds)
@few
def test_the_same_seed_gives_the_same_child_bit_for_bit_and_leaves_the_parents_alone(name: str, seed: int) -> None:
    parents = [adapter(seed), adapter(seed + 1)]
    before = [clone(parent) for parent in parents]
    first, again = (child_of(name, parents, seed) for _ in range(2))
    assert first.constants == again.constants and first.change == again.change
    for module, (a, b) in first.genotype.factors.items():
        assert torch.equal(a, again.genotype.factors[module][0])
        assert torch.equal(b, again.genotype.factors[module][1])
    for parent, copy in zip(parents, before, strict=True):
        for module, (a, b) in parent.factors.items():
            assert torch.equal(a, copy.factors[module][0]) and torch.equal(b, copy.factors[module][1])


@pytest.mark.parametrize("name", IDS)
def test_another_seed_gives_another_child_of_every_operator_that_is_not_listed_as_deterministic(name: str) -> None:
    parents = [adapter(0), adapter(1)]
    first, *others = (child_of(name, parents, seed).genotype for seed in range(8))  # one coin may fall alike twice
    furthest = max(distance(first, other) for other in others)
    assert furthest == 0 if name in DETERMINISTIC else furthest > 0.01 * norm(parents[0])


def test_every_operator_has_its_constants_of_no_strength_or_is_listed_as_one_without() -> None:
    assert ZERO_STRENGTH.keys() | WITHOUT_STRENGTH == set(IDS) and not ZERO_STRENGTH.keys() & WITHOUT_STRENGTH


@pytest.mark.parametrize("name", [name for name in CROSSOVERS if name not in DROPPING])
@given(seed=seeds)
@few
def test_crossing_an_adapter_with_itself_written_otherwise_gives_it_back(name: str, seed: int) -> None:
    parent = adapter(seed)
    assert child_of(name, [parent, rewritten(parent, seed)], seed).change.overall < 1e-4


@pytest.mark.parametrize("name", IDS)
@given(seed=seeds)
@few
def test_another_writing_of_the_parents_makes_the_same_child(name: str, seed: int) -> None:
    parents = [adapter(seed), adapter(seed + 1)]
    others = [rewritten(parent, seed + i) for i, parent in enumerate(parents)]
    child, other = (child_of(name, pair, seed).genotype for pair in (parents, others))
    assert relative_change(other, child).overall < 1e-3


@pytest.mark.parametrize("name", IDS)
def test_no_component_of_a_child_is_dead(name: str) -> None:
    # A zero column of B needs its row of A, and the other way round, or neither has a gradient ever again.
    for parents in ([adapter(0), adapter(1)], [founder(0), founder(1)], [adapter(0), founder(1)]):
        for a, b in child_of(name, parents, 4).genotype.factors.values():
            assert not bool(((a == 0).all(dim=1) & (b == 0).all(dim=0)).any())


@pytest.mark.parametrize("name", IDS)
def test_children_of_founders_are_still_the_base_model(name: str) -> None:
    child = child_of(name, [founder(0), founder(1)], 6)
    assert norm(child.genotype) == 0.0 and child.change.overall == 0.0


@pytest.mark.parametrize("name", IDS)
def test_the_change_is_reported_overall_and_for_every_module(name: str) -> None:
    parents = [adapter(0), adapter(1)]
    child = child_of(name, parents, 8)
    gaps = {m: dense(child.genotype, m) - dense(parents[0], m) for m in parents[0].names}
    for module, gap in gaps.items():
        size = float(dense(parents[0], module).norm())
        assert child.change.per_layer[module] == pytest.approx(float(gap.norm()) / size, rel=1e-4, abs=1e-6)
    total = sum(float(gap.norm()) ** 2 for gap in gaps.values()) ** 0.5
    assert child.change.overall == pytest.approx(total / norm(parents[0]), rel=1e-4, abs=1e-6)


def test_an_unknown_operator_is_answered_with_the_list() -> None:
    with pytest.raises(UserError, match=r"unknown operator 'X12'.*M1, M2, .*linear_0_5"):
        find("X12")


def test_constants_are_checked_by_name_and_range() -> None:
    assert asdict(tuned(find("M4"), {"mutation_std": 0.3}).constants) == {"mutation_std": 0.3}
    with pytest.raises(UserError, match=r"M4 has no constant 'std'; it has: mutation_std"):
        tuned(find("M4"), {"std": 0.3})
    with pytest.raises(UserError, match=r"M3: mask_frac: input should be less than or equal to 1 \(got 1.5\)"):
        tuned(find("M3"), {"mask_frac": 1.5})


def test_parents_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        apply(find("X2"), [adapter(0), adapter(1, rank=3)], [0.0, 0.0], 0)
    with pytest.raises(ValueError, match="takes 2 parent"):
        apply(find("X2"), [adapter(0)], [0.0], 0)
