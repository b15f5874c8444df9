"""Write loops that fold a source into an accumulator or search in it."""

from __future__ import annotations

from collections.abc import Callable

from recipes.embedded_base.draft import LETTERS, NAMES, Draft, Type
from recipes.embedded_base.expressions import int_atom
from recipes.embedded_base.statements import update_of

Head = tuple[str, list[tuple[str, Type]], str]
"""A loop's head, its variables with types, and the variable it iterates over ("" if none)."""


def loop(draft: Draft, pad: str) -> list[str]:
    """Write a loop that folds something into an accumulator."""
    r = draft.rng
    lines: list[str] = []
    acc_type: Type = r.choices(("int", "ints", "str", "dict", "strs"), (6, 4, 2, 1, 0.7))[0]
    existing = [v for v, t in draft.scope.types.items() if t == acc_type and v not in draft.scope.fixed]
    if existing and r.random() < 0.25:
        acc = r.choice(existing)
    else:
        acc = draft.new_name(acc_type)
        start = {"int": r.choice(("0", "0", "0", "1")), "ints": "[]", "str": "''", "dict": "{}", "strs": "[]"}[acc_type]
        lines.append(f"{pad}{acc} = {start}")
    head, loop_vars, source = loop_head(draft, acc)
    lines.append(f"{pad}{head}")
    outer = dict(draft.scope.types)
    fixed = set(draft.scope.fixed)
    draft.scope.fixed |= {n for n, _ in loop_vars} | {source}
    for name, type_ in loop_vars:
        if name.isidentifier():  # xs[i] is not a loop variable, but is read like one
            draft.declare(name, type_)
    draft.declare(acc, acc_type)
    lines += loop_body(draft, pad + "    ", acc, acc_type, loop_vars)
    draft.scope.types = {**outer, acc: acc_type}
    draft.scope.fresh = [v for v in draft.scope.fresh if v in draft.scope.types and v != acc] + [acc]
    draft.scope.fixed = fixed
    return lines


def loop_head(draft: Draft, acc: str) -> Head:
    """Draw the source of a loop from the variables in scope."""
    r = draft.rng
    known = {t: [v for v, u in draft.scope.types.items() if u == t and v != acc] for t in NAMES}

    def loop_name(*options: str) -> str:
        return r.choice([o for o in options if o not in draft.scope.types and o != acc] or ["z"])

    def over(type_: Type, element: Type, names: tuple[str, ...]) -> Head:
        source, v = draft.pick(type_) or "", loop_name(*names)
        return f"for {v} in {source}:", [(v, element)], source

    def enumerated(type_: Type, element: Type, name: str) -> Head:
        source, v = draft.pick(type_) or "", loop_name(name)
        i = loop_name("i", "j")
        return f"for {i}, {v} in enumerate({source}):", [(i, "int"), (v, element)], source

    def zipped() -> Head:
        first, second = r.sample(known["ints"], 2)
        u, v = loop_name("x", "u"), loop_name("y", "v")
        return f"for {u}, {v} in zip({first}, {second}):", [(u, "int"), (v, "int")], first

    def items() -> Head:
        source = draft.pick("dict") or ""
        return f"for k, v in {source}.items():", [("k", "str"), ("v", "int")], source

    def ranged() -> Head:
        i = loop_name("i", "j")
        bound = r.choice([*known["int"], *known["int"], draft.small(2, 5)])
        if bound in known["int"] and bound in draft.scope.fresh:
            draft.scope.fresh.remove(bound)
        start = r.choice(("", "", "", "1, "))
        return f"for {i} in range({start}{bound}):", [(i, "int")], bound if bound in known["int"] else ""

    def indexed() -> Head:
        source, i = draft.pick("ints") or "", loop_name("i", "j")
        start = r.choice(("", "", "1, "))
        return f"for {i} in range({start}len({source})):", [(i, "int"), (f"{source}[{i}]", "int")], source

    free = acc != "k" and not {"k", "v"} & draft.scope.types.keys()
    choices: list[tuple[bool, float, Callable[[], Head]]] = [
        (bool(known["ints"]), 6, lambda: over("ints", "int", ("x", "v", "y", "e"))),
        (bool(known["ints"]), 2, lambda: enumerated("ints", "int", r.choice(("x", "v")))),
        (len(known["ints"]) >= 2, 2.5, zipped),
        (bool(known["str"]), 4, lambda: over("str", "str", ("c", "ch"))),
        (bool(known["str"]), 1, lambda: enumerated("str", "str", "c")),
        (bool(known["strs"]), 3, lambda: over("strs", "str", ("w", "t"))),
        (bool(known["dict"]) and free, 3, items),
        (bool(known["tup"]), 1, lambda: over("tup", "int", ("x", "v"))),
        (True, 2.5, ranged),
        (bool(known["ints"]), 2.5, indexed),
    ]
    possible = [(weight, make) for is_possible, weight, make in choices if is_possible]
    return r.choices([make for _, make in possible], [weight for weight, _ in possible])[0]()


