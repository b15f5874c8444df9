"""Before step 1: check that prompts fit, grow the seed buffer, and check the cold start.

If no proposal of a base is valid, or it solves nothing, all members get the same reward and nothing is learned. The
cold-start check finds this out before a long run: the base writes a few proposals of each kind in the chosen format and
temperature, and attempts the valid ones. If too few are valid, other temperatures and formats are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from redqueen.adapters.base_shape import identify_base
from redqueen.adapters.genotype import on_cpu
from redqueen.adapters.memory import TextLimits
from redqueen.adapters.peft import Adapter, founder_like, read_adapter
from redqueen.adapters.protocols import Sampler
from redqueen.config import Config, ProposeConfig
from redqueen.domains.own import OWN_TASKS, read_own, rows_of_source
from redqueen.domains.prompt_format import FRAMES, PromptFormat, choose_format
from redqueen.domains.registry import check, domain_of, kinds, num_proposals, open_domain, words_of
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.evaluate.external import items_of
from redqueen.propose.filters import REASON, check_allowed, reject_held_out, reject_too_long
from redqueen.propose.proposing import Proposal, propose
from redqueen.records import BASE_SLOT, Candidate, Individual, Rejection, Task
from redqueen.solve import grade, sample_attempts
from redqueen.state import State
from redqueen.streams import Streams

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def check_prompts(config: Config, tokenizer: PreTrainedTokenizerBase, limits: TextLimits) -> None:
    """Raise UserError when a proposing prompt without references, or a prompt of the held-out suite, is too long.

    Later prompts show references only as far as they fit, so a run that passes this check can always make proposals.
    """
    prompt_format, base = choose_format(config), config.model.base
    for name in num_proposals(config.propose):
        seed = domain_of(name).seed
        given = seed if kinds()[name].needs_given else None
        asked = _num_tokens(prompt_format, tokenizer, base, prompt_format.propose(name, (), given))
        if asked > limits.propose_prompt_tokens:
            raise _no_room(f"the prompt for a task of the kind {name}", asked, limits.propose_prompt_tokens, "propose")
    lengths = (_num_tokens(prompt_format, tokenizer, base, prompt_format.solve(item.task)) for item in items_of(config))
    longest = max(lengths, default=0)
    room = limits.max_positions - limits.solve_new_tokens
    if longest > room:
        raise _no_room("the longest question of the held-out suite", longest, room, "solve")


def _num_tokens(prompt_format: PromptFormat, tokenizer: PreTrainedTokenizerBase, base: str, prompt: str) -> int:
    try:
        return len(prompt_format.encode(tokenizer, prompt))
    except UserError:
        raise
    except Exception as error:  # a tokenizer is the model's, and may fail in any way
        raise UserError(
            f"the tokenizer of model.base {base} cannot write a prompt ({error}): repair its chat "
            "template, or remove it to use the base without one"
        ) from None


def _no_room(what: str, num_tokens: int, room: int, section: str) -> UserError:
    fields = f"{section}.max_new_tokens" + (" or raise propose.max_prompt_tokens" if section == "propose" else "")
    return UserError(
        f"{what} has {num_tokens:,} tokens, but at most {room:,} fit: lower {fields}, or choose a base with more "
        "positions"
    )


SEED_AUTHOR = "seed"


def founders_of(config: Config) -> list[Adapter]:
    """Read the adapters that ``population.founders`` names.

    Raises UserError when one cannot be read, or was trained on another base.
    """
    try:
        adapters = [read_adapter(folder) for folder in config.population.founders]
    except UserError as error:
        raise UserError(f"population.founders: {error}") from None
    known = identify_base(config.model.base).sha256 if adapters else ""
    for adapter in adapters:
        if known and adapter.base_sha256 not in ("", known):
            raise UserError(f"population.founders: {adapter.folder} was trained on another base than model.base")
    return adapters


def place_founders(engine: Engine) -> None:
    """Load the adapters of ``population.founders``, if any, into the members' slots, repeating them in order.

    Raises UserError when one cannot be read, does not fit or was trained on another base.
    """
    adapters = founders_of(engine.config)
    for slot in range(engine.config.population.num_members if adapters else 0):
        founder = founder_like(adapters[slot % len(adapters)], on_cpu(engine.store.genotype(slot)))
        engine.store.load(slot, founder)


def add_own_tasks(state: State, engine: Engine, report: Callable[[str], None]) -> State:
    """Return the state with the valid tasks of the user's files in the buffer, and as anchors if files have a share.

    Outputs that a file states must be those that checking computes. Raises UserError for a row that is not a task, and
    when no task of the files is valid.
    """
    config = engine.config
    if not config.propose.files:
        return state
    tasks = own_tasks(config)
    candidates = [Candidate(t.id, SEED_AUTHOR, "", t.kind, "", t.code, t.inputs, t.message) for t in tasks]
    proposed = [at for at, task in enumerate(tasks) if domain_of(task.kind) is not OWN_TASKS]
    checked = check([candidates[at] for at in proposed], engine.verifier, config.verify)
    judged: list[Task | Rejection] = list(tasks)
    for at, found in zip(proposed, checked, strict=True):
        wrong = isinstance(found, Task) and tasks[at].outputs not in ((), found.outputs)
        judged[at] = Rejection(candidates[at], "other-output", "the program gives another output") if wrong else found
    judged = reject_held_out(candidates, judged)
    limit = engine.limits.solve_prompt_tokens
    judged = reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limit)
    valid = [task for task in judged if isinstance(task, Task)]
    reasons = Counter(one.reason for one in judged if isinstance(one, Rejection))
    refused = "".join(f", {number} {reason}" for reason, number in reasons.most_common())
    report(f"{', '.join(config.propose.files)}: {len(valid)} of {len(tasks)} tasks are valid{refused}")
    if not valid:
        raise UserError(f"propose.domains: no task of {', '.join(config.propose.files)} is valid: correct the file")
    asked = {kind.name for name in config.propose.domains for kind in open_domain(name).kinds}
    buffer = state.buffer.add(task for task in valid if task.kind in asked)
    return replace(state, buffer=buffer, anchors=tuple(valid) if config.propose.anchor_frac else ())


def own_tasks(config: Config) -> list[Task]:
    """Return the tasks of the user's files, unchecked. Raises UserError for a row that is not a task."""
    rows = [row for source in config.propose.files for row in rows_of_source(source, "propose.domains: file")]
    tasks = [read_own(row, f"own-{number}") for number, row in enumerate(rows)]
    for task in tasks:
        words_of(task.kind, choose_format(config).name)
    return tasks


