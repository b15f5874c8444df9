"""A prompt format: a frame (thinking, answer marks, tokens) around the prompts of each kind of task.

So the loop is the same for the compact notation of the embedded base and for a chat model's plain English. Everything a
model wrote is untrusted: parsing never raises on it and never evaluates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from redqueen.config import EMBEDDED, Config, VerifyConfig
from redqueen.domains.domain import ParsedProposal, Words
from redqueen.domains.frames import THINK, ChatFrame, CompactFrame, FewshotFrame, PlainFrame, R1Frame, control_tokens
from redqueen.domains.registry import refuse_unasked, words_of
from redqueen.errors import UserError
from redqueen.records import Completion, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class ParsedAnswer:
    """What could be read from a solver's text.

    ``answer`` is None when there is no well-formed answer, otherwise text that the kind of task can grade. ``thought``
    is "" when the solver answered directly.
    """

    answer: str | None = None
    thought: str = ""


class Frame(Protocol):
    """The part of a format that is the same for every kind."""

    name: str
    """The name under which kinds have their prompts; frames may share it."""
    marks: tuple[str, ...]
    """Strings that a text written by a model must not hold to be shown in a prompt."""
    stops: tuple[str, ...]
    """Strings that end a completion, in addition to the tokenizer's end token."""
    begun: str
    """How the prompt begins the answer of a kind that is thought about, "" if it does not."""

    def opened(self, prompt: str) -> str:
        """Write a prompt with whatever must begin every prompt."""

    def outside(self, text: str) -> str:
        """Return the part of a teacher's text that may hold a proposal: the part outside its thinking."""

    def answer(self, text: str) -> tuple[str | None, str]:
        """Return the part of a student's text that is its answer (None: there is none), and its thought."""

    def is_closed(self, text: str) -> bool:
        """Return whether the answer in a student's text has its end in the text, so that nothing cut it off."""

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into the token ids that the model is given, with what the format puts around it."""


FRAMES: dict[str, Frame] = {
    "compact": CompactFrame(),
    "compact-forced": CompactFrame(begun=THINK),
    "chat": ChatFrame(),
    "plain": PlainFrame(),
    "r1": R1Frame(),
    "fewshot": FewshotFrame(),
}
"""By the name under which configs choose them."""


@dataclass(frozen=True)
class PromptFormat:
    """Writes prompts for teachers and students, and reads what they answer; ``terms`` is the config's ``verify``.

    All that takes a kind of task raises UserError for one that is unknown, or that has no words in the format.
    """

    frame: Frame
    terms: VerifyConfig = field(default_factory=VerifyConfig)

    @property
    def name(self) -> str:
        """The name under which kinds have their prompts."""
        return self.frame.name

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that end a completion, in addition to the tokenizer's end token."""
        return self.frame.stops

    @property
    def shows_examples(self) -> bool:
        """Whether proposals continue whole examples, so that a buffer should begin with several."""
        return isinstance(self.frame, FewshotFrame)

    def propose(self, kind: str, references: Sequence[Task], given: Task | None) -> str:
        """Write the prompt that asks a teacher for one task of ``kind``.

        Raises ValueError when the kind needs a ``given`` task and there is none.
        """
        return self.frame.opened(self._words(kind).propose(references, given, self.terms))

    def solve(self, task: Task) -> str:
        """Write the prompt that asks a student to solve ``task``; it shows nothing that would give the answer away."""
        return self.frame.opened(self._words(task.kind).solve(task)) + self._begun(task.kind)

    def parse_proposal(self, kind: str, text: str, given: Task | None) -> ParsedProposal:
        """Read a teacher's text; never raises on it."""
        return self._words(kind).read_proposal(self.frame.outside(text), given, self.terms)

    def is_whole(self, kind: str, text: str, given: Task | None) -> bool:
        """Return whether a teacher's text holds a whole proposal already, so that what follows it does not count."""
        return self._words(kind).is_whole(self.frame.outside(text), given, self.terms)

    def stop(self, kind: str, tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
        """Return the token of a teacher's text, and how many of it, behind which nothing counts; (-1, 0): none."""
        mark, count = self._words(kind).stop or ("", 0)
        tokens = tokenizer(mark, add_special_tokens=False)["input_ids"] if count else []
        return (int(tokens[0]), count) if len(tokens) == 1 else (-1, 0)

    def parse_answer(self, kind: str, text: str, finished: bool = True) -> ParsedAnswer:
        """Read a student's text, without what the prompt has begun; never raises on it.

        The beginning of an answer is none: a text that was cut off (``finished`` False) has one only where the format
        closed it before.
        """
        text = self._begun(kind) + text
        answer, thought = self.frame.answer(text)
        if not (finished or self.frame.is_closed(text)):
            answer = None
        return ParsedAnswer(None if answer is None else self._words(kind).read_answer(answer), thought)

    def read_attempt(
        self, kind: str, tokenizer: PreTrainedTokenizerBase, completion: Completion
    ) -> tuple[str, ParsedAnswer]:
        """Return a student's text and what can be read of it, as ``parse_answer`` does."""
        text = completion_text(tokenizer, completion, self.stops)
        return text, self.parse_answer(kind, text, completion.finished)

    def encode(self, tokenizer: PreTrainedTokenizerBase, prompt: str) -> tuple[int, ...]:
        """Turn a prompt into the token ids that the model is given, with what the format puts around it."""
        return self.frame.encode(tokenizer, prompt)

    def _begun(self, kind: str) -> str:
        return self.frame.begun if self._words(kind).has_thoughts else ""

    def _words(self, kind: str) -> Words:
        return words_of(kind, self.name)


def choose_format(config: Config) -> PromptFormat:
    """Return the prompt format that the config names or that fits its base.

    Raises UserError when what is asked for cannot be asked in it.
    """
    name = config.model.prompt_format
    if name == "auto":
        name = "compact" if config.model.base == EMBEDDED else "chat"
    frame = FRAMES[name]
    refuse_unasked(config, frame.name)
    return PromptFormat(frame, config.verify)


def thinking_first(prompt_format: PromptFormat) -> PromptFormat | None:
    """Return the format with every thought begun in the prompt; None where no frame of its words does that."""
    begun = [frame for frame in FRAMES.values() if frame.begun and frame.name == prompt_format.name]
    return replace(prompt_format, frame=begun[0]) if begun else None


def completion_text(tokenizer: PreTrainedTokenizerBase, completion: Completion, stops: Sequence[str] = ()) -> str:
    """Decode a completion as the parsers want it: without its end token, but with every other mark left in.

    Special tokens stay visible because a format may use them as think or answer marks. Where one of ``stops`` ended the
    completion its last token is text like any other, and stays.
    """
    whole = decoded(tokenizer, completion.tokens)
    if not completion.finished or any(stop in whole for stop in stops):
        return whole
    return decoded(tokenizer, completion.tokens[:-1])


END_MARKS = frozenset(
    {"<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|end_of_text|>", "<|eot_id|>", "<end_of_turn>", "</s>"}
)
"""Control tokens that end a document or a turn, or begin a turn, in one of the model families."""


def end_tokens(tokenizer: PreTrainedTokenizerBase, generation_config: object) -> list[int]:
    """Return what ends a completion: the end tokens of tokenizer and generation config, and its ``END_MARKS``."""
    known = getattr(generation_config, "eos_token_id", None)
    listed = known if isinstance(known, list) else [known]
    if not all(isinstance(token, int | None) for token in listed):
        raise UserError(f"the base's generation_config.json has eos_token_id {known!r:.100}: give the token's number")
    marks = [number for number, token in control_tokens(tokenizer).items() if token in END_MARKS]
    return sorted({int(t) for t in (*listed, tokenizer.eos_token_id, *marks) if t is not None})


def decoded(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Return the text that tokens spell, every mark left in."""
    return str(tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))
