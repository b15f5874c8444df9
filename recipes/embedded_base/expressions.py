"""Write expressions of every type over the variables in scope. ``depth`` bounds their nesting."""

from __future__ import annotations

from recipes.embedded_base.draft import LETTERS, Draft, Type


def expr(draft: Draft, type_: Type, depth: int = 1) -> str:
    """Return an expression of this type; ``depth`` bounds its nesting."""
    makers = {
        "int": int_expr,
        "bool": bool_expr,
        "str": str_expr,
        "ints": ints_expr,
        "strs": strs_expr,
        "tup": tup_expr,
        "dict": dict_expr,
    }
    helper = draft.scope.helper
    if helper and helper[2] == type_ and draft.rng.random() < 0.4:
        return f"{helper[0]}({atom(draft, helper[1])})"
    if depth <= 0:
        return atom(draft, type_)
    return makers[type_](draft, depth)


def atom(draft: Draft, type_: Type) -> str:
    """Return a variable of this type, or a literal."""
    name = draft.pick(type_)
    if name and draft.rng.random() < 0.88:
        return name
    r = draft.rng
    match type_:
        case "int":
            return str(r.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 12)))
        case "bool":
            return r.choice(("True", "False"))
        case "str":
            return repr("".join(r.choice(LETTERS) for _ in range(r.choice((1, 1, 2, 3)))))
        case "ints":
            return "[" + ", ".join(str(r.randint(0, 9)) for _ in range(r.randint(1, 3))) + "]"
        case "strs":
            return "[" + ", ".join(repr(r.choice(LETTERS)) for _ in range(r.randint(1, 3))) + "]"
        case "tup":
            return f"({int_atom(draft)}, {int_atom(draft)})"
        case "dict":
            return "{" + ", ".join(f"{k!r}: {r.randint(0, 9)}" for k in r.sample("abcxyz", r.randint(1, 2))) + "}"


def int_atom(draft: Draft) -> str:
    """Return an int variable, or a small number."""
    return atom(draft, "int")