def grow_seed_buffer(state: State, engine: Engine) -> tuple[State, list[Rejection]]:
    """Let the untrained first teacher propose tasks, and return the state with the valid ones in the buffer.

    They are references for the first proposals; no member is trained on them; their author is ``seed``. Kinds about a
    given task are left out. Refusals by the policy are returned too, for the journal. Source: AZR (number: ours).
    """
    config = engine.config.propose
    asked = [kind for name in config.domains for kind in open_domain(name).kinds if not kind.needs_given]
    names = [kind.name for kind in asked if engine.prompt_format.name in kind.words]
    if not names or not config.num_seed_proposals:
        return state, []
    founder = replace(state.teachers[0], id=SEED_AUTHOR)
    wanted = dict.fromkeys(names, config.num_seed_proposals)
    proposals, judged = _propose_and_check(founder, (), wanted, state, engine, engine.proposer)
    judged = reject_held_out([p.candidate for p in proposals], judged)
    refused = [v for v in judged if isinstance(v, Rejection) and v.reason == REASON]
    return replace(state, buffer=state.buffer.add(v for v in judged if isinstance(v, Task))), refused


def _propose_and_check(
    author: Individual,
    students: tuple[str, ...],
    wanted: dict[str, int],
    state: State,
    engine: Engine,
    sampler: Sampler,
) -> tuple[list[Proposal], list[Task | Rejection]]:
    """Let ``author`` propose ``wanted`` tasks of each kind to ``students``; return the proposals and their verdicts."""
    config, limits = engine.config.propose, engine.limits
    # Shares of domains are left out: they would change the numbers in ``wanted``.
    asked = {"domains": tuple(config.domains), "num_of_each_kind": 0, "num_proposals": wanted}
    proposals = propose(
        [author],
        opponents={author.id: students},
        buffer=state.buffer,
        config=ProposeConfig(**{**config.model_dump(), **asked}),
        sampler=sampler,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=Streams(engine.config.run.rng_seed, 0),
        max_prompt_tokens=limits.propose_prompt_tokens,
    )
    candidates = [p.candidate for p in proposals]
    judged = check_allowed(candidates, engine.content_filter, engine.verifier, engine.config.verify)
    limit = limits.solve_prompt_tokens
    return proposals, reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limit)


