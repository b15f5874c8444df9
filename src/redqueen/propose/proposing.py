"""Phase 2: every teacher writes a batch of proposals of each kind; all are sampled in one call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from redqueen.adapters.protocols import Sampler
from redqueen.config import ProposeConfig
from redqueen.domains.prompt_format import PromptFormat, completion_text
from redqueen.domains.registry import domain_of, kinds, num_proposals
from redqueen.propose.buffer import TaskBuffer, draw_references, tasks_of_domain
from redqueen.records import Candidate, Completion, Individual, Request, Task
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Proposal:
    """A candidate, with the slot, prompt and completion that the learner needs."""

    candidate: Candidate
    slot: int
    prompt: tuple[int, ...]
    completion: Completion


@dataclass(frozen=True)
class _Prompt:
    """One prompt of one teacher, from which several proposals are drawn."""

    teacher: Individual
    kind: str
    given: Task | None
    request: Request


def propose(
    teachers: Sequence[Individual],
    opponents: Mapping[str, tuple[str, ...]],
    buffer: TaskBuffer,
    config: ProposeConfig,
    sampler: Sampler,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    streams: Streams,
    max_prompt_tokens: int,
) -> list[Proposal]:
    """Return all teachers' proposals: teachers in order, kinds in order, including unparsable ones.

    ``opponents`` maps a teacher's id to the ids of its students in this step. If a prompt is longer than
    ``max_prompt_tokens``, references are dropped; if that is not enough, the domain's seed replaces the given task.
    """
    prompts = [
        prompt
        for teacher in teachers
        for prompt in _prompts(teacher, buffer, config, prompt_format, tokenizer, streams, max_prompt_tokens)
    ]
    completions = sampler.sample([p.request for p in prompts])
    proposals: list[Proposal] = []
    for prompt, group in zip(prompts, completions, strict=True):
        for completion in group:
            candidate_id = f"{streams.step}-{prompt.teacher.id}-{len(proposals)}"
            student = ",".join(opponents[prompt.teacher.id])
            if config.complete_at_last_input:
                completion = _cut_when_complete(prompt, completion, prompt_format, tokenizer)
            candidate = _parse(prompt, completion, candidate_id, student, prompt_format, tokenizer)
            proposals.append(Proposal(candidate, prompt.teacher.slot, prompt.request.prompt, completion))
    return proposals


def _prompts(
    teacher: Individual,
    buffer: TaskBuffer,
    config: ProposeConfig,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
    streams: Streams,
    max_prompt_tokens: int,
) -> list[_Prompt]:
    """Return one teacher's prompts; each draws its own references."""
    over_cells = config.references_over == "cells"
    prompts = []
    for kind, wanted in num_proposals(config).items():
        known = tasks_of_domain(buffer.tasks, kind)
        for start in range(0, wanted, config.num_per_prompt):
            rng = streams.rng("references", teacher.id, kind, start)
            references = draw_references(known, config.num_references, rng, over_cells=over_cells)
            given = draw_references(known, 1, rng, over_cells=over_cells)[0] if kinds()[kind].needs_given else None
            prompt = prompt_format.encode(tokenizer, prompt_format.propose(kind, references, given))
            while references and len(prompt) > max_prompt_tokens:
                references = references[:-1]
                prompt = prompt_format.encode(tokenizer, prompt_format.propose(kind, references, given))
            if given is not None and len(prompt) > max_prompt_tokens:
                given = domain_of(kind).seed  # the shortest task
                prompt = prompt_format.encode(tokenizer, prompt_format.propose(kind, references, given))
            stop = prompt_format.stop(kind, tokenizer) if config.complete_at_last_input else (-1, 0)
            request = Request(
                slot=teacher.slot,
                prompt=prompt,
                num_samples=min(config.num_per_prompt, wanted - start),
                rng_seed=streams.seed("propose", teacher.id, kind, start),
                temperature=teacher.genes.temperature,
                stop_token=stop[0],
                stop_count=stop[1],
            )
            prompts.append(_Prompt(teacher, kind, given, request))
    return prompts


def _cut_when_complete(
    prompt: _Prompt, completion: Completion, prompt_format: PromptFormat, tokenizer: PreTrainedTokenizerBase
) -> Completion:
    """Cut a completion after the token that made the proposal complete, as if sampling had stopped there.

    That token then ends the completion, like an end token. (``entropy`` remains that of the uncut completion.)
    """

    def is_complete(num_tokens: int) -> bool:
        prefix = replace(completion, tokens=completion.tokens[:num_tokens], finished=False)
        return prompt_format.is_whole(prompt.kind, completion_text(tokenizer, prefix), prompt.given)

    lengths = range(1, len(completion.tokens) + 1)
    at = bisect_left(lengths, True, key=is_complete)
    if at == len(lengths):
        return completion
    num = lengths[at]
    return replace(completion, tokens=completion.tokens[:num], logprobs=completion.logprobs[:num], finished=True)


def _parse(
    prompt: _Prompt,
    completion: Completion,
    candidate_id: str,
    student: str,
    prompt_format: PromptFormat,
    tokenizer: PreTrainedTokenizerBase,
) -> Candidate:
    text = completion_text(tokenizer, completion, prompt_format.stops)
    written = Candidate(candidate_id, prompt.teacher.id, student, prompt.kind, text)
    if not completion.finished:
        return replace(written, error="cut off at the token limit")
    parsed = prompt_format.parse_proposal(prompt.kind, text, prompt.given)
    return replace(written, code=parsed.code, inputs=parsed.inputs, message=parsed.message, error=parsed.error)
