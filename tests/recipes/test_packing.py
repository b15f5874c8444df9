"""Packed samples: layout and mask by hand, and that packing loses and repeats nothing."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.embedded_base.packing import Sample, pack

PAD = 99


def sample(prompt, *completions):
    return Sample(prompt, completions, tuple((1.0,) * len(c) for c in completions))


def test_each_completion_continues_from_the_end_of_the_prompt():
    batch = pack([sample((1, 2), (3, 4), (5,))], row_tokens=8, pad_id=PAD)
    assert batch.tokens.tolist() == [[1, 2, 3, 4, 5]]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 2]]
    assert batch.branch.tolist() == [[0, 0, 1, 1, 2]]
    assert list(zip(batch.source.tolist(), batch.target.tolist(), strict=True)) == [(1, 2), (2, 3), (1, 4)]


def test_a_completion_attends_to_its_prompt_and_itself_alone():
    batch = pack([sample((1, 2), (3, 4), (5,)), sample((6,), (7,))], row_tokens=8, pad_id=PAD)
    assert batch.mask()[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1],
    ]


def test_a_sample_too_long_for_a_row_is_split_and_its_prompt_repeated():
    batch = pack([sample((1, 2), (3, 4), (5, 6), (7, 8))], row_tokens=6, pad_id=PAD)
    assert sorted(batch.tokens.tolist()) == [[1, 2, 3, 4, 5, 6], [1, 2, 7, 8, PAD, PAD]]
    assert batch.mask().any(dim=-1).all()  # padding too has a key: no NaN


tokens = st.integers(0, 50)
completions = st.lists(st.lists(tokens, min_size=1, max_size=5).map(tuple), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(tokens, min_size=1, max_size=6).map(tuple), completions), min_size=1, max_size=8))
def test_every_completion_token_is_predicted_exactly_once_with_its_weight(listed):
    samples = [
        Sample(prompt, tuple(parts), tuple(tuple(float(10 * s + t) for t in part) for part in parts))
        for s, (prompt, parts) in enumerate(listed)
    ]
    batch = pack(samples, 12, PAD)
    found = Counter(zip(batch.tokens[batch.row, batch.target].tolist(), batch.weights.tolist(), strict=True))
    wanted = Counter(
        pair
        for one in samples
        for part, weights in zip(one.completions, one.weights, strict=True)
        for pair in zip(part, weights, strict=True)
    )
    assert found == wanted
