"""Attention by runs equals attention under a dense mask, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.adapters.tree_attention import Run, plan_tree, tree_attention

HEADS, KV_HEADS, DIM = 4, 2, 8


def lay_runs(shapes: list[tuple[int, list[int]]], nested: bool = False) -> tuple[list[Run], int]:
    """Runs of groups (prompt length, completion lengths) one after the other, and their number of tokens.

    ``nested``: every second prompt goes on from the one before it.
    """
    runs: list[Run] = []
    at = 0
    prompt: Run | None = None
    for i, (prompt_length, completions) in enumerate(shapes):
        prompt = Run(at, prompt_length, prompt if nested and i % 2 else None)
        runs.append(prompt)
        at += prompt_length
        for length in completions:
            runs.append(Run(at, length, prompt))
            at += length
    return runs, at


def dense_mask(runs: list[Run], num_tokens: int) -> torch.Tensor:
    """(num_tokens, num_tokens), True where a query may look, straight from the definition."""
    mask = torch.eye(num_tokens, dtype=torch.bool)
    for run in runs:
        for i in range(run.length):
            mask[run.start + i, run.start : run.start + i + 1] = True
            before = run.before
            while before:
                mask[run.start + i, before.start : before.start + before.length] = True
                before = before.before
    return mask


lengths = st.integers(1, 12)


@settings(max_examples=30, deadline=None)
@given(
    shapes=st.lists(st.tuples(lengths, st.lists(lengths, min_size=1, max_size=5)), min_size=1, max_size=6),
    nested=st.booleans(),
    row_tokens=st.sampled_from([4, 16]),
)
def test_runs_attend_as_the_mask_says_with_the_same_gradients_however_rows_are_cut(
    shapes: list[tuple[int, list[int]]], nested: bool, row_tokens: int
) -> None:
    runs, real = lay_runs(shapes, nested)
    num_rows = -(-real // row_tokens)
    total = num_rows * row_tokens
    generator = torch.Generator().manual_seed(total)
    q, k, v = (torch.randn(total, h, DIM, generator=generator).requires_grad_() for h in (HEADS, KV_HEADS, KV_HEADS))
    weight = torch.randn(total, HEADS, DIM, generator=generator)
    weight[real:] = 0.0

    def in_rows(t: torch.Tensor) -> torch.Tensor:
        return t.view(num_rows, row_tokens, -1, DIM).transpose(1, 2)

    plan = plan_tree(runs, num_rows, row_tokens, torch.float32)
    got = tree_attention(in_rows(q), in_rows(k), in_rows(v), plan, scale=0.3).reshape(total, HEADS, DIM)
    shared = HEADS // KV_HEADS
    expected = F.scaled_dot_product_attention(
        q.transpose(0, 1),
        k.repeat_interleave(shared, 1).transpose(0, 1),
        v.repeat_interleave(shared, 1).transpose(0, 1),
        attn_mask=dense_mask(runs, total),
        scale=0.3,
    ).transpose(0, 1)
    torch.testing.assert_close(got[:real], expected[:real], rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad((out * weight).sum(), (q, k, v)) for out in (got, expected)]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_scores_that_would_not_fit_are_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, real = lay_runs([(7, [3, 4]), (5, [2])])
    plan = plan_tree(runs, 1, real, torch.float32)
    q, k, v = (torch.randn(1, h, real, DIM) for h in (HEADS, KV_HEADS, KV_HEADS))
    kept = tree_attention(q, k, v, plan, scale=0.3)
    monkeypatch.setattr("redqueen.adapters.tree_attention.MOST_SCORES", 0)
    torch.testing.assert_close(tree_attention(q, k, v, plan, scale=0.3), kept, rtol=1e-4, atol=1e-5)


def test_hardly_a_pair_is_scored_in_vain() -> None:
    completions = [5, 9, 17, 30, 33, 40, 50, 56]
    runs, real = lay_runs([(180, completions)] * 8)
    plan = plan_tree(runs, 1, real, torch.float32)
    scored = sum(b.num_runs * b.num_queries * b.num_keys for b in plan.buckets)
    needed = 8 * (180 * 180 + sum(c * (180 + c) for c in completions))
    assert scored < 1.2 * needed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_token_that_is_no_number_stays_within_its_own_rows(dtype: torch.dtype) -> None:
    healthy = [Run(0, 5), Run(5, 3, Run(0, 5))]
    broken = [
        Run(12, 4),
        Run(16, 3, Run(12, 4)),
    ]  # three rows of 4 before, two rows after, one token of padding in each
    plan = plan_tree([*healthy, Run(8, 4), *broken], 5, 4, dtype)
    q, k, v = (torch.ones(5, h, 4, DIM, dtype=dtype) for h in (HEADS, KV_HEADS, KV_HEADS))
    for t in (q, k, v):
        t[3:] = float("nan")
        t.requires_grad_()
    out = tree_attention(q, k, v, plan, scale=0.3)
    # A gradient of zero on the broken rows' padding times its NaN must not reach the healthy rows.
    gradients = torch.autograd.grad(out.float().sum(), (q, k, v))
    assert out[:3].isfinite().all() and out[3:].isnan().all()
    assert all(g[:3].isfinite().all() for g in gradients)
