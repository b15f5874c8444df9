"""Functions that tests call in the sandbox as the verifier calls our own: with a library, on texts nobody trusts."""

import fractions
import os
import socket


def doubled(text: str) -> str:
    """Return twice the fraction that a text spells."""
    return str(2 * fractions.Fraction(text))


def reversed_words(first: str, second: str) -> tuple[str, str]:
    """Return both texts, the other way round."""
    return second, first


def spin(text: str) -> str:
    """Never end."""
    while True:
        text += ""


def fill(text: str) -> int:
    """Take a gigabyte."""
    return len(bytearray(1 << 30))


def read(text: str) -> str:
    """Open a file."""
    with open(text, encoding="utf-8") as file:
        return file.read()


def connect(text: str) -> str:
    """Open a socket."""
    return str(socket.socket())


def leave(text: str) -> str:
    """End the process without a word."""
    os._exit(0)
