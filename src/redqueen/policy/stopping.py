"""Stop strings: where in a row's tokens its text has come to a string that ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redqueen.errors import UserError


class Stopper:
    """Finds the first token at which one of ``strings`` is complete in the text that ``decode`` makes of tokens.

    A stop string may lie across tokens. Only the last tokens are decoded: every token but special ones writes at least
    one byte, so a string of n bytes that a new token completes lies within the last n tokens and those of that look.
    """

    def __init__(self, strings: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        if not strings or not all(strings):
            raise UserError("stop strings must not be empty")
        self._strings, self._decode = tuple(strings), decode
        self._reach = max(len(s.encode()) for s in strings)

    def first_stop(self, tokens: Sequence[int], num_new: int) -> int | None:
        """Return how many of ``tokens`` to keep, the one that completes a stop string included; None: no stop.

        Only the last ``num_new`` tokens are taken to be unseen.
        """
        if not self._has_stop(tokens[-(self._reach + num_new) :]):
            return None
        for count in range(max(1, len(tokens) - num_new + 1), len(tokens) + 1):
            if self._has_stop(tokens[max(0, count - self._reach) : count]):
                return count
        return None

    def _has_stop(self, tokens: Sequence[int]) -> bool:
        text = self._decode(tokens)
        return any(s in text for s in self._strings)
