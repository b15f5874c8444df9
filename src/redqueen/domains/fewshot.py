"""The frame of prompts for base and small models: examples in place of rules, continuation in place of conversation.

A prompt is a few whole examples, each ended by ``END``, and the beginning of another one; the model goes on and is
stopped at its ``END``. With ``traced`` the examples of solving have a line of reasoning before ``ANSWER``. A model that
does not follow rules still follows a pattern (few-shot prompting, Brown et al. 2020); the layout is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redqueen.domains.chat import control_tokens, defuse

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

END = "###"
ANSWER = "\n=> "


class FewshotFrame:
    """Implements ``Frame`` for models that continue a text; ``traced``: students reason before they answer."""

    begun = ""
    stops = (END,)

    def __init__(self, traced: bool = False) -> None:
        self.name = "fewshot-trace" if traced else "fewshot"

    def opened(self, prompt: str) -> str:
        """Return the prompt as it is."""
        return prompt

    def outside(self, text: str) -> str:
        """Return what a teacher wrote before the end mark: teachers do not think in this format."""
        return text.partition(END)[0]

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return what stands before the end mark and behind the last answer mark, and the thought before that one.

        Without an answer mark all of it is the answer, and there is no thought.
        """
        thought, _, answer = text.partition(END)[0].rpartition(ANSWER)
        return (answer if answer.strip() else None), thought.strip()

    def is_closed(self, text: str) -> bool:
        """Tell whether the end mark stands in the text."""
        return END in text

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into token ids, begun as the tokenizer begins a text; control tokens in it are spelled out."""
        return tuple(tokenizer.encode(defuse(prompt, control_tokens(tokenizer))))

    def spelled(self, tokenizer: PreTrainedTokenizerBase, text: str) -> str:
        """Return a text with the end mark and the tokenizer's control tokens as escapes."""
        return defuse(without_end(text), control_tokens(tokenizer))


def without_end(text: str) -> str:
    """Write foreign text so that it does not end an example. Inside a Python string the escape means the same."""
    return text.strip("\n").replace(END, "##\\x23")
