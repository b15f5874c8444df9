"""The plain-English prompt format for chat and instruct models: fenced blocks in, fenced blocks out.

The wording is ours. Solvers think between ``<think>`` and ``</think>`` and answer between ``<answer>`` and
``</answer>``; programs stand in ``python`` fences, argument lists in ``input`` fences, messages in ``message`` fences.
Parsing is one pass of string searches (no regular expressions), so hostile text costs time in proportion to its
length and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redqueen.domains.prompt_format import ParsedAnswer, ParsedProposal
from redqueen.nouns import Kind, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_OWN_MARKS = {"<think>", "</think>", "<answer>", "</answer>"}

_RULES = """Rules for the program:
- its entry point is a function named f; helper functions may stand before it;
- it is deterministic: no randomness, no clock, no identities or hashes of objects;
- it imports nothing and does no input or output: no print, no files, no network;
- it takes and returns plain literals only: int, float, bool, str, None, and lists, tuples, dicts or sets of them;
- it ends quickly on every input that you give."""

_INPUT_RULE = (
    "Write an input as the argument list that stands between the brackets of the call, literals only: "
    "the call f([1, 2], 'ab') has the input [1, 2], 'ab'."
)

THINK_FIRST = (
    "Think step by step between <think> and </think>. Then give your answer between <answer> and </answer>; "
    "only the last answer counts."
)

_ASK_PROGRAM = {
    "code_o": "Another programmer will see the program and the input, and must predict the exact output.",
    "code_i": "Another programmer will see the program and its output, and must find an input that gives this output.",
}


class ChatFormat:
    """The :class:`~redqueen.domains.prompt_format.PromptFormat` of chat and instruct models.

    ``num_inputs``: how many inputs a ``code_f`` proposal is asked for (``verify.num_inputs``; AZR: 10).
    """

    name = "chat"

    def __init__(self, num_inputs: int = 10):
        self.num_inputs = num_inputs

    def propose(self, kind: Kind, references: Sequence[Task], given: Task | None) -> str:
        """Ask for one task of ``kind``. Raises ValueError when ``code_f`` comes without the ``given`` task."""
        if kind == "code_f":
            if given is None:
                raise ValueError("a code_f proposal needs the given task whose program it describes")
            return _propose_pairs(given.code, self.num_inputs)
        return _propose_program(kind, references)

    def solve(self, task: Task) -> str:
        """Ask for the output, for an input, or for the program, by the task's kind."""
        if task.kind == "code_o":
            return _solve_output(task)
        if task.kind == "code_i":
            return _solve_input(task)
        return _solve_program(task)

    def parse_proposal(self, kind: Kind, text: str, given: Task | None) -> ParsedProposal:
        """Read the last program and the last input (``code_o``, ``code_i``), or the inputs and the message."""
        blocks = fenced_blocks(split_thought(text)[0])
        inputs = tuple(body.strip() for label, body in blocks if label == "input")
        if not inputs:
            return ParsedProposal(error="no input block")
        if kind == "code_f":
            if given is None:
                return ParsedProposal(error="no given program")
            message = _last(blocks, "message").strip()
            if not message:
                return ParsedProposal(error="no message block")
            return ParsedProposal(code=given.code, inputs=inputs[-self.num_inputs :], message=message)
        code = _last(blocks, "python")
        if not code.strip():
            return ParsedProposal(error="no python block")
        return ParsedProposal(code=code, inputs=inputs[-1:])

    def parse_answer(self, kind: Kind, text: str) -> ParsedAnswer:
        """Read the last well-formed answer outside the thinking; an empty one counts as none."""
        outside, thought = split_thought(text)
        answer = last_answer(outside)
        if answer is None:
            return ParsedAnswer(thought=thought)
        return ParsedAnswer(answer=_answer_body(kind, answer) or None, thought=thought)

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode ``prompt`` as one user turn of the tokenizer's chat template, or as it is when there is none.

        Prompts quote text that models wrote. Where it spells one of the tokenizer's control tokens (an end-of-turn
        mark, say), the token's second letter is written as an escape: it cannot end the turn then, and inside a
        Python string it still means the same.
        """
        prompt = _defuse(prompt, _control_tokens(tokenizer))
        if getattr(tokenizer, "chat_template", None):
            turns = [{"role": "user", "content": prompt}]
            prompt = str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
            return tuple(tokenizer.encode(prompt, add_special_tokens=False))
        return tuple(tokenizer.encode(prompt))


def _propose_program(kind: Kind, references: Sequence[Task]) -> str:
    parts = [f"Invent a programming puzzle: a Python program and one input for it. {_ASK_PROGRAM[kind]}", _RULES]
    parts.append(_INPUT_RULE)
    for number, task in enumerate(references, start=1):
        parts.append(f"Earlier puzzle {number}:\n{fence('python', task.code)}\n{fence('input', task.inputs[0])}")
    if references:
        parts.append("Your puzzle must differ from all of the above in what it computes, not only in names or numbers.")
    parts.append(
        "Write something different and harder for the solver: several steps of reasoning, yet solvable with care. "
        "First plan between <think> and </think>. Then write the program in a ```python block and the input in an "
        "```input block."
    )
    return "\n\n".join(parts)


def _propose_pairs(code: str, num_inputs: int) -> str:
    return "\n\n".join(
        [
            "Here is a Python program.",
            fence("python", code),
            f"Choose {num_inputs} different inputs for it and write a short message about it. Another programmer will "
            "see the message and some of your inputs with their outputs, but not the program, and must write a "
            "program that agrees on all of them.",
            _INPUT_RULE,
            "The inputs should be varied, lead to different outputs, and together pin down what the program does. "
            "The message should hint at the idea in one sentence, without any code, so that the task is hard for the "
            "solver but possible.",
            f"First plan between <think> and </think>. Then write {num_inputs} ```input blocks with one input each, "
            "and the message in a ```message block.",
        ]
    )


def _solve_output(task: Task) -> str:
    return "\n\n".join(
        [
            "What does this Python program return when f is called with this input?",
            fence("python", task.code),
            fence("input", task.inputs[0]),
            f"{THINK_FIRST} The answer is the returned value as a Python literal, and nothing else.",
        ]
    )


def _solve_input(task: Task) -> str:
    return "\n\n".join(
        [
            "Find an input for which this Python program returns this output. Any input that gives it is right.",
            fence("python", task.code),
            fence("output", task.outputs[0]),
            f"{THINK_FIRST} {_INPUT_RULE} The answer is the input, and nothing else.",
        ]
    )


def _solve_program(task: Task) -> str:
    parts = ["Write a Python program that agrees with these examples, and with others that you are not shown."]
    if task.message:
        parts.append(f"A hint:\n{fence('message', task.message)}")
    for source, value in zip(task.inputs[: task.num_shown], task.outputs[: task.num_shown], strict=True):
        parts.append(f"{fence('input', source)}\n{fence('output', value)}")
    parts.append(_RULES)
    parts.append(f"{THINK_FIRST} The answer is the whole program in a ```python block.")
    return "\n\n".join(parts)


def fence(label: str, body: str) -> str:
    """Put untrusted text between fences that it cannot close: longer than any run of backticks inside it."""
    longest = run = 0
    for letter in body:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{label}\n{body}\n{marks}"


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return (label, body) of every closed fenced block, in order. A fence closes on its own line, as in Markdown."""
    blocks: list[tuple[str, str]] = []
    label, width, body = "", 0, list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.strip()
        ticks = len(bare) - len(bare.lstrip("`"))
        if width == 0:
            if ticks >= 3 and "`" not in bare[ticks:]:
                label, width, body = bare[ticks:].strip().lower(), ticks, []
        elif ticks >= width and ticks == len(bare):
            blocks.append((label, "\n".join(body)))
            width = 0
        else:
            body.append(line)
    return blocks


def _last(blocks: list[tuple[str, str]], label: str) -> str:
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


def _answer_body(kind: Kind, answer: str) -> str:
    blocks = fenced_blocks(answer)
    if kind == "code_f":
        return _last(blocks, "python")
    if blocks:  # a fence around a literal is a chat model's habit and harmless
        return blocks[-1][1].strip()
    return answer.strip()


def _control_tokens(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the tokenizer's control tokens, without the marks that our own wording uses."""
    added = (token.content for token in tokenizer.added_tokens_decoder.values() if token.special)
    return sorted({*added, *tokenizer.all_special_tokens} - _OWN_MARKS, key=len, reverse=True)


def _defuse(text: str, control_tokens: list[str]) -> str:
    for token in control_tokens:
        if len(token) > 1:
            escape = f"\\u{ord(token[1]):04x}" if ord(token[1]) > 255 else f"\\x{ord(token[1]):02x}"
            text = text.replace(token, token[0] + escape + token[2:])
    return text
