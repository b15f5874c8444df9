"""How long texts may be: what the config asks for, cut to what the base model has positions for."""

from __future__ import annotations

from dataclasses import dataclass

from redqueen.config import Config


@dataclass(frozen=True)
class TextLimits:
    """Longest prompts and completions, in tokens, of teachers (propose) and students (solve), and of both together."""

    propose_prompt_tokens: int
    propose_new_tokens: int
    solve_prompt_tokens: int
    solve_new_tokens: int
    max_positions: int

    @property
    def longest(self) -> int:
        """Tokens of the longest text: a prompt and its completion."""
        return max(
            self.propose_prompt_tokens + self.propose_new_tokens, self.solve_prompt_tokens + self.solve_new_tokens
        )


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
