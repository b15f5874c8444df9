"""How long texts may be: what the config asks for, cut to what the base model has positions for."""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.config import Config

GROUPS_KEPT = 2
"""Prompts that are kept while texts are written, for each whole group that the rows have room for: a new group need not
wait for the last text of an old one (ours)."""


@dataclass(frozen=True)
class TextLimits:
    """Longest prompts and completions, in tokens, of teachers (propose) and students (solve), and of both together."""

    propose_prompt_tokens: int
    propose_new_tokens: int
    solve_prompt_tokens: int
    solve_new_tokens: int
    max_positions: int

    @property
    def planned_prompt_tokens(self) -> int:
        """Tokens of a prompt as memory is planned for it: as long as it may be, at most 1024."""
        return min(1024, max(self.propose_prompt_tokens, self.solve_prompt_tokens))

    @property
    def longest(self) -> int:
        """Tokens of the longest text: a prompt and its completion."""
        return max(
            self.propose_prompt_tokens + self.propose_new_tokens, self.solve_prompt_tokens + self.solve_new_tokens
        )


def prompt_cache_tokens(config: Config, limits: TextLimits) -> int:
    """Return how many tokens of prompts are kept at a time while texts are written: ``GROUPS_KEPT`` times the prompts
    of whole groups that fill all rows, as long as they are planned. Of longer ones fewer are kept, and fewer rows run.
    """
    groups = (config.propose.num_per_prompt, config.solve.num_attempts)
    return GROUPS_KEPT * -(-config.solve.max_rows // min(groups)) * limits.planned_prompt_tokens


def fit_limits(config: Config, max_positions: int) -> TextLimits:
    """Return the limits: a completion gets at most half of the positions, a prompt at most what is left (ours)."""
    propose_new = min(config.propose.max_new_tokens, max_positions // 2)
    solve_new = min(config.solve.max_new_tokens, max_positions // 2)
    return TextLimits(
        propose_prompt_tokens=min(config.propose.max_prompt_tokens, max_positions - propose_new),
        propose_new_tokens=propose_new,
        solve_prompt_tokens=min(config.solve.max_prompt_tokens, max_positions - solve_new),
        solve_new_tokens=solve_new,
        max_positions=max_positions,
    )