def loop_body(draft: Draft, pad: str, acc: str, acc_type: Type, loop_vars: list[tuple[str, Type]]) -> list[str]:
    """Write the body of a loop that folds its variables into the accumulator ``acc``, sometimes under a test."""
    r = draft.rng
    lines: list[str] = []
    if draft.level >= 4 and acc_type in ("int", "ints") and r.random() < 0.1:
        inner = nested(draft, pad, acc, acc_type, loop_vars)
        if inner:
            return inner
    step = fold(draft, acc, acc_type, loop_vars)
    roll = r.random()
    if draft.level <= 3 and roll < 0.45:
        lines.append(pad + step)
    elif roll < 0.8:
        lines.append(f"{pad}if {loop_test(draft, acc, acc_type, loop_vars)}:")
        escape = r.random()
        if escape < 0.12:
            lines += [f"{pad}    {r.choice(('continue', 'break'))}", pad + step]
        else:
            lines.append(f"{pad}    {step}")
            if r.random() < 0.5:
                lines += [f"{pad}else:", f"{pad}    {fold(draft, acc, acc_type, loop_vars)}"]
    else:
        lines.append(pad + step)
        if draft.level >= 4 or r.random() < 0.4:
            lines.append(f"{pad}if {loop_test(draft, acc, acc_type, loop_vars)}:")
            lines.append(f"{pad}    {fold(draft, acc, acc_type, loop_vars)}")
    others = [v for v, t in draft.scope.types.items() if t == "int" and v not in draft.scope.fixed and v != acc]
    if others and draft.level >= 3 and r.random() < 0.3:
        name = r.choice(others)
        lines.append(f"{pad}{update_of(draft, name, 'int')}")
        draft.declare(name, "int")
    return lines


def nested(draft: Draft, pad: str, acc: str, acc_type: Type, loop_vars: list[tuple[str, Type]]) -> list[str]:
    """Write an inner loop that folds pairs; [] when the outer loop has no number to pair."""
    r = draft.rng
    outer = [n for n, t in loop_vars if t == "int"]
    y = next((n for n in ("y", "z", "u") if n not in draft.scope.types and n != acc), None)
    if not outer or y is None:
        return []
    sources = [v for v, t in draft.scope.types.items() if t == "ints" and v != acc]
    source = r.choice([*sources, *sources, f"range({draft.small(2, 3)})"])
    pair = r.choice((f"{outer[0]} * {y}", f"{outer[0]} + {y}", f"{outer[0]} - {y}"))
    step = f"{acc} += {pair}" if acc_type == "int" else f"{acc}.append({pair})"
    lines = [f"{pad}for {y} in {source}:"]
    if r.random() < 0.6:
        lines.append(f"{pad}    if {outer[0]} {r.choice(('<', '>', '!=', '=='))} {y}:")
        return [*lines, f"{pad}        {step}"]
    return [*lines, f"{pad}    {step}"]


