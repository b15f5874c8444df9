"""What an answer in mathematics states, as far as its text alone decides. Nothing is computed by a library here.

An answer states a value. A sum still to be done, an equation between numbers or two values at once state something
else, though a library that evaluates them may arrive at the gold answer's value. So a number has one grammar
(``number``), and of other values an answer may hold what the gold answer holds and a few harmless signs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

from redqueen.domains.frames import split_thought

MAX_NUMBER_CHARS = 250
"""No longer text is a number (ours)."""
_SIGNS = str.maketrans(
    {
        "−": "-", "×": "\\times ", "·": "\\cdot ", "∞": "\\infty ", "π": "\\pi ", "≤": "\\le ", "≥": "\\ge ",
        "≠": "\\ne ", "±": "\\pm ", "∪": "\\cup ", "∈": "\\in ", "°": "^\\circ ", "½": " 1/2", "¼": " 1/4", "¾": " 3/4",
    }
)  # fmt: skip
_MARKDOWN = "*_#` \n\t"
_GROUP = r"(\{[^{}]*\}|[0-9])"
_RESPELLED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\\(?:left|right|displaystyle|[bB]igg?[lr]?|limits|[lL]arge|underline|math(?:bf|it|sf))(?![a-zA-Z])", ""),
    (r"\\(?:boldsymbol|bm|(?:text)?color\s*\{\w+\})(?![a-zA-Z])|\\!\s*|\\?\$|\\[()\[\]]", ""),
    (r"\\(?:mbox|mathrm|text(?:rm|bf|it)|operatorname)(?![a-zA-Z])", r"\\text"),
    (r"\b([apAP])\.([mM])\b\.?", r"\1\2"),
    (r"(?<!\\)\\[,;: ]|~|\\q?quad(?![a-zA-Z])|\s+", " "),
    (r"√\s*(?:([0-9]+)|\{([^{}]*)\}|\(([^()]*)\))", lambda root: f"\\sqrt{{{next(filter(None, root.groups()), '')}}}"),
    (r"\\sqrt\s*([0-9])", r"\\sqrt{\1}"),
    (r"\\[cdt]frac(?![a-zA-Z])", r"\\frac"),
    (rf"\\frac\s*{_GROUP}\s*{_GROUP}", lambda bar: f"\\frac{{{bar[1].strip('{}')}}}{{{bar[2].strip('{}')}}}"),
    (r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}", r"\\frac{\1}{\2}"),
    (r"\\([lg]e)q(?:slant)?(?![a-zA-Z])", r"\\\1"),
    (r"\\text\s*\{\s*([-+0-9.,/ ]+)\s*\}", r"\1"),
    (r"^\\text\s*\{([^{}]*)\}$", r"\1"),
    (r"(?:\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z]))\s*(?=[)}\]]?$)", r"\\text{degrees}"),
    (r"^[€£¥]\s*|\s*[€£¥]$", ""),
    (r"\s*(?:,\s*)?(?:\\text\{\s*(?:and|or)\s*\}|(?<=[0-9)}\s])\b(?:and|or)\b)\s*", ", "),
)
"""Ways to write the same, and what stands for all of them."""

_PLAIN = re.compile(r"-?[0-9]{1,80}(?:\.[0-9]{1,80}|/[1-9][0-9]{0,79})?", re.ASCII)
_DIGITS = r"(?:[0-9]{1,80}(?:\.[0-9]{0,80})?|\.[0-9]{1,80})"
_TEN = r"[eE]([-+]?[0-9]{1,3})| ?(?:\\times|\\cdot|\*) ?10 ?\^ ?[{(]?([-+]?[0-9]{1,3})[)}]?"
_ATOM = re.compile(
    rf"([-+]?)(?:\\?sqrt ?[{{(]({_DIGITS})[)}}]|[({{]?({_DIGITS})[)}}]?"
    rf"(?:\^ ?[{{(]?([-+]?[0-9]{{1,3}})(?:/([1-9]))?[)}}]?|{_TEN})?)"
)
_OVER = re.compile(r"\\frac\{([^{}]*(?:\{[^{}]*\})?)\}\{([^{}]*(?:\{[^{}]*\})?)\}|([^/]+)/([^/]+)")
_MIXED = re.compile(r"([0-9]+) ?(?:\\frac\{([0-9]+)\}\{([0-9]+)\}|(?<= )([0-9]+)/([0-9]+))")
_THOUSANDS = re.compile(r"(?<![0-9.,])([0-9]{1,3})((?:(?:,|\{,\}| )[0-9]{3})+)(?![0-9,])")
_BASED = re.compile(r"([0-9A-Za-z]+)_\{?([0-9]+)\}?")

_UNIT = re.compile(r"(?:\\text\{([^{}]*)\}|(?<![\\A-Za-z])([A-Za-z][A-Za-z .'/-]*))(?:\^ ?\{?([23])\}?)?$")
_OF_NO_UNIT = re.compile(
    r"\b(?:not|nor|or|isn't|wrong|incorrect|false|unless|except|other|never|no|n't|either|between|about|approx\w*|maybe|"
    r"at least|at most|less|more|if|when|half|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"twenty|(?:thir|for|four|fif|six|seven|eigh|nine)(?:teen|ty)|infinity|perhaps|nearly|almost|roughly|squared|cubed|"
    r"factorial|(?:doubl|tripl|halv)e[ds]?|twice|thrice|times|plus|minus|negative|opposite|over|modulo|mod|inverse|"
    r"reciprocal|root|log|base|divided|(?:hal(?:ve)|third|quarter|fourth|fifth|sixth|eighth|ninth|ten)s|per ?cents?|"
    r"percentage|pct|permil|ppm|dozens?|bn|mn|lakhs?|crores?|(?:tenth|(?:hundred|thousand|million|billion)(?:th)?)s?|"
    r"exp|inf|phi|sqrt|tau|cos|sin|tan|pi|ln)\b",
    re.IGNORECASE,
)
"""Words beside a number that change it, take it back, or are a number themselves."""
_SHORT = re.compile(r"[mglLhsVWNJ]|[cmkd]m|[mk]g|[mcd][lL]|sq|hr|oz|lb|ft|in|yd|mi|am|pm|AM|PM|of|to|by|at")
_MEASURE = re.compile(
    r"(?:milli|centi|deci|kilo|[mcdk])?(?:m|g|l|met(?:er|re)s?|grams?|lit(?:er|re)s?)|inch(?:es)?|in|feet|foot|ft|yards?|"
    r"miles?|mi|seconds?|s|min(?:ute)?s?|hours?|hrs?|h|days?|weeks?|months?|years?|[ap]m|cents?|dollars?|euros?|"
    r"degrees?|radians?",
    re.IGNORECASE,
)
_ALL_TEXT = re.compile(r"\s*\\(?:text(?:bf|rm|it)?|mbox|mathrm)\s*\{[^{}]*\}\s*")
_NAME = r"\\?[a-zA-Z]+'*(?:_(?:[a-zA-Z0-9]|\{[a-zA-Z0-9]+\}))?(?:\([a-zA-Z](?:,[a-zA-Z])*\))?|\([a-z](?:, ?[a-z])+\)"
_NAMED = re.compile(rf"\s*({_NAME})\s*(?:=|\\in(?![a-zA-Z]))\s*(?=[^=\s])")
_RELATION = re.compile(
    r"(?<!\\)[=<>≈≡≅≃∼∝＝→]|\\(?:n?eq?|ne|le|ge|lt|gt|approx|equiv|sim(?:eq)?|cong|doteq|propto|in|to|mapsto|mid|ni|"
    r"(?:left|right|Right|Left|long\w*)arrow|implies|iff)(?![a-zA-Z])"
)
_ORDERS = frozenset({"<", ">", "\\le", "\\ge", "\\lt", "\\gt"})
_INTERVAL = re.compile(r"[\[(][^\[\]()]*,[^\[\]()]*[\])](?:\s*\\cup.*)?")
_COLLECTION = re.compile(r"\s*(\\\{|[(\[]).*,.*(?:\\\}|[)\]])\s*", re.DOTALL)
_COMMAND = re.compile(r"\\([a-zA-Z]+)")
_HARMLESS = frozenset({"frac", "sqrt", "cdot", "times", "pi", "infty", "cup", "in", "le", "ge", "lt", "gt", "pm"})
"""Commands and words that an answer may have though the gold answer has not."""
_DOUBTFUL = re.compile(r"[!?'\"|:;&@#`]|[^\x00-\x7f]|\\frac\{d|\.\.\.")
"""What an answer has only where the gold answer has it too."""
_A_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")


def final_answer(text: str) -> str:
    """Return what an answer comes down to: outside its thinking, what its last box holds, what follows ``####``
    (GSM8K), or all of it."""
    text = split_thought(text)[0]
    start = text.rfind("\\boxed{")
    if start >= 0:
        begin = start + len("\\boxed{")
        depth = 1
        for place in range(begin, len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if depth == 0:
                return text[begin:place].strip()
        return text  # a box that is not closed is no answer, whatever else stands there
    text = text.rpartition("####")[2].strip(_MARKDOWN)
    for mark in ("$$", "$"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2:
            return text[len(mark) : -len(mark)].strip()
    return text


def plain_form(text: str) -> str:
    """Return an answer as it is compared: in LaTeX, with one spelling, without fonts, colours and a full stop."""
    text = text.strip(_MARKDOWN).removesuffix(".").translate(_SIGNS)
    for pattern, spelling in _RESPELLED:
        text = re.sub(pattern, spelling, text.strip())
    text = text.strip()
    is_wrapped = text[:1] + text[-1:] == "()" and "," not in text and _is_balanced(text[1:-1])
    return text[1:-1].strip() if is_wrapped else text


def number(text: str) -> Fraction | None:
    """Return the number that a text states: in digits, with a sign, brackets, a point, a bar, one power or one root.

    None: it states something else, or something that must be worked out.
    """
    text = text.strip()
    if len(text) > MAX_NUMBER_CHARS:
        return None
    if text[:1] in ("-", "+") and text[1:].lstrip()[:1] not in ("-", "+"):
        value = number(text[1:])
        return value if value is None or text[0] == "+" else -value
    for left, right in (("\\{", "\\}"), ("(", ")"), ("{", "}"), ("[", "]")):
        if text.startswith(left) and text.endswith(right) and _is_balanced(text[len(left) : -len(right)]):
            return number(text[len(left) : -len(right)])
    text = _THOUSANDS.sub(lambda found: found[1] + re.sub("[^0-9]", "", found[2]), text)
    if found := _MIXED.fullmatch(text):
        whole, over, under = [int(part) for part in found.groups() if part]
        return whole + Fraction(over, under) if over < under else None
    value = _atom(text)
    if value is None and (found := _OVER.fullmatch(text)):
        above, below = [_atom(part.strip()) for part in found.groups() if part is not None]
        return None if above is None or not below else above / below
    return value


def _atom(text: str) -> Fraction | None:
    """Return the value of digits with one power, one root or a power of ten."""
    found = _ATOM.fullmatch(text)
    if found is None or text.count("(") != text.count(")") or text.count("{") != text.count("}"):
        return None
    sign, under_root, digits, power, degree, exponent, of_ten = found.groups()
    value = Fraction((under_root or digits).removesuffix("."))
    if not value and power and int(power) <= 0:
        return None
    value = value ** int(power or 1) * Fraction(10) ** int(exponent or of_ten or 0)
    if under_root or degree:
        roots = [_whole_root(part, int(degree or 2)) for part in value.as_integer_ratio()]
        if None in roots:
            return None
        value = Fraction(*roots)  # type: ignore[arg-type]
    return -value if sign == "-" else value


def _whole_root(value: int, degree: int) -> int | None:
    if value.bit_length() > 900:
        return None
    near = math.isqrt(value) if degree == 2 else round(value ** (1 / degree))
    return near if near**degree == value else None


def _without_unit(text: str, bare: bool = True) -> tuple[str, list[str]] | None:
    """Split words of what is counted, or of a unit, off a value; ``bare``: such that stand outside ``\\text`` as well.

    None: words that say more.
    """
    words: list[str] = []
    while (found := _UNIT.search(text)) and (bare or found[1] is not None):
        said = found[1] or found[2] or ""
        here, shortest = re.findall("[A-Za-z]+", said), 2 if found[2] is None else 3
        if _OF_NO_UNIT.search(said) or any(len(word) < shortest and not _SHORT.fullmatch(word) for word in here):
            return None
        if re.search(r"[^A-Za-z .,'/~()-]|(?<![A-Za-z])-", re.sub(r"\^\{?[23]\}?", "", said)):
            return None
        text, words = text[: found.start()].rstrip(), here + words
    return text, words


def _are_other_units(some: list[str], others: list[str]) -> bool:
    """Return whether two values are given in measures of which none is the other's, in full or abbreviated."""
    ours, theirs = ([word.lower() for word in words if _MEASURE.fullmatch(word)] for words in (some, others))
    return bool(ours and theirs) and not any(_is_short_for(*sorted((a, b), key=len)) for a in ours for b in theirs)


