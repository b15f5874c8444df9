"""Grow the seed buffer: before step 1 the untrained founders (which are the base model) write a first batch."""

from __future__ import annotations

from dataclasses import replace

from redqueen.config import ProposeConfig
from redqueen.domains.registry import open_domain
from redqueen.engine import Engine
from redqueen.nouns import Individual, Rejection, Task
from redqueen.propose.filters import REASON, check_allowed, reject_held_out, reject_too_long
from redqueen.propose.proposing import propose
from redqueen.state import State
from redqueen.streams import Streams

SEED_AUTHOR = "seed"


def grow_seed_buffer(state: State, engine: Engine) -> tuple[State, list[Rejection]]:
    """Return the state with the base model's own valid tasks behind the seeds (AZR's idea; ours: how many).

    Nothing is trained on them; they are what the first proposals are shown. Their author is ``seed``. What the policy
    refused is returned beside it, for the journal.
    """
    config = engine.config.propose
    num = config.num_seed_proposals
    if num == 0:
        return state, []
    asked = [kind for name in config.domains for kind in open_domain(name).kinds if not kind.needs_given]
    names = [kind.name for kind in asked if engine.prompt_format.name in kind.words]
    if not names:
        return state, []
    wanted = ProposeConfig(
        **{
            **config.model_dump(),
            "domains": tuple(config.domains),
            "num_of_each_kind": 0,
            "num_proposals": dict.fromkeys(names, num),
        }
    )
    founder: Individual = replace(state.teachers[0], id=SEED_AUTHOR)
    limits = engine.limits
    proposals = propose(
        [founder],
        opponents={SEED_AUTHOR: ()},
        buffer=state.buffer,
        config=wanted,
        sampler=engine.proposer,
        prompt_format=engine.prompt_format,
        tokenizer=engine.tokenizer,
        streams=Streams(engine.config.run.rng_seed, 0),
        max_prompt_tokens=limits.propose_prompt_tokens,
    )
    candidates = [p.candidate for p in proposals]
    judged = check_allowed(candidates, engine.content_filter, engine.verifier, engine.config.verify)
    judged = reject_held_out(candidates, judged)
    judged = reject_too_long(candidates, judged, engine.prompt_format, engine.tokenizer, limits.solve_prompt_tokens)
    refused = [v for v in judged if isinstance(v, Rejection) and v.reason == REASON]
    return replace(state, buffer=state.buffer.add(v for v in judged if isinstance(v, Task))), refused
