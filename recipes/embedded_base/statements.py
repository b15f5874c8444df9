"""Write statements other than loops: assignments, changes, branches, returns. ``pad`` is their indentation."""

from __future__ import annotations

from recipes.embedded_base.draft import Draft, Type
from recipes.embedded_base.expressions import (
    atom,
    bool_expr,
    dict_expr,
    expr,
    int_atom,
    int_expr,
    ints_expr,
    key,
    str_expr,
    strs_expr,
    tup_expr,
)


def assign(draft: Draft, pad: str) -> list[str]:
    """Bind a new variable."""
    type_: Type = draft.rng.choices(
        ("int", "str", "ints", "strs", "bool", "tup", "dict"), (7, 3, 5, 1.2, 0.8, 0.8, 0.9)
    )[0]
    value = expr(draft, type_, 2 if draft.level >= 3 and draft.rng.random() < 0.3 else 1)
    name = draft.new_name(type_)
    draft.declare(name, type_)
    return [f"{pad}{name} = {value}"]


def update(draft: Draft, pad: str) -> list[str]:
    """Change an existing variable."""
    r = draft.rng
    names = [n for n in draft.scope.types if n not in draft.scope.fixed]
    if not names:
        return assign(draft, pad)
    name = r.choice(names)
    type_ = draft.scope.types[name]
    line = update_of(draft, name, type_)
    draft.declare(name, type_)
    return [pad + line]


def update_of(draft: Draft, name: str, type_: Type) -> str:
    """Return a statement that changes the variable ``name`` of this type."""
    r = draft.rng
    match type_:
        case "int":
            if r.random() < 0.65:
                op = r.choice(("+=", "+=", "-=", "*=", "//=", "%="))
                return f"{name} {op} {draft.small(2, 4) if op in ('*=', '//=', '%=') else expr(draft, 'int', 0)}"
            return f"{name} = {int_expr(draft, 1)}"
        case "str":
            return f"{name} += {expr(draft, 'str', 0)}" if r.random() < 0.5 else f"{name} = {str_expr(draft, 1)}"
        case "ints":
            return r.choice(
                (
                    f"{name}.append({expr(draft, 'int', 1)})",
                    f"{name}.append({int_atom(draft)})",
                    f"{name}.insert(0, {int_atom(draft)})",
                    f"{name}[{r.choice(('0', '-1'))}] = {int_atom(draft)}",
                    f"{name}.pop({r.choice(('', '0'))})",
                    f"{name}.reverse()",
                    f"{name}.sort()",
                    f"{name}.extend({atom(draft, 'ints')})",
                    f"{name}.remove({int_atom(draft)})",
                    f"{name} = {ints_expr(draft, 1)}",
                    f"{name}[0], {name}[-1] = {name}[-1], {name}[0]",
                )
            )
        case "strs":
            return r.choice(
                (f"{name}.append({expr(draft, 'str', 0)})", f"{name} = {strs_expr(draft, 1)}", f"{name}.reverse()")
            )
        case "bool":
            return f"{name} = {bool_expr(draft, 1)}"
        case "tup":
            return f"{name} = {tup_expr(draft, 1)}"
        case "dict":
            return r.choice(
                (
                    f"{name}[{key(draft)}] = {int_atom(draft)}",
                    f"{name}[{key(draft)}] = {int_atom(draft)}",
                    f"{name}.pop({key(draft)}, {draft.small(0, 2)})",
                    f"{name} = {dict_expr(draft, 1)}",
                )
            )


def branch(draft: Draft, pad: str, depth: int) -> list[str]:
    """Write an if, perhaps with elif / else, whose bodies change variables or return early."""
    r = draft.rng
    lines = [f"{pad}if {bool_expr(draft, 1)}:"]
    lines += body(draft, pad + "    ", 1 if r.random() < 0.75 else 2, depth - 1)
    if r.random() < 0.15:
        lines.append(f"{pad}elif {bool_expr(draft, 0)}:")
        lines += body(draft, pad + "    ", 1, depth - 1)
    if r.random() < 0.5:
        lines.append(f"{pad}else:")
        lines += body(draft, pad + "    ", 1, depth - 1)
    return lines


def body(draft: Draft, pad: str, num: int, depth: int) -> list[str]:
    """Write an indented block that only changes existing variables (so none is unbound after it)."""
    lines: list[str] = []
    for _ in range(num):
        if depth > 0 and draft.level >= 4 and draft.rng.random() < 0.3:
            lines += branch(draft, pad, 0)
        else:
            lines += update(draft, pad) if draft.scope.types else assign(draft, pad)
    return lines


def early_return(draft: Draft, pad: str, type_: Type) -> list[str]:
    """Write a test that returns something of this type."""
    return [f"{pad}if {bool_expr(draft, 1)}:", f"{pad}    return {atom(draft, type_)}"]


def unpack(draft: Draft, pad: str) -> list[str]:
    """Bind or swap two ints at once, or bind a new variable where there are none."""
    ints = [v for v, t in draft.scope.types.items() if t == "int" and v not in draft.scope.fixed]
    if len(ints) >= 2:
        u, v = draft.rng.sample(ints, 2)
        right = draft.rng.choice((f"{v}, {u}", f"{v}, {u} + {v}", f"{u} + {v}, {u}"))
        draft.declare(u, "int")
        draft.declare(v, "int")
        return [f"{pad}{u}, {v} = {right}"]
    return assign(draft, pad)


def chain(draft: Draft, pad: str) -> list[str]:
    """Write a chain of tests that each return."""
    r = draft.rng
    type_: Type = r.choices(("str", "int", "bool"), (2, 2, 1))[0]
    lines = []
    for word in ("if", *(["elif"] if r.random() < 0.5 else [])):
        lines += [
            f"{pad}{word} {bool_expr(draft, 1)}:",
            f"{pad}    return {expr(draft, type_, 0 if r.random() < 0.5 else 1)}",
        ]
    if r.random() < 0.3:
        return [*lines, f"{pad}else:", f"{pad}    return {expr(draft, type_, 1)}"]
    return [*lines, f"{pad}return {expr(draft, type_, 1)}"]
