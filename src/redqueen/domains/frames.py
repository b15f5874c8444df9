"""Frames: the part of a prompt format that is the same for every kind of task.

- ``CompactFrame``, for the embedded base: one-token marks between the parts of a prompt. A prompt begins with BOS; a
  thought is between THINK and END_THINK before the answer, and only EOS ends the answer.
- ``FewshotFrame``, for base and small models: whole examples, each ended by ``END``, and the start of another one
  (few-shot prompting, Brown et al. 2020; the layout is ours).
- ``ChatFrame``, for chat and instruct models: plain English. Solvers think between ``<think>`` and ``</think>`` and
  answer between ``<answer>`` and ``</answer>``; programs are in fenced blocks.
- ``PlainFrame``, for instruct models: the same prompts without marks; the answer is the last fenced block.
- ``R1Frame``, for base models: the same prompts inside a written-out conversation, which ends with ``<think>``.

Every search takes linear time in the length of the text, even for hostile text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from redqueen.errors import UserError, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BOS, EOS, PAD = "<|bos|>", "<|eos|>", "<|pad|>"
IN, OUT, MSG, REF = "<|in|>", "<|out|>", "<|msg|>", "<|ref|>"
ASKED = ("<|o|>", "<|i|>", "<|f|>", "<|new_o|>", "<|new_i|>", "<|new_f|>")
"""Marks at the end of a prompt that say what to write; the kinds of ``redqueen.domains.code`` use them."""
ASK, NEW = "<|ask|>", "<|new|>"
"""Marks before the name of a kind of any other domain; see ``asked`` and ``new``."""
THINK, END_THINK = "<|think|>", "<|/think|>"
MARKS = (BOS, EOS, PAD, IN, OUT, MSG, REF, *ASKED, THINK, END_THINK, ASK, NEW)


class CompactFrame:
    """Implements ``Frame`` for the embedded base.

    ``CompactFrame(THINK)`` is the control: every prompt ends with THINK, so the score that the base reaches with forced
    thoughts is not attributed to training (ours).
    """

    name = "compact"
    marks: tuple[str, ...] = MARKS
    stops: tuple[str, ...] = ()

    def __init__(self, answer_prefix: str = "") -> None:
        self.answer_prefix = answer_prefix

    def write_prompt(self, prompt: str) -> str:
        """Return the prompt after BOS."""
        return BOS + prompt

    def proposal_text(self, text: str) -> str:
        """Return a teacher's text unchanged: teachers do not think in this format."""
        return text

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the text after the thought (None if it is blank or contains a mark), and the thought."""
        thought = ""
        if text.startswith(THINK):
            thought, mark, text = text[len(THINK) :].partition(END_THINK)
            if not mark:
                return None, thought
        return (text if text.strip() and not has_mark(text) else None), thought

    def is_closed(self, text: str) -> bool:
        """Return False: no mark in the text ends an answer."""
        return False

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode a prompt, which contains its marks already."""
        return tuple(tokenizer(prompt, add_special_tokens=False)["input_ids"])


def asked(kind: str) -> str:
    """Return the end of a prompt that asks for an answer to a task of this kind."""
    return f"{ASK}{kind}{OUT}"


def new(kind: str) -> str:
    """Return the end of a prompt that asks for a new task of this kind."""
    return f"{NEW}{kind}{OUT}"


def has_mark(text: str) -> bool:
    """Return whether a model's text contains a mark."""
    return any(mark in text for mark in MARKS)


MAX_MESSAGE_CHARS = 80
"""Longest message about a program that is shown to its solver: it must be too short to contain the program (ours)."""


def hint(message: str) -> str:
    """Return the message as the solver sees it: "" if it is too long."""
    return message if len(message) <= MAX_MESSAGE_CHARS else ""


END = "###"


class FewshotFrame:
    """Implements ``Frame`` for models that continue a text. The answer comes without a thought."""

    name = "fewshot"
    marks: tuple[str, ...] = (END,)
    stops: tuple[str, ...] = (END,)
    answer_prefix = ""

    def write_prompt(self, prompt: str) -> str:
        """Return the prompt unchanged."""
        return prompt

    def proposal_text(self, text: str) -> str:
        """Return a teacher's text before the end mark."""
        return text.partition(END)[0]

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the text before the end mark, and no thought."""
        answer = text.partition(END)[0]
        return (answer if answer.strip() else None), ""

    def is_closed(self, text: str) -> bool:
        """Return whether the end mark is in the text."""
        return END in text

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode a prompt after the tokenizer's start of a text; control tokens in the prompt are encoded as text."""
        return encode_as_text(tokenizer, prompt, prompt)


_PYTHON_LABEL = re.compile(r"[{. ]*i?py(?:thon)?[-_ ]*[0-9.]*(?![-\w])")
_LEADING_PROSE = re.compile(r"\A\s*(?:[A-Z][^\n]*[.:]\s*\n)+(?=(?:async def|def|class|import|from|@)\b)")
_CODE = re.compile(r"\w\(|^[ \t]*(?:async|class|def|for|from|import|return|while)\b", re.MULTILINE)

