"""What can be known of a run before its folder is made: that the base has room for what it will be asked."""

from __future__ import annotations

from redqueen.domains.registry import domain_of, kinds, num_proposals
from redqueen.engine import Engine
from redqueen.errors import UserError
from redqueen.evaluate.external import Examiner


def check_prompts(engine: Engine) -> None:
    """Write the shortest prompt of each sort and the suite's, and raise UserError when one cannot be asked.

    Later prompts show references as far as there is room, so a run that passes here can always ask something.
    """
    limits, propose = engine.limits, engine.config.propose
    for name in num_proposals(propose):
        seed = domain_of(name).seed
        given = seed if kinds()[name].needs_given else None
        asked = _num_tokens(engine, engine.prompt_format.propose(name, (), given))
        if asked > limits.propose_prompt_tokens:
            raise _no_room(f"the prompt for a task of the kind {name}", asked, limits.propose_prompt_tokens, "propose")
    items = Examiner.of(engine).items
    longest = max((_num_tokens(engine, engine.prompt_format.solve(item.task)) for item in items), default=0)
    room = limits.max_positions - limits.solve_new_tokens
    if longest > room:
        raise _no_room("the longest question of the held-out suite", longest, room, "solve")


def _num_tokens(engine: Engine, prompt: str) -> int:
    try:
        return len(engine.prompt_format.encode(engine.tokenizer, prompt))
    except Exception as error:  # a chat template is a program of the model's, and may fail in any way
        raise UserError(
            f"the tokenizer of model.base {engine.config.model.base} cannot write a prompt ({error}): mend its chat "
            "template, or remove it to be asked without one"
        ) from None


def _no_room(what: str, num_tokens: int, room: int, section: str) -> UserError:
    fields = f"{section}.max_new_tokens" + (" or raise propose.max_prompt_tokens" if section == "propose" else "")
    return UserError(
        f"{what} has {num_tokens:,} tokens, and there is room for {room:,}: lower {fields}, or choose a base with more "
        "positions"
    )
