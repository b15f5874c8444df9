"""When two argument lists are one call: the same values for the same parameters, however they are written down.

By place or by name, names in any order, a default left out or written out: a program cannot distinguish them, so they
are one input and not several.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from redqueen.verify.literals import LiteralError, canonical, read_call


def distinct_calls(code: str, argument_lists: Sequence[str], entry: str = "f") -> list[str]:
    """Return the argument lists without those that repeat an earlier call of ``entry``. Raises ``LiteralError``."""
    signature = _signature(code, entry)
    first: dict[tuple[object, ...], str] = {}
    for text in argument_lists:
        first.setdefault(_identity(text, signature), text)
    return list(first.values())


def _identity(text: str, signature: ast.arguments | None) -> tuple[object, ...]:
    """What two argument lists share if and only if they are the same call."""
    positional, named = read_call(text)
    if signature is None:
        return tuple(positional), frozenset(named.items())
    by_place = [*signature.posonlyargs, *signature.args]
    names = [parameter.arg for parameter in by_place]
    bound = dict(zip(names, positional, strict=False))
    if any(name in bound for name in named):  # given twice, which is a call of its own: it fails
        return tuple(positional), frozenset(named.items())
    bound.update(named)
    for name, default in _defaults(signature).items():
        bound.setdefault(name, default)
    return tuple(positional[len(names) :]), frozenset(bound.items())


def _defaults(signature: ast.arguments) -> dict[str, str]:
    """The parameters that may be left out, each with its default, as far as those are literals."""
    by_place = [*signature.posonlyargs, *signature.args]
    pairs = list(zip(reversed(by_place), reversed(signature.defaults), strict=False))
    pairs += [(p, value) for p, value in zip(signature.kwonlyargs, signature.kw_defaults, strict=True) if value]
    found: dict[str, str] = {}
    for parameter, value in pairs:
        try:
            found[parameter.arg] = canonical(ast.unparse(value))
        except (LiteralError, ValueError, RecursionError, MemoryError):
            continue
    return found


def _signature(code: str, entry: str) -> ast.arguments | None:
    """The parameters of the last function (or lambda) of that name at the top of a program, or None."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: ast.arguments | None = None
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, args=parameters) if name == entry:
                found = parameters
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=parameters)) if name == entry:
                found = parameters
    return found
