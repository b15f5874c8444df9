"""What a prompt format must provide: tasks into prompts, model text back into proposals and answers.

A format is data of one small protocol, so that the loop is the same for the compact notation of the embedded base and
for a chat model's plain English. Everything a model wrote is untrusted: parsing never raises on it and never evaluates
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from redqueen.nouns import Completion, Kind, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class ParsedProposal:
    """What could be read from a teacher's text.

    ``inputs`` are argument lists as source text (as they stand between the brackets of a call): one for ``code_o``
    and ``code_i``, several for ``code_f``. ``error`` is "" when the text could be read, else one short reason, and
    then the other fields may be empty.
    """

    code: str = ""
    inputs: tuple[str, ...] = ()
    message: str = ""
    error: str = ""


@dataclass(frozen=True)
class ParsedAnswer:
    """What could be read from a solver's text.

    ``answer`` is None when there is no well-formed answer; otherwise source text: a literal (``code_o``), an
    argument list (``code_i``) or a program (``code_f``). ``thought`` is "" when the solver answered directly.
    """

    answer: str | None = None
    thought: str = ""


class PromptFormat(Protocol):
    """Writes prompts for teachers and students, and reads what they answer."""

    name: str

    def propose(self, kind: Kind, references: Sequence[Task], given: Task | None) -> str:
        """Write the prompt that asks a teacher for one task of ``kind``.

        ``references`` are earlier tasks shown as what to differ from (ignored for ``code_f``). ``given`` is the task
        whose program a ``code_f`` proposal writes inputs and a message for; None for the other kinds.
        """
        ...

    def solve(self, task: Task) -> str:
        """Write the prompt that asks a student to solve ``task``; it shows nothing that would give the answer away."""
        ...

    def parse_proposal(self, kind: Kind, text: str, given: Task | None) -> ParsedProposal:
        """Read a teacher's text; never raises. For ``code_f`` the proposal's code is that of ``given``."""
        ...

    def parse_answer(self, kind: Kind, text: str) -> ParsedAnswer:
        """Read a student's text; never raises."""
        ...

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into the token ids that the model is given, with whatever must stand around it."""
        ...


def completion_text(tokenizer: PreTrainedTokenizerBase, completion: Completion) -> str:
    """Decode a completion as the parsers want it: without its end token, but with every other mark left in.

    Special tokens stay visible because a format may use them as think or answer marks.
    """
    tokens = completion.tokens[:-1] if completion.finished else completion.tokens
    return str(tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))
