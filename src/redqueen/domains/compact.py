"""The frame of compact prompts, for the embedded base: one-token marks between the parts of a prompt.

A prompt begins with BOS; a thought stands between THINK and END_THINK before the answer, which nothing ends but EOS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BOS, EOS, PAD = "<|bos|>", "<|eos|>", "<|pad|>"
IN, OUT, MSG, REF = "<|in|>", "<|out|>", "<|msg|>", "<|ref|>"
ASKED = ("<|o|>", "<|i|>", "<|f|>", "<|new_o|>", "<|new_i|>", "<|new_f|>")
"""Marks at the end of a prompt that say what is asked for; the kinds of ``redqueen.domains.code`` use them."""
ASK, NEW = "<|ask|>", "<|new|>"
"""Marks before the name of a kind of any other domain, see ``asked`` and ``new``."""
THINK, END_THINK = "<|think|>", "<|/think|>"
MARKS = (BOS, EOS, PAD, IN, OUT, MSG, REF, *ASKED, THINK, END_THINK, ASK, NEW)


class CompactFrame:
    """Implements ``Frame`` for the embedded base.

    ``CompactFrame(THINK)``, the control, has every thought begun in the prompt: what a base reaches by being told to
    think was not learned (ours).
    """

    name = "compact"
    stops = ()

    def __init__(self, begun: str = "") -> None:
        self.begun = begun

    def opened(self, prompt: str) -> str:
        """Return the prompt behind the mark that begins every text."""
        return BOS + prompt

    def outside(self, text: str) -> str:
        """Return a teacher's text as it is: teachers do not think in this format."""
        return text

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return what stands behind the thought, None when it is nothing or holds a mark, and the thought."""
        thought = ""
        if text.startswith(THINK):
            thought, mark, text = text[len(THINK) :].partition(END_THINK)
            if not mark:
                return None, thought
        return (text if text.strip() and not has_mark(text) else None), thought

    def is_closed(self, text: str) -> bool:
        """Return False: nothing in the text ends an answer."""
        return False

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into token ids; its marks stand in the text already."""
        return tuple(tokenizer(prompt, add_special_tokens=False)["input_ids"])

    def spelled(self, tokenizer: PreTrainedTokenizerBase, text: str) -> str:
        """Return a text with the beginnings of marks as escapes."""
        return without_marks(text)


def asked(kind: str) -> str:
    """Return what ends the prompt that asks for an answer to a task of this kind."""
    return f"{ASK}{kind}{OUT}"


def new(kind: str) -> str:
    """Return what ends the prompt that asks for a new task of this kind."""
    return f"{NEW}{kind}{OUT}"


def has_mark(text: str) -> bool:
    """Tell whether text of a model spells a mark."""
    return any(mark in text for mark in MARKS)


def without_marks(text: str) -> str:
    """Write foreign text so that it holds no mark. Inside a Python string literal the escape means the same."""
    return text.strip("\n").replace("<|", "<\\x7c")