def int_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``int``."""
    r = draft.rng

    def arithmetic() -> str:
        op = r.choice(("+", "+", "-", "-", "*", "%", "//"))
        left = expr(draft, "int", depth - 1)
        if " " in left:
            left = f"({left})"
        if op in ("%", "//"):
            return f"{left} {op} {draft.small(2, 7)}"
        if op == "*":
            return f"{left} * {draft.small(2, 4) if r.random() < 0.7 else int_atom(draft)}"
        return f"{left} {op} {int_atom(draft)}"

    return draft.choose(
        [
            (6, "int", arithmetic),
            (1, None, arithmetic),
            (2, "ints", lambda: f"{r.choice(('sum', 'len', 'max', 'min', 'len'))}({atom(draft, 'ints')})"),
            (1.5, "ints", lambda: f"{draft.pick('ints')}[{r.choice(('0', '-1', '1', '-2'))}]"),
            (0.6, "ints", lambda: f"{draft.pick('ints')}.count({int_atom(draft)})"),
            (0.3, "ints", lambda: f"{draft.pick('ints')}.index({int_atom(draft)})"),
            (1, "str", lambda: f"len({draft.pick('str')})"),
            (1, "str", lambda: f"{draft.pick('str')}.count({r.choice(LETTERS)!r})"),
            (0.4, "str", lambda: f"{draft.pick('str')}.find({r.choice(LETTERS)!r})"),
            (0.8, "strs", lambda: f"len({draft.pick('strs')})"),
            (1.2, "tup", lambda: f"{draft.pick('tup')}[{r.choice(('0', '1', '-1'))}]"),
            (1.2, "dict", lambda: f"{draft.pick('dict')}.get({key(draft)}, {draft.small(0, 3)})"),
            (
                0.8,
                "dict",
                lambda: r.choice(("len({})", "sum({}.values())", "max({}.values())")).format(draft.pick("dict")),
            ),
            (0.8, "int", lambda: f"{r.choice(('max', 'min'))}({int_atom(draft)}, {int_atom(draft)})"),
            (0.6, "int", lambda: f"abs({expr(draft, 'int', depth - 1)})"),
            (0.7, "int", lambda: f"{int_atom(draft)} if {bool_expr(draft, 0)} else {int_atom(draft)}"),
            (0.5, "ints", lambda: sum_of(draft)),
            (0.3, "int", lambda: f"int(str({draft.pick('int')})[::-1])"),
        ]
    )


def sum_of(draft: Draft) -> str:
    """Return a sum over the elements of a list that pass a test."""
    source = draft.pick("ints")
    v = draft.rng.choice(("v", "i"))
    body = draft.rng.choice((f"{v} * 2", f"{v} * {v}", v, "1", f"{v} + 1"))
    return f"sum({body} for {v} in {source} if {element_test(draft, v)})"


def key(draft: Draft) -> str:
    """Return a key of a dictionary: a str variable, or a letter."""
    name = draft.pick("str") if draft.rng.random() < 0.3 else None
    return name or repr(draft.rng.choice("abcxyz"))


def element_test(draft: Draft, v: str) -> str:
    """Return a test of the number ``v``, an element of a list."""
    r = draft.rng
    bound = int_atom(draft) if r.random() < 0.4 else draft.small(0, 6)
    return r.choice(
        (f"{v} > {bound}", f"{v} < {bound}", f"{v} % 2 == {r.randint(0, 1)}", f"{v} != {bound}", f"{v} >= {bound}")
    )


def bool_expr(draft: Draft, depth: int = 0) -> str:
    """Return an expression of type ``bool``."""
    r = draft.rng

    def compare() -> str:
        left = int_expr(draft, 1) if depth > 0 and r.random() < 0.5 else int_atom(draft)
        return f"{left} {r.choice(('>', '<', '>=', '<=', '==', '!='))} {int_atom(draft)}"

    return draft.choose(
        [
            (3, "int", compare),
            (0.2, None, compare),
            (1.5, "int", lambda: f"{draft.pick('int')} % {r.choice((2, 2, 3))} == {r.randint(0, 1)}"),
            (1, "ints", lambda: f"{int_atom(draft)} {r.choice(('in', 'in', 'not in'))} {draft.pick('ints')}"),
            (1, "ints", lambda: f"len({draft.pick('ints')}) {r.choice(('>', '<', '=='))} {draft.small(2, 4)}"),
            (0.8, "ints", lambda: f"{draft.pick('ints')}[0] {r.choice(('>', '<'))} {int_atom(draft)}"),
            (1, "str", lambda: f"{r.choice(LETTERS)!r} in {draft.pick('str')}"),
            (0.7, "str", lambda: f"{draft.pick('str')}[{r.choice(('0', '-1'))}] == {r.choice(LETTERS)!r}"),
            (0.5, "str", lambda: f"{draft.pick('str')}.{r.choice(('isdigit', 'isalpha', 'islower', 'isupper'))}()"),
            (
                0.5,
                "str",
                lambda: f"{draft.pick('str')}.{r.choice(('startswith', 'endswith'))}({r.choice(LETTERS)!r})",
            ),
            (0.7, "str", lambda: f"len({draft.pick('str')}) {r.choice(('>', '<', '=='))} {draft.small(2, 4)}"),
            (0.7, "dict", lambda: f"{key(draft)} {r.choice(('in', 'not in'))} {draft.pick('dict')}"),
            (1, "bool", lambda: r.choice(("{}", "not {}")).format(draft.pick("bool"))),
            (0.5, "bool", lambda: f"{draft.pick('bool')} {r.choice(('and', 'or'))} {bool_expr(draft, 0)}"),
            (0.5, "int", lambda: f"{compare()} {r.choice(('and', 'or'))} {compare()}"),
            (
                0.3,
                "ints",
                lambda: f"{r.choice(('any', 'all'))}(v > {draft.small(0, 5)} for v in {draft.pick('ints')})",
            ),
        ]
    )


def str_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``str``."""
    r = draft.rng
    s = lambda: draft.pick("str")  # noqa: E731  (a one-word alias keeps the table readable)
    sep = lambda: repr(r.choice(("", "-", " ", ",")))  # noqa: E731
    return draft.choose(
        [
            (2, "str", lambda: f"{s()} + {expr(draft, 'str', 0)}"),
            (0.5, "str", lambda: f"{expr(draft, 'str', 0)} + {s()}"),
            (1.2, "str", lambda: f"{s()}[::-1]"),
            (
                1.5,
                "str",
                lambda: f"{s()}{r.choice(('[1:]', '[:-1]', '[:2]', '[-2:]', '[2:]', '[::2]', '[0]', '[-1]'))}",
            ),
            (
                1.2,
                "str",
                lambda: f"{s()}.{r.choice(('upper', 'lower', 'title', 'capitalize', 'swapcase', 'strip'))}()",
            ),
            (1, "str", lambda: f"{s()}.replace({r.choice(LETTERS)!r}, {r.choice((*LETTERS, ''))!r})"),
            (0.7, "str", lambda: f"{s()} * {draft.small(2, 3)}"),
            (1, "int", lambda: f"str({expr(draft, 'int', depth - 1)})"),
            (1, "strs", lambda: f"{sep()}.join({expr(draft, 'strs', 0)})"),
            (0.6, "str", lambda: f"''.join(sorted({s()}))"),
            (
                0.6,
                "str",
                lambda: f"''.join(c for c in {s()} if c {r.choice(('!=', '>', '<'))} {r.choice(LETTERS)!r})",
            ),
            (0.6, "ints", lambda: f"{sep()}.join(str(v) for v in {draft.pick('ints')})"),
            (0.5, "strs", lambda: f"{draft.pick('strs')}[{r.choice(('0', '-1'))}]"),
            (0.5, "str", lambda: f"{s()} if {bool_expr(draft, 0)} else {expr(draft, 'str', 0)}"),
            (0.3, None, lambda: atom(draft, "str")),
        ]
    )


