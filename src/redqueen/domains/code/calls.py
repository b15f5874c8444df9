"""When two argument lists are one call: the same values for the same parameters, however they are written down.

By place or by name, names in any order, a default left out or written out, a value for a parameter that the program
never reads: a program cannot distinguish them, so they are one input and not several.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from redqueen_sandbox.literals import LiteralError, canonical, read_call


def distinct_calls(code: str, argument_lists: Sequence[str]) -> list[str]:
    """Return the argument lists without those that repeat an earlier call of ``f``. Raises ``LiteralError``."""
    signature, unread = _signature(code)
    first: dict[tuple[object, ...], str] = {}
    for text in argument_lists:
        first.setdefault(_identity(text, signature, unread), text)
    return list(first.values())


def distinct_pairs(code: str, argument_lists: Sequence[str], outputs: Sequence[str]) -> int:
    """Return how many different things pairs tell: an input that equals an earlier one in Python (``1``, ``1.0`` and
    ``True``) and has its output is no news, since a table of the earlier pairs has it. Raises ``LiteralError``.
    """
    equal = [_TEXT_OR_NUMBER.sub(lambda found: _whole(found[0]), text) for text in argument_lists]
    signature, unread = _signature(code)
    return len({(_identity(text, signature, unread), output) for text, output in zip(equal, outputs, strict=True)})


_TEXT_OR_NUMBER = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b(?:True|False)\b|-?\b[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?\b"""
)


def _whole(token: str) -> str:
    """Write numbers of a canonical argument list that are equal in one way: whole ones without a point."""
    if token in ("True", "False"):
        return str(int(token == "True"))
    if token[0] in "'\"" or not ("." in token or "e" in token):
        return token
    value = float(token)
    return str(int(value)) if value.is_integer() else token


def _identity(text: str, signature: ast.arguments | None, unread: set[str]) -> tuple[object, ...]:
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
    if len(positional) <= len(names):
        bound = {name: "" if name in unread else value for name, value in bound.items()}
    return tuple(positional[len(names) :]), frozenset(bound.items())


def _defaults(signature: ast.arguments) -> dict[str, str]:
    """The parameters that may be left out, each with its default, "" for one that is no literal."""
    by_place = [*signature.posonlyargs, *signature.args]
    pairs = list(zip(reversed(by_place), reversed(signature.defaults), strict=False))
    pairs += [(p, value) for p, value in zip(signature.kwonlyargs, signature.kw_defaults, strict=True) if value]
    found: dict[str, str] = {}
    for parameter, value in pairs:
        try:
            found[parameter.arg] = canonical(ast.unparse(value))
        except (LiteralError, ValueError, RecursionError, MemoryError):
            found[parameter.arg] = ""
    return found


def _signature(code: str) -> tuple[ast.arguments | None, set[str]]:
    """The parameters of the last function (or lambda) ``f`` at the top of a program, or None; and the names of
    those that the program never mentions, where nothing else could read them (a decorator, ``locals``).
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, set()
    found: ast.arguments | None = None
    num_bound = 0
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, args=parameters, decorator_list=decorators) if name == "f":
                found = parameters
                num_bound += 1 + len(decorators)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=parameters)) if name == "f":
                found = parameters
    mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    num_bound += sum(node.id == "f" for node in stores)
    if found is None or num_bound != 1 or mentioned & {"locals", "vars", "dir"}:
        return found, set()
    names = {parameter.arg for parameter in (*found.posonlyargs, *found.args, *found.kwonlyargs)}
    return found, names - mentioned if names & mentioned else set()  # of a constant its outputs will tell
