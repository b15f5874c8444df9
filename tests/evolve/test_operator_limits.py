"""Operators at the edge of what they may meet: parents that are equal, opposite, tiny, huge, empty or written finer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_adapters import adapter, distance, founder

from redqueen.adapters.genotype import Genotype, is_finite, norm
from redqueen.evolve.operators import OPERATORS, apply, find

IDS = list(OPERATORS)
CROSSOVERS = [name for name, operator in OPERATORS.items() if operator.num_parents == 2]


def scaled(genotype: Genotype, factor: float) -> Genotype:
    """The adapter with dW times ``factor``."""
    return Genotype({name: (a, b * factor) for name, (a, b) in genotype.factors.items()}, genotype.alpha)


def flat_spectrum(seed: int) -> Genotype:
    """All singular values equal, so that the directions among them are free."""
    factors = {}
    for name, (a, b) in adapter(seed).factors.items():
        factors[name] = (torch.linalg.qr(a.T)[0].T.contiguous(), torch.linalg.qr(b)[0])
    return Genotype(factors, 8.0)


def partner(name: str, seed: int, factor: float) -> Genotype:
    """The second parent of a kind."""
    one = adapter(seed)
    return {
        "itself": one,
        "its opposite": scaled(one, -1.0),
        "another size": scaled(adapter(seed + 1), factor),
        "a founder": founder(seed + 1),
        "a flat spectrum": flat_spectrum(seed),
    }[name]


PARTNERS = ["itself", "its opposite", "another size", "a founder", "a flat spectrum"]


def child_of(operator: str, parents: list[Genotype], seed: int) -> Genotype:
    count = find(operator).num_parents
    return apply(find(operator), parents[:count], [1.0, 2.0][:count], seed).genotype


@pytest.mark.parametrize("name", IDS)
@given(
    seed=st.integers(0, 2**31 - 2),
    kind=st.sampled_from(PARTNERS),
    exponent=st.integers(-6, 4),
    swapped=st.booleans(),
)
@settings(max_examples=12)
def test_no_pair_of_parents_makes_a_child_with_a_nan_or_a_dead_component(
    name: str, seed: int, kind: str, exponent: int, swapped: bool
) -> None:
    parents = [adapter(seed), partner(kind, seed, 10.0**exponent)]
    child = child_of(name, parents[::-1] if swapped else parents, seed)
    assert is_finite(child)
    for a, b in child.factors.values():
        assert not bool(((a == 0).all(dim=1) & (b == 0).all(dim=0)).any())


@pytest.mark.parametrize("name", CROSSOVERS)
@pytest.mark.parametrize("finer", [torch.float32, torch.float64])
def test_a_child_has_its_first_parents_dtype_whatever_the_second_parents(name: str, finer: torch.dtype) -> None:
    coarser = torch.bfloat16 if finer == torch.float32 else torch.float32
    for first, second in ((coarser, finer), (finer, coarser)):
        child = child_of(name, [adapter(0, dtype=first), adapter(1, dtype=second)], 3)
        assert {part.dtype for pair in child.factors.values() for part in pair} == {first}


@pytest.mark.parametrize("name", [*(n for n in IDS if n.startswith("M")), "linear_0_5"])
def test_a_change_does_not_depend_on_the_adapters_size(name: str) -> None:
    """Operators are homogeneous: a child of ten times the adapters is ten times the child."""
    parents = [adapter(0), adapter(1)]
    child = child_of(name, parents, 5)
    larger = child_of(name, [scaled(parent, 10.0) for parent in parents], 5)
    assert distance(larger, scaled(child, 10.0)) < 1e-3 * norm(larger)
