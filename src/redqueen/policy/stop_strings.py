"""Stop strings: the token of a row at which its text contains a string that ends sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redqueen.errors import UserError


class StopStrings:
    """Finds the first token at which the text that ``decode`` makes of the tokens contains one of ``strings``.

    A stop string may span several tokens. Only the last tokens are decoded: every token but the special ones is at
    least one byte, so a string of n bytes that a new token completes lies within the last n tokens and the new ones.
    """

    def __init__(self, strings: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        if not strings or not all(strings):
            raise UserError("stop strings must not be empty")
        self._strings, self._decode = tuple(strings), decode
        self._reach = max(len(s.encode()) for s in strings)

    def first_stop(self, tokens: Sequence[int], num_new: int) -> int | None:
        """Return how many of ``tokens`` to keep, up to and with the one that completes a stop string; None: no stop.

        Only the last ``num_new`` tokens are taken to be new.
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
