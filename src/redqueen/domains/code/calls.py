"""When two argument lists are the same call: the same values for the same parameters, however they are written.

A program cannot distinguish positional and named arguments, the order of names, an omitted and a written default, or
values of a parameter that it never reads. Such lists count as one input.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from redqueen.domains.code.measures import UNPARSABLE
from redqueen_sandbox.literals import LiteralError, canonical, read_call


def distinct_calls(code: str, argument_lists: Sequence[str]) -> list[str]:
    """Return the argument lists without those that repeat an earlier call of ``f``. Raises ``LiteralError``."""
    signature, unread = _signature(code)
    first: dict[tuple[object, ...], str] = {}
    for text in argument_lists:
        first.setdefault(_identity(text, signature, unread), text)
    return list(first.values())


def distinct_pairs(code: str, argument_lists: Sequence[str], outputs: Sequence[str]) -> int:
    """Return the number of informative pairs. An input that equals an earlier one in Python (``1``, ``1.0``, ``True``)
    with the same output adds nothing: a lookup table of the earlier pairs has it. Raises ``LiteralError``.
    """
    equal = [_TEXT_OR_NUMBER.sub(lambda found: _whole(found[0]), text) for text in argument_lists]
    signature, unread = _signature(code)
    return len({(_identity(text, signature, unread), output) for text, output in zip(equal, outputs, strict=True)})


_TEXT_OR_NUMBER = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b(?:True|False)\b|-?\b[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?\b"""
)


def _whole(token: str) -> str:
    """Write equal numbers of a canonical argument list in the same way: whole numbers without a decimal point."""
    if token in ("True", "False"):
        return str(int(token == "True"))
    if token[0] in "'\"" or not ("." in token or "e" in token):
        return token
    value = float(token)
    return str(int(value)) if value.is_integer() else token


def _identity(text: str, signature: ast.arguments | None, unread: set[str]) -> tuple[object, ...]:
    """Return a key that is equal for two argument lists if and only if they are the same call."""
    positional, named = read_call(text)
    if signature is None:
        return tuple(positional), frozenset(named.items())
    by_place = [*signature.posonlyargs, *signature.args]
    names = [parameter.arg for parameter in by_place]
    bound = dict(zip(names, positional, strict=False))
    if any(name in bound for name in named):  # given twice: a call that fails, different from others
        return tuple(positional), frozenset(named.items())
    bound.update(named)
    for name, default in _defaults(signature).items():
        bound.setdefault(name, default)
    if len(positional) <= len(names):
        bound = {name: "" if name in unread else value for name, value in bound.items()}
    return tuple(positional[len(names) :]), frozenset(bound.items())


def _defaults(signature: ast.arguments) -> dict[str, str]:
    """Return the default of each optional parameter, "" for one that is not a literal."""
    by_place = [*signature.posonlyargs, *signature.args]
    pairs = list(zip(reversed(by_place), reversed(signature.defaults), strict=False))
    pairs += [(p, value) for p, value in zip(signature.kwonlyargs, signature.kw_defaults, strict=True) if value]
    found: dict[str, str] = {}
    for parameter, value in pairs:
        try:
            found[parameter.arg] = canonical(ast.unparse(value))
        except (LiteralError, *UNPARSABLE):
            found[parameter.arg] = ""
    return found


def _signature(code: str) -> tuple[ast.arguments | None, set[str]]:
    """Return the parameters of the last top-level function (or lambda) ``f`` of a program, or None; and the names of
    those that are never read: none where a decorator or ``locals`` could read them.
    """
    try:
        tree = ast.parse(code)
    except UNPARSABLE:
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
    return found, names - mentioned if names & mentioned else set()  # constant programs are found by their outputs
