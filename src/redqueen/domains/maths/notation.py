"""The final answer in a model's text, and a normal form for the many spellings of mathematics."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from unicodedata import lookup, normalize

from redqueen.domains.frames import last_answer, split_thought

_GREEK = "alpha beta gamma delta epsilon zeta eta theta kappa lamda mu nu xi pi rho sigma tau phi chi psi omega"
_LETTERS = {lookup(f"GREEK SMALL LETTER {name}"): name.replace("lamda", "lambda") for name in _GREEK.split()}
_SIGNS = str.maketrans(
    {letter: f"\\{name} " for letter, name in _LETTERS.items()}
    | {letter.upper(): f"\\{name.capitalize()} " for letter, name in _LETTERS.items()}
    | {sign: "-" for sign in "‐‑‒–−"}
    | dict(zip("０１２３４５６７８９∶∣’", "0123456789:|'", strict=True))
    | {sign: "" for sign in "\u200b\u2060\u2061\u2062\u2063\ufe0f\ufeff✓✔✅"}
    | {sign: f" {normalize('NFKC', sign).replace('⁄', '/')}" for sign in "½⅓⅔¼¾⅐⅑⅒⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
    | {letter: f"\\mathbb{{{normalize('NFKC', letter)}}}" for letter in "ℂℕℚℝℤ"}
    | {
        "⁄": "/", "∕": "/", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ", "∞": "\\infty ",
        "≤": "\\le ", "⩽": "\\le ", "≦": "\\le ", "≥": "\\ge ", "⩾": "\\ge ", "≧": "\\ge ", "≠": "\\ne ", "±": "\\pm ",
        "∓": "\\mp ", "∪": "\\cup ", "⋃": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "°": "^\\circ ", "º": "^\\circ ",
        "˚": "^\\circ ", "√": " sqrt ", "∛": "\\sqrt[3]", "∜": "\\sqrt[4]", "∅": "\\emptyset ", "Ø": "\\emptyset ",
        "∨": "\\lor ", "∧": "\\land ", "“": '"', "”": '"', "∠": "\\angle ", "∖": "\\setminus ", "∘": "^\\circ ",
    }
)  # fmt: skip
_RAISED, _LOWERED = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+"), re.compile("[₀-₉]+")
_MARKDOWN = "*_#` \n\t"
_GROUP = r"(\{[^{}]*\}|[0-9])"
_CIRC = r"(?:\^\s*\{?\s*\^?\s*\\circ\s*\}?|(?<=[0-9])\^\{?o\}?(?![a-z])|\\degree(?![a-zA-Z]))\s*"
_BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "twelve": 12}
_BASES |= {"ten": 10, "sixteen": 16, "binary": 2, "octal": 8, "hex": 16}
_RESPELLED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"(?<![*_`])[*_`]+\.$|~~.*?~~|</?(?:b|i|u|em|strong|span|font|mark)(?: [^<>]*)?>|(?<!\\)\$", " "),
    (r"\bU\.?S\.?(?= *(?:\\\$|\d|dollars))", ""),
    (r"\\\\\s*\[-?[0-9.]+ ?[a-z]+\]", r"\\\\"),
    (
        r"\\(?:(?:left|right|(?:display|text|script)style|[bB]igg?[lr]?|limits|tiny|normalsize|[lL]arge|LARGE|[hH]uge|small|"
        r"underline|(?:math)?(?:bf|it|tt|em|sf|cal|frak|normal|op)|bold(?:symbol)?|bm|pmb|ensuremath|therefore|checkmark)"
        r"(?![a-zA-Z])|(?:[hv]space|phantom|fcolorbox\{[^{}]*\})\{[^{}]*\}|(?:begin|end)\{(?:align|equation|gather)(?:ed)?\*?\}|(?:text)?color(?:box)?(?:\[\w+\])?\s*\{[^{}]+\})",
        "",
    ),
    (r"\\mathrm\s*\{\s*([dei])\s*\}|\\rm(?=[ ~]*[-\d])", r"\1"),
    (r"\{\s*\\rm(?= )([^{}]*)\}", r"\\text{\1}"),
    (r"(?<=\d)\s*[(\[]([a-z]{2,20}s?)[)\]]$", r" \1"),
    (r"^(.*[\\/].*?)\s*\\approx\s*-?[0-9]*\.[0-9]+$", r"\1"),
    (r"\\(?:[mh]box|mathrm|rm|text(?:rm|bf|it|tt|sf|sc|normal)|emph|operatorname|si|unit)(?![a-zA-Z])", r"\\text"),
    (r"(?s)^(?:\\text\s*)?\{(.*)\}$", lambda all: all[1] if _closing(f"{all[1]}}}", 0) == len(all[1]) else all[0]),
    (r"(?<![.,;\\])(?:[.,;]|\\text\s*\{\s*[.]\s*\}|\\\\?)\s*$", ""),
    (r"^\\text\s*\{[A-Za-z ]*(?:answer is|:)\s*\}\s*", ""),
    (r"^(?:\\(?:overline|overrightarrow|widehat|hat|vec|bar)\s*)?\{([A-Za-z]+)\}\s*(?==)", r"\1 "),
    (r"^[\"'](.*)[\"']$", r"\1"),
    (r"\\text\s*\{\s*(\\?[$%]|\^\\circ|[-:])\s*\}|\{([-:]?)\}", r"\1\2"),
    (
        r"^(-?)\s*(?:US)?(\\\$|USD|[€£¥₹]|EUR|Rs\.?)\s*(?=[-0-9.\\])(.*?)((?: *(?:/ *[a-z]|per ).*)?)$",
        lambda money: f"{money[1]}{money[3]} \\text{{{'USD' if '$' in money[2] else money[2].strip('.')}}}{money[4]}",
    ),
    (r"(?<=[0-9}])\s*([€£¥¢₹])$", r" \\text{\1}"),
    (r"\\!\s*|\\\$|\\[()\[\]]", ""),
    (r"\b([apAP])\.([mM])\b\.?", r"\1\2"),
    (r"(?<=[0-9]):00(?=[^0-9]*[apAP][mM]\b)", ""),
    (r"(?<!\\)\\[,;:> ]|~|\\q?quad(?![a-zA-Z])|\s+", " "),
    (r"(?:(?:^|(?<=\s))\*\*|^)([^*]*[^*\s])\*\*(?=$|[\s.,:])", r"\1"),
    (r"\*\*", "^"),
    (r"(?:\\text\{ *)?plus or minus(?: *\})?", r"\\pm "),
    (r"\b(?:np|numpy|math|sympy)\.(?=[a-z])", ""),
    (r"<=|\\([lg]e)q(?:slant)?(?![a-zA-Z])", lambda order: f"\\{order[1] or 'le'} "),
    (r">=|!=|\\not\s*=|\\neq(?![a-zA-Z])", lambda order: r"\ge " if order[0] == ">=" else r"\ne "),
    (r"(?<![\\A-Za-z])sqrt\s*(\d+)", r"\\sqrt{\1}"),
    (r"(?<![\\A-Za-z])(pi|sqrt|(?:sin|cos|tan|cot|sec|csc|ln|log|exp)(?= ?\())(?![A-Za-z])", r"\\\1"),
    (r"(?:\\text\{\s*)?(?<![\\A-Za-z])(?:infinity|infty|inf|oo)(?![A-Za-z])(?:\s*\})?", r"\\infty "),
    (r"\\sqrt(\[[2-9]\])?\s*([0-9a-z])", lambda root: f"\\sqrt{root[1] or ''}{{{root[2]}}}"),
    *[(r"\\sqrt(\[[2-9]\])?\s*\(((?:[^()]|\([^()]*\))*)\)", r"\\sqrt\1{\2}")] * 3,
    (r"\\varnothing(?![a-zA-Z])|^\\\{\s*\\\}$", r"\\emptyset"),
    (r"\\(?:var(epsilon|phi|theta|rho)|big(cup)|(?:[cdtsx]|nice)(frac|binom))(?![a-zA-Z_])", r"\\\1\2\3"),
    (r"\\mathbb\s+([A-Z])|\\([RZNQC])(?![a-zA-Z])", r"\\mathbb{\1\2}"),
    (r"^(?:all )?real(?:s| numbers)$", r"\\mathbb{R}"),
    (r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}(\^\d)?\s*\}", r"\\text{\1/\2}\3"),
    (rf"\\frac\s*{_GROUP}\s*{_GROUP}", lambda bar: f"\\frac{{{bar[1].strip('{}')}}}{{{bar[2].strip('{}')}}}"),
    (r"(?:^|\{|(?<=\}))([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}?", r"\\frac{\1}{\2}"),
    (r"\\(begin|end)\{(?:[bB]|small)?(?:matrix|array)\}(?:\{[lcr|]*\})?", r"\\\1{pmatrix}"),
    (r"(\\text\s*\{[^{}]*\^)\{(-?\d)\}", r"\1\2"),
    (r"(?<=[0-9}])\s*\\mu\s*(?:\\text\s*\{\s*)?([mgsl])\}?$", r"\\text{u\1}"),
    (r"(?:\\text\{\s*)?(?<![A-Za-z])(?:per ?cents?|pct)(?![A-Za-z])(?:\s*\})?", r"\\%"),
    (rf"{_CIRC}(?:\\text\s*\{{\s*)?([CF])\s*\}}?$", r"\\text{degrees \1}"),
    (rf"{_CIRC}(?=[)}}\]]?$)", r"\\text{degrees}"),
    (r"\b0([xbo])([0-9A-Fa-f]+)$", lambda code: f"{code[2]}_{dict(x=16, b=2, o=8)[code[1]]}"),
    (r"(?<=[0-9A-F ({])(binary|octal|hex)(?:adecimal)?(?: notation)?(?=[)}]*$)", r"base \1"),
    (r"(?<=[0-9A-F)])\s*(?:_\{)?(?:\\text\{)?\s*\(?(?:in )?base[ -]?\}?\s*(\w+)\)?\}{0,2}", r"_{\1}"),
    (
        r"_\{?\\text\s*\{\(?(\w+)\)?\}\}?|_\{\(?([0-9a-z]+)\)?\}",
        lambda base: f"_{_BASES.get(base[1] or base[2], base[1] or base[2])}",
    ),
    (r"(?:^|(?<=[ ,=]))(?:\(|\\text\{)([0-9A-F]+)[)}]_", r"\1_"),
    (r"(?<=\d)(?:,|\{,\})(?=\d{3}(?:(?:,|\{,\})\d{3})*_)|(?<=\d)_(?=\d{3}(?!\d))", ""),
    (r"^(-?\d+) *(?:\\text\{ *and *\}|and) *(?=(?:\d+ */ *\d+|\\frac\{\d+\}\{\d+\})[a-z ]*$)", r"\1\\mixed "),
    (r"\\[lr]?vert(?![a-zA-Z])", "|"),
    (r"\\([lr])(angle|brace)(?![a-zA-Z])", lambda s: {"la": "(", "ra": ")", "lb": "\\{", "rb": "\\}"}[s[1] + s[2][0]]),
    (r"(?<=\.)([0-9]*)\(([0-9]+)\)$", r"\1\\overline{\2}"),
    (r"(?<=[0-9\s}])(?:-|\\backslash)\s*(?=\\\{)", r"\\setminus "),
    (r"\s*;\s*", ", "),
    (r"^[a-zA-Z]\s*\\in(?![a-zA-Z])\s*", ""),
    (r"^(\d+)\s*(?:\\text\{\s*to\s*\}|to)\s*(\d+)$", r"\1:\2"),
    (r"^([^:]+):([^:]+):([^:]+)$", r"(\1,\2,\3)"),
    (r"^([^=]+)=\s*([a-z])$", r"\2=\1"),
    (r"^\\\{\s*[a-z](?:\s*\\in\s*\\mathbb\{R\})?\s*(?:\\mid(?![a-z])|[|:])(.*)\\\}$", r"\1"),
    (r"\s*(?:,\s*)?(?:\\text\{\s*and\s*\}|\\land(?![a-z])|(?<=[0-9)}\s])\band\b)\s*", ", "),
    (r"\s*(?:,\s*)?(?:\\text\{\s*or\s*\}|(?<=[0-9)}\]\s])\bor\b|(?<=[)\]])\s*(?:U|union)\s*(?=[(\[]))\s*", r" \\lor "),
    (r"^\(([^,]*)\)$", lambda all: all[1].strip() if is_balanced(all[1]) else all[0]),
)
"""Patterns of different spellings, and the one spelling that replaces them."""

_THOUGHT = re.compile(
    r"(?i)[<\[◁]\|? ?(/?|\w+_of_)(?:seed:)?(?:think(?:ing)?|thought|reasoning|reflection|analysis|scratchpad) ?\|?"
    r"[>\]▷]|<\|channel\|>(analysis|final)<\|message\|>"
)
"""Marks that models put around a thought."""
_BOX = re.compile(r"\\(?:boxed|f(?:rame)?box)\s*(?:\{|(\w+))|(?<![\\\w])boxed\{")
_SAID = re.compile(
    r"(?i)(?<![^\n.:,*#]) ?(?:(?:so |thus |hence |the |final |correct )*answer\**(?: is\b|:|\n)[\s:*]*)+"
)
_HASHES = re.compile(r"####\s*(?=[-$*]*[0-9])")
_GAP = r"(?:[\s$]|\\q?quad(?![a-z]))*"
_AND = r"(?:[,;]|\b(?:and|or)\b|\\text\s*\{\s*(?:and|or)\s*\})"
_BETWEEN_BOXES = re.compile(rf"{_GAP}(?:[,;]{_GAP})?{_AND}{_GAP}(?:[a-z]\s*=\s*)?")


def final_answer(text: str) -> str:
    """Return the final answer of a text outside its thinking: the content of the last box, else the text after ``####``
    (GSM8K) or "the answer is", else the whole text. Boxes joined by a comma, "and" or "or" count as one."""
    text = _THOUGHT.sub(
        lambda mark: "</think>" if (mark[1] or mark[2] or "").lower() in ("/", "end_of_", "final") else "<think>", text
    )
    text = last_answer(split_thought(text)[0]) or split_thought(text)[0]
    text = _BOX.sub(lambda box: f"\\boxed{{{box[1]}}}" if box[1] else "\\boxed{", text)
    boxes, end = list[str](), 0
    while (start := text.find("\\boxed{", end)) >= 0:
        closed = _closing(text, start + len("\\boxed{"))
        if closed < 0:
            return text  # an unclosed box is not an answer; nothing else is searched
        inner = text.rfind("\\boxed{", start, closed) + len("\\boxed{")
        between, end = text[end:start], closed + 1
        boxes = [*(boxes if _BETWEEN_BOXES.fullmatch(between) else ()), text[inner : _closing(text, inner)].strip()]
    if boxes:
        return ", ".join(boxes)
    if (fences := text.split("```"))[2:] and not fences[-1].strip(" .\n"):
        text = re.sub(r"^[a-zA-Z]*\n", "", fences[-2])
    if marks := list(_HASHES.finditer(text)):
        text = text[marks[-1].end() :].partition("\n")[0]
    else:
        text = text.rpartition("####")[2]
    text = _SAID.split(text.strip())[-1].strip(_MARKDOWN)
    text = re.sub(r",? (?:because|since)\b.*", "", text.removesuffix("I hope it is correct."), flags=re.DOTALL)
    return text.strip(_MARKDOWN)


def states_answer(text: str, finished: bool) -> bool:
    """Return whether a text states an answer: in a box or, if ``finished``, after ``####`` or "the answer is"."""
    return "\\boxed{" in text or (finished and (_HASHES.search(text) or _SAID.search(text)) is not None)