THINK_FIRST = (
    "Think step by step between <think> and </think>. Then give your answer between <answer> and </answer>; "
    "only the last answer counts."
)


_DATE = {"Y": "2025", "y": "25", "m": "01", "B": "January", "b": "Jan", "d": "01", "H": "00", "I": "12", "M": "00"}
_PARTS = "".join(f" | replace('%{code}', '{text}')" for code, text in {**_DATE, "S": "00", "A": "Wednesday"}.items())
PINNED_DATE = "{% macro strftime_now(format) %}{{ format" + _PARTS + " }}{% endmacro %}{{ '' }}"
"""A prefix for chat templates that ask for the time: a fixed date, so that runs are repeatable (ours)."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6}")  # the address of an object, which differs between processes


class ChatFrame:
    """Implements ``Frame`` for chat and instruct models."""

    name = "chat"
    marks: tuple[str, ...] = ("<think>", "</think>", "<answer>", "</answer>")
    stops: tuple[str, ...] = ()
    answer_prefix = ""

    def write_prompt(self, prompt: str) -> str:
        """Return the prompt unchanged: ``encode`` applies the tokenizer's chat template."""
        return prompt

    def proposal_text(self, text: str) -> str:
        """Return a teacher's text outside its thinking."""
        return outside_thought(text)

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the content of the last answer marks outside the thinking (None without any), and the thinking."""
        return last_answer(split_thought(text)[0]), split_thought(text)[1]

    def is_closed(self, text: str) -> bool:
        """Return whether there is an answer: only closed answer marks are read."""
        return self.answer(text)[0] is not None

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode ``prompt`` as one user turn of the tokenizer's chat template, or without a template if there is none.

        Control tokens in ``prompt`` are encoded as text, except the marks of this format. Raises UserError when the
        template cannot be rendered or does not show the prompt.
        """
        if not getattr(tokenizer, "chat_template", None):
            return encode_as_text(tokenizer, prompt, prompt, self.marks)
        turn = _render_user_turn(tokenizer, prompt)
        if prompt.strip() not in turn or _ADDRESS.search(turn.replace(prompt.strip(), "")):
            raise UserError(
                "the chat template of the base changes the user's text or writes the address of an object: correct the "
                "template, or choose another base"
            )
        return encode_as_text(tokenizer, turn, prompt.strip(), self.marks, begins=False)


class PlainFrame(ChatFrame):
    """Implements ``Frame`` for instruct models not trained on marks: the answer is in the last fenced block."""

    def write_prompt(self, prompt: str) -> str:
        """Return the prompt without its requests for marks: it asks for a fenced block instead."""
        plain = prompt.replace(" between <think> and </think>", "")
        return plain.replace("between <answer> and </answer>", "in a ``` block at the end")

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the content of the last answer marks, else the text (None without a fence), and the thinking."""
        marked, thought = super().answer(text)
        outside = split_thought(text)[0]
        return marked if marked is not None or not fenced_blocks(outside) else outside, thought


R1_BEFORE = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant "
    "first thinks about the reasoning process in the mind and then provides the user with the answer. The reasoning "
    "process and answer are enclosed within <think> </think> and <answer> </answer> tags, respectively, i.e., <think> "
    "reasoning process here </think> <answer> answer here </answer>. User: "
)
R1_AFTER = "\nAssistant: <think>"
"""The text before and after the user's text. Source: DeepSeek-R1 (2025), table 1; AZR also appends ``<think>``."""


class R1Frame(ChatFrame):
    """Implements ``Frame`` for base models: answers and proposals are the content of the closed answer marks.

    Sampling stops at the closing mark, so there is at most one pair. Whether the thought was closed does not matter.
    """

    stops: tuple[str, ...] = ("</answer>",)
    marks: tuple[str, ...] = (*ChatFrame.marks, "Assistant:")

    def proposal_text(self, text: str) -> str:
        """Return a teacher's text inside the answer marks; without marks, the text outside its thinking."""
        found = last_answer(text)
        return outside_thought(text) if found is None else found

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the content of the answer marks, also within the thinking (None without any), and the thinking."""
        return last_answer(text), split_thought(text)[1]

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode a prompt inside the R1 conversation; control tokens in the prompt are encoded as text."""
        return encode_as_text(tokenizer, f"{R1_BEFORE}{prompt}{R1_AFTER}", prompt, self.marks)


