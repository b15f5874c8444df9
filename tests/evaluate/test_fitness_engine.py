"""External fitness on the real engine: a small untrained model, its adapters, the torch sampler and the real judge."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from recipes.embedded_base.tokenizer import build_tokenizer
from redqueen.adapters.bank import AdapterBank
from redqueen.adapters.base import freeze
from redqueen.adapters.torch_sampler import TorchSampler
from redqueen.domains.code.suite import load_suite
from redqueen.domains.frames import EOS
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.evaluate.fitness_suite import Score, score
from redqueen_sandbox import Sandbox

NUM_TOKENS = 8


def test_fresh_members_score_as_the_base_and_a_score_can_be_repeated() -> None:
    items = load_suite()[:6]
    tokenizer = build_tokenizer([])
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    bank = AdapterBank(freeze(Qwen2ForCausalLM(config)), num_members=2, rank=2, alpha=4.0)
    end = tokenizer.convert_tokens_to_ids(EOS)

    def scored(verifier: Sandbox) -> list[Score]:
        return score(
            slots=[0, 1],
            items=items,
            sampler_factory=lambda temperature: TorchSampler(bank, NUM_TOKENS, [end], temperature),
            prompt_format=PromptFormat(FRAMES["compact"]),
            tokenizer=tokenizer,
            verifier=verifier,
            num_samples=2,
            rng_seed=5,
        )

    with Sandbox(workers=1) as verifier:
        first = scored(verifier)
        assert first == scored(verifier)
    greedy = [one for one in first if one.mode == "greedy"]
    assert greedy[0].item_means == greedy[1].item_means and greedy[0].item_tokens == greedy[1].item_tokens
    assert all(1 <= tokens <= NUM_TOKENS for one in first for tokens in one.item_tokens)
    assert all(one.overall.num_items == 6 and 0 <= one.overall.mean < 0.5 for one in first)