def ints_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``ints``."""
    r = draft.rng
    xs = lambda: draft.pick("ints")  # noqa: E731
    return draft.choose(
        [
            (
                1.5,
                "ints",
                lambda: f"{xs()} + {expr(draft, 'ints', 0) if r.random() < 0.5 else '[' + int_atom(draft) + ']'}",
            ),
            (1, "ints", lambda: f"{xs()}[::-1]"),
            (1.5, "ints", lambda: f"{xs()}{r.choice(('[1:]', '[:-1]', '[:2]', '[-2:]', '[2:]', '[::2]', '[:3]'))}"),
            (0.8, "int", lambda: f"list(range({draft.pick('int')}))"),
            (1.2, "ints", lambda: f"sorted({xs()}{r.choice(('', '', ', reverse=True'))})"),
            (0.5, "ints", lambda: f"sorted(set({xs()}))"),
            (3, "ints", lambda: comprehension(draft)),
            (0.4, "ints", lambda: f"{xs()} * 2"),
            (0.6, "strs", lambda: f"[len(w) for w in {draft.pick('strs')}]"),
            (
                0.6,
                "str",
                lambda: (
                    f"[{r.choice(('i', 'i + 1'))} for i, c in enumerate({draft.pick('str')})"
                    f" if c == {r.choice(LETTERS)!r}]"
                ),
            ),
            (0.6, "dict", lambda: f"{r.choice(('list', 'sorted'))}({draft.pick('dict')}.values())"),
            (0.5, "tup", lambda: f"list({draft.pick('tup')})"),
            (0.7, "int", lambda: f"[{int_atom(draft)}, {int_atom(draft)}]"),
            (
                0.6,
                "int",
                lambda: f"[{r.choice(('i', 'i * 2', 'i * i', 'i + 1'))} for i in range({draft.pick('int')})]",
            ),
            (
                0.4,
                "ints",
                lambda: (
                    f"[{r.choice(('x + y', 'x * y', 'x - y', 'max(x, y)'))}"
                    f" for x, y in zip({xs()}, {atom(draft, 'ints')})]"
                ),
            ),
            (0.2, None, lambda: atom(draft, "ints")),
        ]
    )


def comprehension(draft: Draft) -> str:
    """Return a list comprehension over numbers, often with a test."""
    r = draft.rng
    source = draft.pick("ints")
    v = r.choice(("v", "i", "e"))
    if v in draft.scope.types:
        v = "v"
    operand = int_atom(draft) if r.random() < 0.5 else draft.small(1, 5)
    body = r.choice(
        (
            v,
            f"{v} + {operand}",
            f"{v} * {draft.small(2, 3)}",
            f"{v} - {operand}",
            f"{v} % {draft.small(2, 5)}",
            f"{v} * {v}",
            f"abs({v})",
        )
    )
    test = f" if {element_test(draft, v)}" if body == v or r.random() < 0.45 else ""
    return f"[{body} for {v} in {source}{test}]"


def strs_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``strs``."""
    r = draft.rng
    ws = lambda: draft.pick("strs")  # noqa: E731
    return draft.choose(
        [
            (1, "str", lambda: f"list({draft.pick('str')})"),
            (0.7, "str", lambda: f"sorted(set({draft.pick('str')}))"),
            (0.8, "str", lambda: f"{draft.pick('str')}.split({r.choice(LETTERS)!r})"),
            (
                1,
                "str",
                lambda: f"[c {r.choice(('* 2', '+ ' + repr(r.choice(LETTERS))))} for c in {draft.pick('str')}]",
            ),
            (
                1.5,
                "strs",
                lambda: (
                    f"[w{r.choice(('[::-1]', '.upper()', '[0]', '[1:]', ' + ' + repr(r.choice(LETTERS))))}"
                    f" for w in {ws()}]"
                ),
            ),
            (
                1,
                "strs",
                lambda: (
                    f"[w for w in {ws()}"
                    f" if {r.choice(('len(w) > 2', 'len(w) < 4', repr(r.choice(LETTERS)) + ' in w'))}]"
                ),
            ),
            (0.8, "strs", lambda: f"sorted({ws()}{r.choice(('', ', key=len', ', reverse=True'))})"),
            (0.6, "strs", lambda: f"{ws()}{r.choice(('[::-1]', '[1:]', '[:2]'))}"),
            (0.6, "strs", lambda: f"{ws()} + [{expr(draft, 'str', 0)}]"),
            (0.6, "dict", lambda: f"{r.choice(('sorted', 'list'))}({draft.pick('dict')})"),
            (0.5, "ints", lambda: f"[str(v) for v in {draft.pick('ints')}]"),
            (0.2, None, lambda: atom(draft, "strs")),
        ]
    )


