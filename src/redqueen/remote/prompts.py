"""The prompts that the canary asks: those of the run itself, on which its adapters learn to differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redqueen.config import Config
from redqueen.domains.prompt_format import choose_format
from redqueen.domains.registry import domain_of, kinds, num_proposals
from redqueen.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST_PROMPTS = 8
MOST_TOKENS, WHOLE_TOKENS = 64, 320
"""Of a prompt, its last ones, and of all in one: a canary tells adapters apart behind short texts as well, and our own
answers to it cost a forward pass for each adapter and each sort of module."""


def probe_prompts(config: Config, tokenizer: PreTrainedTokenizerBase, longest: int) -> list[tuple[int, ...]]:
    """Return a proposing and a solving prompt of each kind, ``MOST_PROMPTS`` at most, and all of them in one.

    Of each its last ``MOST_TOKENS``; of the last, which is to fill blocks of a server's prefix cache (16 to 128 tokens
    each), the first ``WHOLE_TOKENS``, said again and again where the prompts are short. None has more than ``longest``
    tokens.
    """
    form, texts = choose_format(config), []
    for name in num_proposals(config.propose):
        seed = domain_of(name).seed
        texts += [form.propose(name, (), seed if kinds()[name].needs_given else None), form.solve(seed)]
    try:
        found = [tuple(form.encode(tokenizer, text)) for text in dict.fromkeys(texts)]
    except Exception as error:  # a chat template is a program of the model's, and may fail in any way
        raise UserError(f"the tokenizer of model.base {config.model.base} cannot write a prompt ({error})") from None
    whole = tuple(token for prompt in found for token in prompt)
    return [
        *(prompt[-min(MOST_TOKENS, longest) :] for prompt in found[: MOST_PROMPTS - 1]),
        (whole * WHOLE_TOKENS)[: min(WHOLE_TOKENS, longest)],
    ]