LEAST_FRAC = 0.1
"""A smaller share of valid proposals, or of right attempts, causes a warning (ours)."""
FEWEST_TELLING = 20
"""Fewer proposals or attempts are too small a sample: 0 of 20 mean a share below 15 % (95 % bound 3 / n)."""
MOST_TASKS = 8
"""Maximum number of tasks of a kind that are attempted (ours)."""
TEMPERATURES = (0.6, 0.8, 1.0)
"""Temperatures that are tried when too few proposals are valid (ours)."""
CHECKER = "check"
LONGER = "raise propose.max_new_tokens; a proposal gets at most half of the positions of model.base"


@dataclass(frozen=True)
class KindCheck:
    """The base's results on one kind: proposals written, valid and cut off at the limit; attempts and right ones."""

    kind: str
    num_proposals: int
    num_valid: int
    num_cut_off: int
    num_attempts: int
    num_right: int

    @property
    def valid_frac(self) -> float:
        """The share of valid proposals."""
        return self.num_valid / self.num_proposals if self.num_proposals else 0.0

    def line(self) -> str:
        """Return the results as one sentence."""
        solved = f"{self.num_right} of {self.num_attempts} attempts right" if self.num_attempts else "nothing to solve"
        solved += " (too few to tell)" if 0 < self.num_attempts < FEWEST_TELLING and not self.num_right else ""
        cut = f" ({self.num_cut_off} cut off)" if self.num_cut_off else ""
        return f"cold start, {self.kind}: {self.num_valid} of {self.num_proposals} proposals valid{cut}, {solved}"


def check_cold_start(state: State, engine: Engine, report: Callable[[str], None]) -> list[KindCheck]:
    """Measure the base on each kind of the run; report the results, and advice if too few proposals are valid.

    It uses its own random streams and changes neither state nor engine. ``propose.num_check_proposals = 0`` skips it.
    """
    config = engine.config
    if not config.propose.num_check_proposals:
        return []
    report("cold-start check: a few proposals and attempts of each kind")
    found = _measure(state, engine, engine.proposer, engine.solver)
    for one in found:
        report(one.line())
    for warning in _warnings(found, engine):
        report(f"warning: {warning}")
    if any(one.valid_frac < LEAST_FRAC for one in found):
        report(_advice(state, engine, found, report))
    return found


def _warnings(found: Sequence[KindCheck], engine: Engine) -> list[str]:
    lines = []
    for one in found:
        if one.valid_frac < LEAST_FRAC:
            lines.append(
                f"under {LEAST_FRAC:.0%} of the proposals of {one.kind} are valid: teachers learn little from it"
            )
            if 2 * one.num_cut_off > one.num_proposals:
                lines.append(f"most are cut off at {engine.limits.propose_new_tokens} tokens: {LONGER}")
        elif one.num_attempts >= FEWEST_TELLING and one.num_right < LEAST_FRAC * one.num_attempts:
            lines.append(
                f"under {LEAST_FRAC:.0%} of the attempts at {one.kind} are right: students learn little from it; try "
                f"another model.prompt_format, a larger model.base, or fewer {one.kind} in propose.num_proposals"
            )
    return lines