def _closing(text: str, begin: int) -> int:
    """Return the index of the brace that closes the one opened before ``begin``, -1 if there is none."""
    depth = 1
    for place in range(begin, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return -1


def plain_form(text: str) -> str:
    """Return an answer's normal form for comparison: LaTeX in one spelling, without fonts, colours and a full stop."""
    if not text.isascii():
        text = _RAISED.sub(lambda found: f"^{{{normalize('NFKC', found[0])}}}", text)
        text = _LOWERED.sub(lambda found: f"_{{{normalize('NFKC', found[0])}}}", text)
        text = "".join(c if c.isdigit() or ord(c) in _SIGNS else normalize("NFKC", c) for c in text).translate(_SIGNS)
    text = text.strip(_MARKDOWN)
    for pattern, spelling in _RESPELLED:
        text = re.sub(pattern, spelling, text.strip())
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text.strip()) if ", " in text else text.strip()
    edge = 2 if text.startswith("\\{") and text.endswith("\\}") else 0
    inner = ",".join(_two_values(part) for part in top_level_parts(text[edge : len(text) - edge]))
    return text[:edge] + inner + text[len(text) - edge :]


def top_level_parts(text: str) -> list[str]:
    """Split a text at the commas outside all brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _two_values(text: str) -> str:
    """Write "a plus or minus b" as two values."""
    if len(re.findall(r"\\[pm][mp](?![a-z])|\+/?-", text)) != 1:
        return text
    plus, minus = (re.sub(r"\\[pm][mp](?![a-z])\s*|\+/?-\s*", sign, text) for sign in "+-")
    return re.sub(r"^(.*= *| *)\+", r"\1", plus) + ", " + minus


def is_balanced(text: str) -> bool:
    """Return whether the round brackets and the unescaped braces of a text are balanced, counted together."""
    depths = list(accumulate((c in "{(") - (c in "})") for c in re.sub(r"\\[{}]", "", text)))
    return not depths or (min(depths) >= 0 and depths[-1] == 0)