def loop_test(draft: Draft, acc: str, acc_type: Type, loop_vars: list[tuple[str, Type]]) -> str:
    """Return a test of one of the loop's variables, sometimes against the accumulator."""
    r = draft.rng
    name, type_ = r.choice(loop_vars)
    if type_ == "int":
        bound = int_atom(draft) if r.random() < 0.5 else draft.small(1, 6)
        options = [
            f"{name} > {bound}",
            f"{name} < {bound}",
            f"{name} % 2 == {r.randint(0, 1)}",
            f"{name} % 3 == {r.randint(0, 1)}",
            f"{name} != {bound}",
        ]
        if acc_type == "int":
            options += [f"{name} > {acc}", f"{acc} < {bound}", f"{acc} % 2 == 0"]
        if acc_type == "ints":
            options += [f"{name} not in {acc}", f"len({acc}) < {draft.small(2, 3)}"]
        return r.choice(options)
    options = [
        f"{name} == {r.choice(LETTERS)!r}",
        f"{name} > {r.choice(LETTERS)!r}",
        f"{name} in {''.join(r.sample(LETTERS, 3))!r}",
        f"{name} in 'aeo'",
    ]
    if acc_type in ("strs", "str"):
        options.append(f"{name} not in {acc}")
    return r.choice(options)


def fold(draft: Draft, acc: str, acc_type: Type, loop_vars: list[tuple[str, Type]]) -> str:
    """Return the statement that folds the loop's variables into the accumulator."""
    r = draft.rng
    name, type_ = r.choice(loop_vars)
    ints = [n for n, t in loop_vars if t == "int"]
    number = {"int": name, "str": f"len({name})"}.get(type_, name)
    if len(ints) == 2 and r.random() < 0.6:
        number = r.choice(
            (
                f"{ints[0]} * {ints[1]}",
                f"{ints[0]} + {ints[1]}",
                f"{ints[0]} - {ints[1]}",
                f"max({ints[0]}, {ints[1]})",
            )
        )
    elif type_ == "int" and r.random() < 0.45:
        operand = int_atom(draft) if r.random() < 0.5 else draft.small(1, 4)
        number = r.choice(
            (
                f"{name} * {draft.small(2, 3)}",
                f"{name} + {operand}",
                f"{name} - {operand}",
                f"{name} % {draft.small(2, 4)}",
                f"{name} * {name}",
            )
        )
    if draft.scope.helper and draft.scope.helper[1:] == ("int", "int") and type_ == "int" and r.random() < 0.7:
        number = f"{draft.scope.helper[0]}({name})"
    return _statement(draft, acc, acc_type, name, type_, number)


def _statement(draft: Draft, acc: str, acc_type: Type, name: str, type_: Type, number: str) -> str:
    """Return the statement that folds ``name``, or the ``number`` made of it, into the accumulator."""
    r = draft.rng
    text = name if type_ == "str" else f"str({name})"
    match acc_type:
        case "int":
            if type_ == "str" and r.random() < 0.7:
                number = "1"
            return r.choice(
                (
                    f"{acc} += {number}",
                    f"{acc} += {number}",
                    f"{acc} += 1",
                    f"{acc} -= {number}",
                    f"{acc} = {acc} * 2 + {number}" if " " not in number else f"{acc} += {number}",
                    f"{acc} = max({acc}, {number})",
                    f"{acc} = ({acc} + {number}) % {draft.small(3, 9)}",
                    f"{acc} = {number} - {acc}",
                )
            )
        case "ints":
            return r.choice(
                (
                    f"{acc}.append({number})",
                    f"{acc}.append({number})",
                    f"{acc}.append({number})",
                    f"{acc} = [{number}] + {acc}",
                    f"{acc}.insert(0, {number})",
                    f"{acc}.append({number} + len({acc}))",
                )
            )
        case "str":
            changed = r.choice((text, text, f"{text} * 2", f"{text}.upper()", f"{text} + '-'"))
            return r.choice((f"{acc} += {changed}", f"{acc} = {changed} + {acc}"))
        case "strs":
            return r.choice(
                (
                    f"{acc}.append({text})",
                    f"{acc}.append({text}.upper())",
                    f"{acc}.append({text} + {text})",
                    f"{acc} = [{text}] + {acc}",
                )
            )
        case "dict":
            return r.choice(
                (
                    f"{acc}[{name}] = {acc}.get({name}, 0) + 1",
                    f"{acc}[{name}] = {number}",
                    f"{acc}[{name}] = len({acc})",
                )
            )
        case _:
            raise ValueError(acc_type)


