"""A prompt format: a frame (thinking, answer marks, tokens) and the prompts of each kind of task.

The loop is thus the same for the compact notation of the embedded base and for plain English with a chat model. Text
that a model wrote is untrusted: parsing never raises on it and never evaluates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from redqueen.config import EMBEDDED, Config, VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import THINK, ChatFrame, CompactFrame, FewshotFrame, PlainFrame, R1Frame, control_tokens
from redqueen.domains.registry import refuse_unsupported, words_of
from redqueen.errors import UserError
from redqueen.records import Completion, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class ParsedAnswer:
    """The answer and the thought in a solver's text.

    ``answer`` is None when there is no well-formed answer, otherwise text that the kind of task can grade. ``thought``
    is "" when the solver answered directly.
    """

    answer: str | None = None
    thought: str = ""


class Frame(Protocol):
    """The part of a format that is the same for every kind."""

    name: str
    """Key of a kind's prompts (``TaskKind.words``); several frames may share it."""
    marks: tuple[str, ...]
    """Strings that text by a model must not contain if it is shown in a prompt."""
    stops: tuple[str, ...]
    """Strings that end a completion, in addition to the tokenizer's end token."""
    answer_prefix: str
    """The start of the answer, written at the end of the prompt, for kinds with thoughts; "" for none."""

    def write_prompt(self, prompt: str) -> str:
        """Return a kind's prompt in the style of the frame, with the mark that starts every prompt."""

    def proposal_text(self, text: str) -> str:
        """Return the part of a teacher's text that may hold a proposal: the part outside its thinking."""

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the answer in a student's text (None without one), and the thought."""

    def is_closed(self, text: str) -> bool:
        """Return whether the text contains the end of its answer, so that the answer was not cut off."""

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode a prompt, with the text that the format puts around it."""


FRAMES: dict[str, Frame] = {
    "compact": CompactFrame(),
    "compact-forced": CompactFrame(answer_prefix=THINK),
    "chat": ChatFrame(),
    "plain": PlainFrame(),
    "r1": R1Frame(),
    "fewshot": FewshotFrame(),
}
"""Frames by the value of ``model.prompt_format``."""


@dataclass(frozen=True)
class PromptFormat:
    """Writes prompts for teachers and students, and parses their texts; ``terms`` is the config's ``verify``.

    Methods with a kind of task raise UserError if it is unknown or has no prompts in this format.
    """

    frame: Frame
    terms: VerifyConfig = field(default_factory=VerifyConfig)

    @property
    def name(self) -> str:
        """Key of a kind's prompts (``TaskKind.words``)."""
        return self.frame.name

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that end a completion, in addition to the tokenizer's end token."""
        return self.frame.stops

    @property
    def shows_examples(self) -> bool:
        """Whether proposals continue whole examples, so that a buffer should start with several tasks."""
        return isinstance(self.frame, FewshotFrame)

    def propose(self, kind: str, references: Sequence[Task], given: Task | None) -> str:
        """Write the prompt that asks a teacher for one task of ``kind``.

        Raises ValueError when the kind needs a ``given`` task and there is none.
        """
        return self.frame.write_prompt(self._words(kind).propose(references, given, self.terms))

    def solve(self, task: Task) -> str:
        """Write the prompt that asks a student to solve ``task``; it does not reveal the answer."""
        return self.frame.write_prompt(self._words(task.kind).solve(task)) + self._answer_prefix(task.kind)

    def parse_proposal(self, kind: str, text: str, given: Task | None) -> ParsedProposal:
        """Parse a teacher's text; never raises on it."""
        return self._words(kind).read_proposal(self.frame.proposal_text(text), given, self.terms)

    def is_whole(self, kind: str, text: str, given: Task | None) -> bool:
        """Return whether a teacher's text contains a complete proposal, so that any further text is ignored."""
        return self._words(kind).is_whole(self.frame.proposal_text(text), given, self.terms)

    def stop(self, kind: str, tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
        """Return (token, count): after so many of the token a teacher's text is ignored. (-1, 0): no such token."""
        mark, count = self._words(kind).stop or ("", 0)
        tokens = tokenizer(mark, add_special_tokens=False)["input_ids"] if count else []
        return (int(tokens[0]), count) if len(tokens) == 1 else (-1, 0)

    def parse_answer(self, kind: str, text: str, finished: bool = True) -> ParsedAnswer:
        """Parse a student's text, given without the ``answer_prefix`` of its prompt; never raises on it.

        An incomplete answer does not count: a text that was cut off (``finished`` False) has an answer only if the
        answer was closed before.
        """
        text = self._answer_prefix(kind) + text
        answer, thought = self.frame.answer(text)
        if not (finished or self.frame.is_closed(text)):
            answer = None
        return ParsedAnswer(None if answer is None else self._words(kind).read_answer(answer), thought)

    def read_attempt(
        self, kind: str, tokenizer: PreTrainedTokenizerBase, completion: Completion
    ) -> tuple[str, ParsedAnswer]:
        """Return the text of a student's completion, and its answer and thought as ``parse_answer`` reads them."""
        text = completion_text(tokenizer, completion, self.stops)
        return text, self.parse_answer(kind, text, completion.finished)

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Encode a prompt, with the text that the format puts around it."""
        return self.frame.encode(tokenizer, prompt)

    def _answer_prefix(self, kind: str) -> str:
        return self.frame.answer_prefix if self._words(kind).has_thoughts else ""

    def _words(self, kind: str) -> Words:
        return words_of(kind, self.name)


def choose_format(config: Config) -> PromptFormat:
    """Return the prompt format that the config names, or with "auto" the one that fits its base.

    Raises UserError when a requested kind of task has no prompts in it.
    """
    name = config.model.prompt_format
    if name == "auto":
        name = "compact" if config.model.base == EMBEDDED else "chat"
    frame = FRAMES[name]
    refuse_unsupported(config, frame.name)
    return PromptFormat(frame, config.verify)


def with_forced_thoughts(prompt_format: PromptFormat) -> PromptFormat | None:
    """Return the format whose prompts begin every thought; None where no frame of the same ``name`` does that."""
    forced = [frame for frame in FRAMES.values() if frame.answer_prefix and frame.name == prompt_format.name]
    return replace(prompt_format, frame=forced[0]) if forced else None


def completion_text(tokenizer: PreTrainedTokenizerBase, completion: Completion, stops: Sequence[str] = ()) -> str:
    """Decode a completion for the parsers: without its end token, but with all other marks.

    Special tokens stay visible because a format may use them as think or answer marks. If one of ``stops`` ended the
    completion, its last token is ordinary text and is kept.
    """
    whole = decoded(tokenizer, completion.tokens)
    if not completion.finished or any(stop in whole for stop in stops):
        return whole
    return decoded(tokenizer, completion.tokens[:-1])


END_MARKS = frozenset(
    {"<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|end_of_text|>", "<|eot_id|>", "<end_of_turn>", "</s>"}
)
"""Control tokens that end a document or a turn, or start a turn, in one of the model families."""


def end_tokens(tokenizer: PreTrainedTokenizerBase, generation_config: object) -> list[int]:
    """Return the ids that end a completion: the end tokens of tokenizer and generation config, and ``END_MARKS``."""
    known = getattr(generation_config, "eos_token_id", None)
    listed = known if isinstance(known, list) else [known]
    if not all(isinstance(token, int | None) for token in listed):
        raise UserError(f"the base's generation_config.json has eos_token_id {known!r:.100}: give a token id or a list")
    marks = [number for number, token in control_tokens(tokenizer).items() if token in END_MARKS]
    return sorted({int(t) for t in (*listed, tokenizer.eos_token_id, *marks) if t is not None})


def decoded(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Decode tokens, with all marks."""
    return str(tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))
