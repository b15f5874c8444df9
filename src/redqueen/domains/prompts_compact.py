"""The compact prompt format of the embedded base: one-token marks between program, input and output.

::

    solve code_o    BOS code IN input O                       ->  [THINK trace /THINK] output EOS
    solve code_i    BOS code OUT output I                     ->  [THINK guess|trace!guess|trace /THINK] input EOS
    solve code_f    BOS MSG message IN i1 OUT o1 ... F        ->  code EOS
    propose o, i    BOS REF code IN input ... NEW_O (NEW_I)   ->  code IN input EOS
    propose f       BOS code NEW_F                            ->  message IN i1 IN i2 ... EOS
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redqueen.domains.prompt_format import ParsedAnswer, ParsedProposal
from redqueen.nouns import Kind, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BOS, EOS, PAD = "<|bos|>", "<|eos|>", "<|pad|>"
IN, OUT, MSG, REF = "<|in|>", "<|out|>", "<|msg|>", "<|ref|>"
ANSWER: dict[Kind, str] = {"code_o": "<|o|>", "code_i": "<|i|>", "code_f": "<|f|>"}
NEW: dict[Kind, str] = {"code_o": "<|new_o|>", "code_i": "<|new_i|>", "code_f": "<|new_f|>"}
THINK, END_THINK = "<|think|>", "<|/think|>"
MARKS = (BOS, EOS, PAD, IN, OUT, MSG, REF, *ANSWER.values(), *NEW.values(), THINK, END_THINK)

MOST_INPUTS = 10
"""Inputs of a ``code_f`` proposal, as the embedded base was taught to write them (``redqueen.tiny.problems``)."""

MAX_MESSAGE_CHARS = 80
"""A longer message is left out of the prompt: the embedded base reads hints, not prose, and a teacher must not be
able to hand over the program in it (ours)."""


class CompactFormat:
    """Implements ``PromptFormat`` for the embedded base.

    ``forced``: every code_o and code_i prompt ends with the mark that opens a thought. This is the control beside
    which learning is judged: what is reached by thinking first alone was not learned (ours).
    """

    def __init__(self, forced: bool = False) -> None:
        self.name = "compact-forced" if forced else "compact"
        self.forced = forced

    def propose(self, kind: Kind, references: Sequence[Task], given: Task | None) -> str:
        """Write a proposal prompt; ``code_f`` shows the given program alone."""
        if kind == "code_f":
            if given is None:
                raise ValueError("a code_f proposal needs a given program")
            return f"{BOS}{_plain(given.code)}{NEW[kind]}"
        shown = "".join(f"{REF}{_plain(task.code)}{IN}{_plain(task.inputs[0])}" for task in references)
        return f"{BOS}{shown}{NEW[kind]}"

    def solve(self, task: Task) -> str:
        """Write a solving prompt: the program with its input or its output, or the shown pairs."""
        match task.kind:
            case "code_o":
                shown = f"{_plain(task.code)}{IN}{_plain(task.inputs[0])}"
            case "code_i":
                shown = f"{_plain(task.code)}{OUT}{_plain(task.outputs[0])}"
            case "code_f":
                message = _plain(task.message) if len(task.message) <= MAX_MESSAGE_CHARS else ""
                pairs = zip(task.inputs[: task.num_shown], task.outputs[: task.num_shown], strict=True)
                shown = MSG + message + "".join(f"{IN}{_plain(i)}{OUT}{_plain(o)}" for i, o in pairs)
        return f"{BOS}{shown}{ANSWER[task.kind]}{self._opening(task.kind)}"

    def parse_proposal(self, kind: Kind, text: str, given: Task | None) -> ParsedProposal:
        """Split a proposal at its IN marks; any other mark in it makes it unparsable."""
        first, *inputs = text.split(IN)
        if any(_has_mark(part) for part in (first, *inputs)):
            return ParsedProposal(error="a mark where text should be")
        if not inputs:
            return ParsedProposal(error="no input")
        if kind == "code_f":
            if given is None:
                return ParsedProposal(error="no given program")
            return ParsedProposal(given.code, tuple(i.strip() for i in inputs), first.strip())
        if len(inputs) != 1:
            return ParsedProposal(error="more than one input")
        return ParsedProposal(first.strip("\n") + "\n", (inputs[0].strip(),))

    def parse_answer(self, kind: Kind, text: str) -> ParsedAnswer:
        """Read the answer, after the thought if there is one; ``text`` is without what the prompt has opened."""
        text = self._opening(kind) + text
        thought = ""
        if text.startswith(THINK):
            thought, mark, text = text[len(THINK) :].partition(END_THINK)
            if not mark:
                return ParsedAnswer(None, thought)
        if not text.strip() or _has_mark(text):
            return ParsedAnswer(None, thought)
        return ParsedAnswer(text.strip("\n") + "\n" if kind == "code_f" else text.strip(), thought)

    def _opening(self, kind: Kind) -> str:
        return THINK if self.forced and kind != "code_f" else ""

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into token ids; its marks stand in the text already."""
        return tuple(tokenizer(prompt, add_special_tokens=False)["input_ids"])


def _has_mark(text: str) -> bool:
    return any(mark in text for mark in MARKS)


def _plain(text: str) -> str:
    """Write foreign text so that it holds no mark. Inside a Python string literal the escape means the same."""
    return text.strip("\n").replace("<|", "<\\x7c")