def _is_short_for(short: str, long: str) -> bool:
    letters = iter(long)
    is_part = short[0] == long[0] and all(letter in letters for letter in short)
    return short == long.removesuffix("s") or short == long or (len(long) > 3 and is_part)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[0-9]+|[^\s(){}\\,']", re.sub(r"\\text|\.", "", text).lower())


def judged(gold: str, answer: str) -> bool | tuple[str, str]:
    """Return whether an answer is right, or gold answer and answer as a library is to compare their values."""
    if _PLAIN.fullmatch(gold) and _PLAIN.fullmatch(answer):  # nearly all answers to tasks
        return Fraction(gold) == Fraction(answer)
    is_text, gold, answer = bool(_ALL_TEXT.fullmatch(gold)), plain_form(gold), plain_form(answer)
    if gold == answer:
        return True
    name, gold = _without_name(gold)
    other_name, value = _without_name(answer)
    if name and other_name and name != other_name:
        return False
    answer = answer if _RELATION.search(gold) else value
    if found := _BASED.fullmatch(gold):
        answer = re.sub(r"_\{([0-9]+)\}", r"_\1", answer).strip("()")
        return answer in (found[1], f"{found[1]}_{found[2]}")
    percents = [bool(re.search(r"[0-9}] ?\\?%$", text)) for text in (gold, answer)]
    gold, answer = (
        re.sub(r"\s*\\?%$", "", text) if has else text for has, text in zip(percents, (gold, answer), strict=True)
    )
    if percents == [False, True]:
        return False
    value, unit = _without_unit(gold) or (gold, [])
    wanted = number(value)
    if (is_text and wanted is None) or not value or "\\text" in value:
        return _words(gold) == _words(answer)
    split = _without_unit(answer, bare=not re.search("[a-zA-Z]", _COMMAND.sub("", value)))
    if split is None or _are_other_units(unit, split[1]):
        return False
    if wanted is None:
        return _comparable(value, split[0])
    given = number(split[0])
    return given is not None and (given == wanted or (percents == [True, False] and 100 * given == wanted))


def _without_name(text: str) -> tuple[str, str]:
    """Take ``x =`` or ``x \\in`` off a value, or off each value of a list."""
    found = _NAMED.match(text)
    if found is None:
        return "", text
    return found[1], re.sub(rf",\s*(?:{_NAME})\s*=", ",", text[found.end() :])


def _is_balanced(text: str) -> bool:
    depths = list(accumulate((c in "{(") - (c in "})") for c in re.sub(r"\\[{}]", "", text)))
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


def _comparable(gold: str, answer: str) -> bool | tuple[str, str]:
    """The same for a value that is no number in digits, without names and units."""
    if gold.replace(" ", "") == answer.replace(" ", ""):
        return True
    is_mixed = "\\text" in answer and "\\text" not in gold
    if is_mixed or "\\boxed" in answer or not _is_balanced(re.sub(r"[()]", "", answer)):
        return False
    wanted, given = (["<" if one in _ORDERS else one for one in _RELATION.findall(text)] for text in (gold, answer))
    if given and sorted(wanted) != sorted(given) and (wanted or set(given) != {"<"} or not _INTERVAL.fullmatch(gold)):
        return False
    brackets = [found[1] for found in map(_COLLECTION.fullmatch, (gold, answer)) if found]
    if len(brackets) == 2 and (brackets[0] == "\\{") != (brackets[1] == "\\{"):
        return False
    for pattern in (_COMMAND, _DOUBTFUL, _A_WORD):
        if set(pattern.findall(answer)) - set(pattern.findall(gold)) - _HARMLESS:
            return False
    return gold, answer