def tup_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``tup``."""
    return draft.choose(
        [
            (2, None, lambda: f"({expr(draft, 'int', depth - 1)}, {expr(draft, 'int', depth - 1)})"),
            (1, "tup", lambda: f"{draft.pick('tup')}[::-1]"),
            (0.7, "ints", lambda: f"tuple({expr(draft, 'ints', depth - 1)})"),
            (0.7, "ints", lambda: "(min({0}), max({0}))".format(draft.pick("ints"))),
            (0.5, "tup", lambda: f"{draft.pick('tup')} + ({int_atom(draft)},)"),
            (0.4, "int", lambda: f"divmod({draft.pick('int')}, {draft.small(2, 5)})"),
        ]
    )


def dict_expr(draft: Draft, depth: int) -> str:
    """Return an expression of type ``dict``."""
    r = draft.rng
    return draft.choose(
        [
            (1, "str", lambda: "{{c: {0}.count(c) for c in {0}}}".format(draft.pick("str"))),
            (1, "ints", lambda: f"{{v: v {r.choice(('* 2', '+ 1', '* v', '% 3'))} for v in {draft.pick('ints')}}}"),
            (1, "strs", lambda: f"{{w: len(w) for w in {draft.pick('strs')}}}"),
            (
                1.2,
                "dict",
                lambda: f"{{k: v {r.choice(('+ 1', '* 2', '- 1'))} for k, v in {draft.pick('dict')}.items()}}",
            ),
            (0.8, "dict", lambda: f"{{k: v for k, v in {draft.pick('dict')}.items() if v > {draft.small(0, 5)}}}"),
            (0.7, "strs", lambda: f"dict(zip({draft.pick('strs')}, {atom(draft, 'ints')}))"),
            (0.5, None, lambda: f"{{{key(draft)}: {int_atom(draft)}}}"),
        ]
    )