def search(draft: Draft, pad: str) -> list[str]:
    """Write a loop that returns the first element that passes a test, and a return for when none does."""
    r = draft.rng
    head, loop_vars, _ = loop_head(draft, "")
    for name, type_ in loop_vars:
        if name.isidentifier():
            draft.declare(name, type_, fresh=False)
    name, type_ = r.choice(loop_vars)
    test = loop_test(draft, "", "bool", loop_vars)
    if r.random() < 0.35:
        found, otherwise = r.choice((("True", "False"), ("False", "True")))
    else:
        found = r.choice((name, f"{name} + {name}" if type_ == "str" else f"{name} * 2", loop_vars[0][0]))
        otherwise = r.choice(("''", "'none'", "None")) if type_ == "str" else r.choice(("-1", "0", "None"))
    return [f"{pad}{head}", f"{pad}    if {test}:", f"{pad}        return {found}", f"{pad}return {otherwise}"]


def while_loop(draft: Draft, pad: str) -> list[str]:
    """Write a while loop that ends: digits of a number, halving, counting up or down, emptying a list."""
    r = draft.rng
    n = next((v for v, t in draft.scope.types.items() if t == "int" and v not in draft.scope.fixed), None)
    xs = next((v for v, t in draft.scope.types.items() if t == "ints" and v not in draft.scope.fixed), None)
    acc = draft.new_name("int")
    if xs and (n is None or r.random() < 0.35):
        lines = [f"{pad}{acc} = 0", f"{pad}while {r.choice((xs, f'len({xs}) > 1'))}:"]
        steps = (f"{acc} += {xs}.pop()", f"{acc} = {xs}.pop(0) - {acc}", f"{acc} += {xs}.pop(0) * 2")
        lines.append(f"{pad}    {r.choice(steps)}")
    elif n:
        kind = r.random()
        start = r.choice(("0", "0", "1"))
        if kind < 0.3:
            step = r.choice((f"{acc} += {n} % 10", f"{acc} = {acc} * 10 + {n} % 10", f"{acc} += 1"))
            lines = [f"{pad}{acc} = 0", f"{pad}while {n} > 0:", f"{pad}    {step}", f"{pad}    {n} //= 10"]
        elif kind < 0.65:
            step = r.choice((f"{acc} += {n}", f"{acc} += 2", f"{acc} = {n} - {acc}"))
            down = r.choice((f"{n} -= {draft.small(1, 4)}", f"{n} //= 2"))
            lines = [
                f"{pad}{acc} = {start}",
                f"{pad}while {n} > {r.choice(('0', '1', '2'))}:",
                f"{pad}    {step}",
                f"{pad}    {down}",
            ]
        else:
            grow = r.choice(
                (f"{acc} += {draft.small(2, 4)}", f"{acc} = {acc} * 2 + 1", f"{acc} *= 2", f"{acc} += {acc}")
            )
            lines = [f"{pad}{acc} = {draft.small(1, 2)}", f"{pad}while {acc} < {n}:", f"{pad}    {grow}"]
    else:
        return loop(draft, pad)
    draft.declare(acc, "int")
    return lines
