"""Counter-based noise and drawing by inversion."""

import pytest
import torch

from redqueen.adapters.decoding import StopStrings, draw, uniforms

CPU = torch.device("cpu")


def test_noise_depends_on_seed_sample_and_token_alone() -> None:
    table = uniforms([7, 7, 8, 2**70 + 7], [0, 1, 0, 0], 5, CPU)
    assert table.shape == (4, 5)
    assert torch.equal(uniforms([8], [0], 5, CPU)[0], table[2])
    assert torch.equal(uniforms([7], [1], 3, CPU)[0], table[1, :3])
    assert len(set(table.flatten().tolist())) == 15  # the last seed equals the first modulo 2**64


def test_noise_is_uniform() -> None:
    values = uniforms(list(range(500)), [0] * 500, 100, CPU).flatten()
    assert values.min() >= 0.0 and values.max() < 1.0
    counts = torch.histc(values, bins=20, min=0.0, max=1.0)
    # 50,000 draws in 20 bins of 2,500 +- 49: five sigma.
    assert (counts - 2500).abs().max() < 245
    pairs = values.view(-1, 2) - 0.5
    assert (pairs[:, 0] * pairs[:, 1]).mean().abs() < 0.003  # five sigma of (1/12) / sqrt(25,000)


def test_a_token_is_where_the_cumulative_distribution_passes_the_noise() -> None:
    logits = torch.log(torch.tensor([[0.2, 0.5, 0.3]])).repeat(4, 1)
    tokens, logprobs, entropy = draw(logits, torch.tensor([0.0, 0.19, 0.21, 0.71]), 1.0)
    assert tokens.tolist() == [0, 0, 1, 2]
    assert logprobs.exp().tolist() == pytest.approx([0.2, 0.2, 0.5, 0.3])
    assert entropy.tolist() == pytest.approx([1.02965] * 4, abs=1e-4)


def test_temperature_flattens_and_zero_takes_the_most_likely() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.9]]))
    _, logprob, _ = draw(logits, torch.tensor([0.0]), 2.0)
    assert logprob.exp().item() == pytest.approx(0.25)  # sqrt(0.1) : sqrt(0.9) = 1 : 3
    token, logprob, _ = draw(logits, torch.tensor([0.0]), 0.0)
    assert token.item() == 1 and logprob.exp().item() == pytest.approx(0.9)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_rows_are_drawn_alike_however_many_are_drawn_from_at_a_time(
    temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, noise = torch.randn(7, 1000, generator=generator), torch.rand(7, generator=generator)
    whole = draw(logits, noise, temperature)
    monkeypatch.setattr("redqueen.adapters.decoding.DRAWN_AT_ONCE", 3000)
    assert all(torch.equal(one, other) for one, other in zip(whole, draw(logits, noise, temperature), strict=True))


def test_a_token_whose_probability_is_zero_is_never_drawn() -> None:
    logits = torch.randn(64, 5000, generator=torch.Generator().manual_seed(0))
    logits[:, [0, -1]] = -200.0  # exp(-200) is 0 in fp32
    for noise in (0.0, 1.0 - 2.0**-24):  # the least and the greatest
        tokens, _, _ = draw(logits, torch.full((64,), noise), 1.0)
        assert tokens.min() > 0 and tokens.max() < 4999


def test_a_stop_string_is_found_in_as_many_tokens_as_it_has_bytes() -> None:
    stopper = StopStrings(["é"], lambda tokens: bytes(tokens).decode(errors="replace"))
    written = [*b"caf", *"é".encode(), *b" au"]
    assert stopper.first_stop(written[:5], 1) == 5
    assert stopper.first_stop(written, 4) == 5
    assert stopper.first_stop(written[:4], 4) is None