def _render_user_turn(tokenizer: PreTrainedTokenizerBase, prompt: str) -> str:
    """Render the chat template with a fixed date and a fixed random state, so that runs are repeatable."""
    turns, state = [{"role": "user", "content": prompt}], random.getstate()
    random.seed(0)
    try:
        template = tokenizer.get_chat_template()
        template = PINNED_DATE + template if "strftime_now" in template else template
        rendered = tokenizer.apply_chat_template(
            turns, chat_template=template, tokenize=False, add_generation_prompt=True
        )
        return str(rendered)
    except MemoryError:
        raise
    except Exception as error:  # a template is a foreign program and may raise anything
        raise UserError(
            f"the tokenizer of the base cannot write a prompt ({first_line(error):.300}): repair its chat template, or "
            "remove it to use the base without one"
        ) from None
    finally:
        random.setstate(state)


def fence(label: str, body: str) -> str:
    """Put untrusted text in a fence that it cannot close: longer than any run of backticks in the text."""
    longest = max(map(len, re.findall("`+", body)), default=0)
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
        elif marks == bare and marks.startswith(opened) and len(line) - len(line.lstrip()) < indent + 4:
            blocks.append(("python" if _PYTHON_LABEL.match(label) else label, "\n".join(body)))
            opened = ""
        else:
            body.append(line[min(indent, len(line) - len(line.lstrip())) :])
    return blocks


def program_in(text: str, entry: str = "") -> str | None:
    """Return the program among the fenced blocks of an answer, None when there is none.

    Blocks are ranked: first those that define ``entry``, the requested function; then those that look like code; then
    those labelled Python. The last block of the highest rank is returned.
    """
    blocks = [(label, body) for label, body in fenced_blocks(text) if label in ("", "python") and body.strip()]
    defines = re.compile(rf"^(?:(?:async def|def|class) +{re.escape(entry)}\b|{re.escape(entry)} *=)", re.MULTILINE)

    def rank(block: tuple[str, str]) -> tuple[bool, bool, bool]:
        label, body = block
        return bool(entry and defines.search(body)), bool(_CODE.search(body)), label == "python"

    return max(reversed(blocks), key=rank)[1] if blocks else None


def extract_program(answer: str, entry: str = "") -> str:
    """Return the program in an answer outside its thinking: in a fenced block, closed or not, else the whole text."""
    outside = split_thought(answer)[0].replace("\ufeff", "")
    marked = last_answer(outside) or outside
    return program_in(marked, entry) or program_in(f"{marked}\n```", entry) or _LEADING_PROSE.sub("", marked)


def unfenced(answer: str) -> str | None:
    """Return the body of the last fenced block of an answer, else the answer itself; None when that is blank."""
    blocks = fenced_blocks(answer)
    return (blocks[-1][1] if blocks else answer).strip() or None


def last_block(text: str, label: str) -> str:
    """Return the body of the last fenced block with this label that is not blank, or ""."""
    return next((body for found, body in reversed(fenced_blocks(text)) if found == label and body.strip()), "")


def split_thought(text: str) -> tuple[str, str]:
    """Split model text into (the text outside think marks, the text inside).

    A closing mark before any opening one ends a thought that the chat template opened; a thought that is never closed
    extends to the end of the text.
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


def outside_thought(text: str, reads_open: bool = True) -> str:
    """Return the text outside the thinking. If that is blank and ``reads_open``, return a thought that is never closed:
    models that were not trained to think may write their program there."""
    outside = split_thought(text)[0]
    return outside if outside.strip() or not reads_open else text.rpartition("</think>")[2].partition("<think>")[2]


def last_answer(text: str) -> str | None:
    """Return the content of the last closed pair of answer marks, or None."""
    found: str | None = None
    position = 0
    while (closed := text.find("</answer>", position)) >= 0:
        opened = text.rfind("<answer>", position, closed)
        if opened >= 0:
            found = text[opened + len("<answer>") : closed]
        position = closed + len("</answer>")
    return found


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Return the added and special tokens of a tokenizer, by id.

    Added tokens of white space or of one character are left out: several tokenizers add runs of blanks, which are text.
    """
    added = {number: token.content for number, token in tokenizer.added_tokens_decoder.items()}
    special = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return {number: token for number, token in {**added, **dict(special)}.items() if len(token.strip()) > 1}


def encode_as_text(
    tokenizer: PreTrainedTokenizerBase, text: str, foreign: str, own: Iterable[str] = (), begins: bool = True
) -> tuple[int, ...]:
    """Encode ``text``; control tokens in its part ``foreign`` are encoded as text, except those in ``own``.

    The text is cut after the first character of each such token, and the pieces are encoded one by one. ``begins``:
    with the special tokens that the tokenizer adds to a text.
    """
    marks = "|".join(re.escape(token) for token in control_tokens(tokenizer).values() if token not in own)
    start = text.index(foreign) + 1
    cuts = [start + found.start() for found in re.finditer(f"(?={marks})", foreign)] if marks else []
    tokens: list[int] = []
    for first, last in pairwise((0, *cuts, len(text))):
        tokens += tokenizer.encode(text[first:last], add_special_tokens=begins and first == 0)
    return tuple(tokens)
