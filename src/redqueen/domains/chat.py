"""The frame of prompts in plain English, for chat and instruct models: fenced blocks in, fenced blocks out.

The wording is ours. Solvers think between ``<think>`` and ``</think>`` and answer between ``<answer>`` and
``</answer>``. Every search takes time in proportion to the length of the text, hostile text included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_OWN_MARKS = {"<think>", "</think>", "<answer>", "</answer>"}
_PYTHON = re.compile(r"[{. ]*i?py(?:thon)?[-_ ]*[0-9.]*(?![-\w])")
_CODE = re.compile(r"\w\(|^[ \t]*(?:async|class|def|for|from|import|return|while)\b", re.MULTILINE)

THINK_FIRST = (
    "Think step by step between <think> and </think>. Then give your answer between <answer> and </answer>; "
    "only the last answer counts."
)


class ChatFrame:
    """Implements ``Frame`` for chat and instruct models."""

    name = "chat"
    stops = ()
    begun = ""

    def opened(self, prompt: str) -> str:
        """Return the prompt as it is: the tokenizer's template stands around it."""
        return prompt

    def outside(self, text: str) -> str:
        """Return what a teacher wrote outside its thinking."""
        return split_thought(text)[0]

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return what stands in the last answer marks outside the thinking (None: nowhere), and the thinking."""
        outside, thought = split_thought(text)
        return last_answer(outside), thought

    def is_closed(self, text: str) -> bool:
        """Tell whether there is a closed answer mark outside the thinking."""
        return last_answer(self.outside(text)) is not None

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode ``prompt`` as one user turn of the tokenizer's chat template, or as it is when there is none.

        Prompts quote text that models wrote. Where it spells one of the tokenizer's control tokens (an end-of-turn
        mark, say), the token's second letter is written as an escape: it cannot end the turn then, and inside a
        Python string it still means the same.
        """
        prompt = defuse(prompt, control_tokens(tokenizer))
        if getattr(tokenizer, "chat_template", None):
            turns = [{"role": "user", "content": prompt}]
            prompt = str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
            return tuple(tokenizer.encode(prompt, add_special_tokens=False))
        return tuple(tokenizer.encode(prompt))

    def spelled(self, tokenizer: PreTrainedTokenizerBase, text: str) -> str:
        """Return a text with the tokenizer's control tokens as escapes."""
        return defuse(text.strip("\n"), control_tokens(tokenizer))


def fence(label: str, body: str) -> str:
    """Put untrusted text between fences that it cannot close: longer than any run of backticks inside it."""
    longest = run = 0
    for letter in body:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{label}\n{body}\n{marks}"


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return (label, body) of every closed fenced block, in order. A fence closes on its own line, as in Markdown.

    A body loses the indentation of its opening fence. Every label of Python (``py``, ``python3.11``) is "python".
    """
    blocks: list[tuple[str, str]] = []
    label, opened, indent, body = "", "", 0, list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.strip()
        marks = bare[: len(bare) - len(bare.lstrip(bare[:1]))] if bare[:1] in ("`", "~") else ""
        if not opened:
            if len(marks) >= 3 and "`" not in bare[len(marks) :]:
                label, opened, indent, body = bare[len(marks) :].strip().lower(), marks, line.index(marks), []
        elif marks == bare and marks.startswith(opened):
            blocks.append(("python" if _PYTHON.match(label) else label, "\n".join(body)))
            opened = ""
        else:
            body.append(line[min(indent, len(line) - len(line.lstrip())) :])
    return blocks


def program_in(text: str, entry: str = "") -> str | None:
    """Return the program among the fenced blocks of an answer, None when there is none.

    It is the last block labelled Python, else the last one without a label. A block that defines ``entry``, the
    function asked for, comes before others, and code before text, such as the output of an example.
    """
    blocks = [(label, body) for label, body in fenced_blocks(text) if label in ("", "python") and body.strip()]
    defines = re.compile(rf"^(?:(?:async def|def|class) +{re.escape(entry)}\b|{re.escape(entry)} *=)", re.MULTILINE)

    def rank(block: tuple[str, str]) -> tuple[bool, bool, bool]:
        label, body = block
        return bool(entry and defines.search(body)), bool(_CODE.search(body)), label == "python"

    return max(reversed(blocks), key=rank)[1] if blocks else None


def bare(answer: str, entry: str = "") -> str:
    """Return the program in an answer, outside its thinking: that of its fenced blocks, else all of the answer."""
    outside = split_thought(answer)[0]
    marked = last_answer(outside) or outside
    return program_in(marked, entry) or marked


def last_block(blocks: list[tuple[str, str]], label: str) -> str:
    """Return the body of the last block with this label that is not blank, or ""."""
    return next((body for found, body in reversed(blocks) if found == label and body.strip()), "")


def split_thought(text: str) -> tuple[str, str]:
    """Split model text into (what stands outside think marks, what stands inside).

    A closing mark before any opening one ends a thought that the prompt's template had opened; a thought that is
    never closed lasts to the end of the text.
    """
    outside: list[str] = []
    inside: list[str] = []
    opened, closed = text.find("<think>"), text.find("</think>")
    position = 0
    if closed >= 0 and (opened < 0 or closed < opened):
        inside.append(text[:closed])
        position = closed + len("</think>")
    while (opened := text.find("<think>", position)) >= 0:
        outside.append(text[position:opened])
        closed = text.find("</think>", opened)
        end = closed if closed >= 0 else len(text)
        inside.append(text[opened + len("<think>") : end])
        position = end + len("</think>")
    outside.append(text[position:])
    return "\n".join(outside), "\n".join(inside).strip()


def last_answer(text: str) -> str | None:
    """Return what stands in the last closed answer mark, or None."""
    found: str | None = None
    position = 0
    while (closed := text.find("</answer>", position)) >= 0:
        opened = text.rfind("<answer>", position, closed)
        if opened >= 0:
            found = text[opened + len("<answer>") : closed]
        position = closed + len("</answer>")
    return found


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the tokenizer's control tokens, without the marks that our own wording uses."""
    added = (token.content for token in tokenizer.added_tokens_decoder.values() if token.special)
    return sorted({*added, *tokenizer.all_special_tokens} - _OWN_MARKS, key=len, reverse=True)


def defuse(text: str, control_tokens: list[str]) -> str:
    for token in control_tokens:
        if len(token) > 1:
            escape = f"\\u{ord(token[1]):04x}" if ord(token[1]) > 255 else f"\\x{ord(token[1]):02x}"
            text = text.replace(token, token[0] + escape + token[2:])
    return text
