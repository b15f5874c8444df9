"""The embedded base's tokenizer: whole words of Python, single digits, single letters inside data, bytes for the rest.

The vocabulary is built from generated programs: keywords, names and spaced operators become one token each. Everything
else is split into single bytes, so ``'kayak'`` is five letters that a program can reverse, and any text can be
written. It has no merges: a piece is either one token or bytes.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AddedToken, PreTrainedTokenizerFast

from redqueen.domains.frames import BOS, EOS, MARKS, PAD

PIECES = (
    r"\n *",  # a line's end with the next line's indent
    r" (?:if|else|for|in|not in|and|or) ",
    r"(?:def|return|for|while|if|elif|not) (?=\S)",
    r"(?:else|continue|break):?",
    r" ?(?:\+=|-=|\*=|//=|%=|==|!=|<=|>=|//|[-+*%<>=]) ",
    r"\[::-1\]|\(\)|\):|, |: |\[\]|\{\}|''",
    r"[A-Za-z_]+",
    r"\d",
    r"[\s\S]",
)


CHAT_TEMPLATE = "{{ bos_token }}{{ messages[-1]['content'] }}"
"""The user's turn, a task in compact notation, is the whole prompt."""


def pieces_of(text: str) -> list[str]:
    """Split text the way the tokenizer does."""
    return re.findall("|".join(PIECES), text)


def build_vocabulary(programs: Iterable[str], others: Iterable[str] = (), min_count: int = 30) -> list[str]:
    """Return the pieces of several characters that occur at least ``min_count`` times, most frequent first.

    Counted are names and operators of programs outside string literals, and the words of ``others``.
    """
    counts: Counter[str] = Counter()
    for program in programs:
        counts.update(p for p in pieces_of(_without_strings(program)) if len(p) > 1)
    for text in others:
        counts.update(p for p in pieces_of(text) if len(p) > 1)
    return sorted((p for p, n in counts.items() if n >= min_count), key=lambda p: (-counts[p], p))


def build_tokenizer(vocabulary: list[str]) -> PreTrainedTokenizerFast:
    """Return a Hugging Face tokenizer: marks, then all bytes, then ``vocabulary``."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [_as_byte_characters(piece) for piece in vocabulary]
    ids = {token: i for i, token in enumerate([*MARKS, *alphabet, *words])}
    model = Tokenizer(models.BPE(vocab=ids, merges=[], ignore_merges=True))
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("|".join(PIECES)), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    model.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=model,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    # Not special, so that decoders that skip special tokens keep them: answers are parsed by their marks.
    fast.add_tokens([AddedToken(m, normalized=False, special=False) for m in MARKS if m not in (BOS, EOS, PAD)])
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _without_strings(program: str) -> str:
    """Return a program with the contents of its string literals removed, the rest untouched."""
    lines = program.split("\n")
    strings = [t for t in tokenize.generate_tokens(io.StringIO(program).readline) if t.type == tokenize.STRING]
    for token in reversed(strings):
        row, start = token.start[0] - 1, token.start[1]
        lines[row] = lines[row][:start] + "''" + lines[row][token.end[1] :]
    return "\n".join(lines)


def _as_byte_characters(piece: str) -> str:
    """Return a piece as ByteLevel writes it (a space becomes a visible letter, and so on)."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(text for text, _ in level.pre_tokenize_str(piece))