def _advice(state: State, engine: Engine, found: Sequence[KindCheck], report: Callable[[str], None]) -> str:
    """Try other temperatures and formats; return the sentence that names the best."""
    config = engine.config
    current = next(name for name, frame in FRAMES.items() if frame == engine.prompt_format.frame)
    chosen = config.propose_temperature, current
    report("trying other temperatures and prompt formats")
    asked = list(num_proposals(config.propose))
    shared = [name for name, one in FRAMES.items() if all(one.name in kinds()[kind].words for kind in asked)]
    names = [current, *(name for name in shared if name != current and FRAMES[name].name != "compact")]
    best, setting = sum(one.num_valid for one in found), chosen
    for name in names:
        for temperature in TEMPERATURES:
            if (temperature, name) == chosen:
                continue
            tried = replace(engine, prompt_format=PromptFormat(FRAMES[name], config.verify))
            stops, limits = tried.prompt_format.stops, engine.limits
            sampler = engine.sampler(temperature, limits.propose_new_tokens, stops)
            try:
                num_valid = sum(one.num_valid for one in _measure(state, tried, sampler, None))
            except UserError as error:  # the prompts of another format may be too long for the base
                report(f"cold start, {name} cannot be asked of this base: {error}")
                break
            report(f"cold start, {name} at temperature {temperature}: {num_valid} proposals valid")
            if num_valid > best:
                best, setting = num_valid, (temperature, name)
            if not num_valid:
                break  # a higher temperature is not worth the minutes
    if setting == chosen:
        return f"no setting tried did better: take a larger base, or allow longer texts: {LONGER}"
    temperature, name = setting
    return (
        f"{best} proposals are valid with model.prompt_format = {name} and temperature {temperature} (set "
        "propose.temperature)"
    )


def _measure(state: State, engine: Engine, proposer: Sampler, solver: Sampler | None) -> list[KindCheck]:
    """Let the bare base propose and, with a ``solver``, attempt the valid tasks; return the results by kind."""
    config = engine.config.propose
    wanted = dict.fromkeys(num_proposals(config), config.num_check_proposals)
    base = Individual(CHECKER, "both", BASE_SLOT, state.teachers[0].rating)
    proposals, judged = _propose_and_check(base, (CHECKER,), wanted, state, engine, proposer)
    right = _attempt(judged, base, engine, solver) if solver is not None else {}
    return [
        KindCheck(
            kind=kind,
            num_proposals=sum(p.candidate.kind == kind for p in proposals),
            num_valid=sum(isinstance(v, Task) and v.kind == kind for v in judged),
            num_cut_off=sum(p.candidate.kind == kind and not p.completion.finished for p in proposals),
            num_attempts=len(right.get(kind, [])),
            num_right=sum(right.get(kind, [])),
        )
        for kind in wanted
    ]


def _attempt(
    judged: Sequence[Task | Rejection], base: Individual, engine: Engine, solver: Sampler
) -> dict[str, list[bool]]:
    """Attempt the first ``MOST_TASKS`` tasks of each kind; return for each kind which attempts were right."""
    tasks: list[Task] = []
    for verdict in judged:
        if isinstance(verdict, Task) and sum(t.kind == verdict.kind for t in tasks) < MOST_TASKS:
            tasks.append(verdict)
    sampled = sample_attempts(
        [(task, base) for task in tasks],
        engine.config.solve.num_attempts,
        sampler=solver,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=Streams(engine.config.run.rng_seed, 0),
    )
    right: dict[str, list[bool]] = {}
    for one in grade(sampled, engine.verifier, engine.prompt_format, engine.tokenizer):
        right.setdefault(one.task.kind, []).extend(o.grade.correct for o in one.outcomes if not o.grade.lost)
    return right
