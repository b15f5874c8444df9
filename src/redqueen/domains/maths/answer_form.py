"""What may stand as an answer in mathematics at all, before any library is asked whether it equals the gold one.

An answer states a value. An equation between numbers, a percentage of one, an integral or a sum still to be done, or
two values at once state something else, though a library that evaluates them may arrive at the gold answer's value.
Whatever the gold answer itself contains is allowed.
"""

from __future__ import annotations

import re
from fractions import Fraction

_RELATION = re.compile(
    r"(?<!\\)[=<>≤≥≠≈≡≅≃∼∝＝]|\\(?:n?eq?|ne|leq?|geq?|lt|gt|approx|equiv|sim(?:eq)?|cong|doteq|propto|in|to|mapsto|mid|ni|"
    r"(?:left|right|Right|Left|long\w*)arrow|implies|iff|leqslant|geqslant)(?![a-zA-Z])|[∈→]"
)
_INEQUALITIES = frozenset(
    {"<", ">", "≤", "≥", "\\le", "\\leq", "\\ge", "\\geq", "\\lt", "\\gt", "\\leqslant", "\\geqslant"}
)
_NAME = re.compile(r"\\?[a-zA-Z]+'*(?:_(?:[a-zA-Z0-9]|\{[a-zA-Z0-9]+\}))?(?:\([a-zA-Z](?:,[a-zA-Z])*\))?")
_PERCENT = re.compile(r"\\?%")
_COMPUTED = re.compile(
    r"\\(?:i*int|oint|sum|prod|coprod|lim(?:sup|inf)?|partial|nabla|det|max|min|sup|inf|gcd|lcm|[bp]?mod|lfloor|lceil|"
    r"arg|Re|Im|big\w+|cap|oplus|otimes|operatorname|pm|mp|l?dots|cdots|overline|prime|begin)(?![a-zA-Z])"
    r"|\\frac\{d[^{}]*\}\{d[^{}]*\}|\\d?frac\{?d[a-z]?\}?\{d|[∫∑∏±…∂]|\.\.\."
)
_NUMERAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+|\\frac\{[0-9]+\}\{[0-9]+\}|[0-9]+/[0-9]+)")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mbox)\{([^{}]*)\}")
_TAKES_BACK = re.compile(
    r"\b(?:not|nor|or|isn't|wrong|incorrect|false|unless|except|other|never|no|n't|either|between|about|"
    r"approx\w*|maybe|at least|at most|"
    r"less|more|if|when|half|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
    r"(?:thir|for|four|fif|six|seven|eigh|nine)(?:teen|ty)|infinity|perhaps|nearly|almost|roughly)\b",
    re.I,
)
_CHANGES = re.compile(
    r"\b(?:squared|cubed|factorial|(?:doubl|tripl|halv)e[ds]?|twice|thrice|times|plus|minus|negative|opposite|over|modulo|"
    r"mod|inverse|reciprocal|root|log|base|divided|halves|thirds|quarters|fourths|fifths|sixths|eighths|ninths|tens|[iex])\b",
    re.I,
)
_NOT_OF_A_UNIT = re.compile(r"[?!+*=<>|0-9]|(?<![a-zA-Z])-")
"""What a remark in words beside a number may not hold."""
_SCALES = re.compile(
    r"(?:\b|(?<=[0-9]))(?:per ?cents?|percentage|pct|permil|ppm|k|dozens?|bn|mn|lakhs?|crores?|"
    r"(?:tenth|(?:hundred|thousand|million|billion)(?:th)?)s?)\b",
    re.I,
)
_SIGNS_OF_SCALE = re.compile(r"[‰‱]|(?<=[0-9 {])M\b")
_UNIT = re.compile(r"\s+(?!(?:exp|inf|log|phi|sqrt|tau|cos|sin|tan)$)(?:[a-zA-Z]{3,}|[ckm]?m|[km]?g|m?[lL]|h|s)$")
"""One bare word behind a number: what is counted, or a unit. The rules for words have been applied before."""
_CURRENCY = re.compile(r"^[€£¥]\s*|\s*[€£¥]$")
_RATE = re.compile(r"(?<=[0-9}]|\s)\s*(?:[ckm]?m|miles?)/(?:h|s|min|hour|minute|second)$")
"""Units that are no words: a sign before or behind a number, a speed behind it."""
_ROOT_SIGN = re.compile(r"√\s*(?:([0-9]+)|\{([^{}]*)\}|\(([^()]*)\))")
_DRESS = re.compile(r"\\left|\\right|\\?\$|\^\{?\\circ\}?|\\[()\[\],;:! ]|~|\s")
_BARE = re.compile(
    r"([-+({\[]*)([0-9]{1,80}(?:\.[0-9]{1,80}|/[0-9]{1,80})?|\.[0-9]{1,80})"
    r"(?:\\(?:times|cdot)10\^\{?(-?[0-9]{1,2})\}?)?([)}\]]*)",
    re.ASCII,
)
_FRACTION = re.compile(r"(?<![0-9)}\]])\\[dt]?frac\{([0-9]+)\}\{([0-9]+)\}")
_OF_A_NUMBER = frozenset(
    {
        "frac", "dfrac", "tfrac", "sqrt", "times", "cdot", "circ", "degree", "left", "right", "quad", "qquad",
        "displaystyle", "textstyle",
    }
)  # fmt: skip
_COMMAND = re.compile(r"\\([a-zA-Z]+)")
_ARITHMETIC = re.compile(
    r"(?<=[0-9a-zA-Z)}\]])\s*[-+−]|[-+−]\s*[-+−]|\\(?:times|cdot)(?!\s*10\s*\^)|[*×÷·∙⋅∕⁄_'!|:;&~]|[0-9][.)]?\s+\.?[0-9]|\^.*\^|\^T"
    r"|\^\{[^{}]*\}\s*[0-9]|\)\s*[0-9(]|(?:frac|/).*(?:frac|/)"
)
_VARIABLE = re.compile(r"[a-zA-Z]\s*[/0-9{}]")
_GROUPS = re.compile(r"(?<![0-9.])([0-9]{1,3})((?:(?:,|\{,\}|\\[,!;: ]|\s)[0-9]{3})+)(?![0-9])")
_DEGREE = re.compile(r"°|(?<!\^)\\degree(?![a-zA-Z])")
_COLLECTION = re.compile(r"(?:\\left)?\s*(\\\{|[(\[]).*,.*(?:\\\}|[)\]])", re.DOTALL)
_SPACES = re.compile(r"\\[,;:! ]|~|\s|\\q?quad|\\(?:left|right)(?![a-zA-Z])")
_CLOSED_BY = str.maketrans("({[", ")}]")
_MAX_DEPTH = 8
_LONG_POWER = re.compile(r"\^\s*\{?\s*-?[0-9]{5}")
_LONG_FACTORIAL = re.compile(r"[0-9]{4}\)*\}*!|!\)*\}*!")


def final_answer(text: str) -> str:
    """Return what an answer comes down to: what its last box holds, what follows ``####`` (GSM8K), or all of it."""
    start = text.rfind("\\boxed{")
    if start >= 0:
        begin = start + len("\\boxed{")
        depth = 1
        for place in range(begin, len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if depth == 0:
                return text[begin:place].strip()
        return text  # a box that is not closed is no answer, whatever else stands there
    if "####" in text:
        text = text.rpartition("####")[2]
    text = text.strip()
    for mark in ("$$", "$"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2:
            return text[len(mark) : -len(mark)].strip()
    return text


def plain_form(answer: str) -> str:
    """Return an answer without what means nothing: spaces, ``\\left``, a sentence's full stop, commas of thousands."""
    text = _TEXT.sub(r"\1", answer.strip().removesuffix("."))
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("^{\\circ}", "^\\circ")
    text = _SPACES.sub("", text).removeprefix("\\$").removeprefix("$")
    return text.replace(",", "") if re.fullmatch(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?", text) else text


def bare_number(answer: str) -> Fraction | None:
    """Return the number that an answer states with a sign, brackets, a decimal point or a unit; None: it is more.

    For answers that ``comparable`` has let pass beside a number: other words than a unit are gone then.
    """
    answer = alone[1] if (alone := _TEXT.fullmatch(answer)) else answer
    text = joined_groups(_UNIT.sub("", _TEXT.sub("", answer).strip())).replace("−", "-")
    text = _FRACTION.sub(r"\1/\2", _DRESS.sub("", text.replace("\\{", "{").replace("\\}", "}")))
    found = _BARE.fullmatch(text)
    if found is None:
        return None
    before, number, power, behind = found.groups()
    opened = re.sub("[-+]", "", before)
    if opened[::-1].translate(_CLOSED_BY) != behind or re.search("/0+$", number):
        return None
    return Fraction(number) * (-1) ** before.count("-") * Fraction(10) ** int(power or 0)


def comparable(gold: str, answer: str) -> tuple[str, str] | None:
    """Return the gold answer and the given one as they are to be compared, or None when the latter is no answer."""
    gold, answer = map(_respelled, (gold, answer))
    for unit in (_CURRENCY, _RATE):
        answer = answer if unit.search(gold) else unit.sub("", answer)
    if not _is_well_formed(answer) or _is_too_dear(gold, answer) or _is_other_collection(gold, answer):
        return None
    sides = _without_relation(gold, answer)
    if sides is None:
        return None
    gold, answer = sides
    if _PERCENT.search(answer):
        if not _PERCENT.search(gold):
            return None
        gold, answer = (_PERCENT.sub("", side).strip() for side in (gold, answer))
    if (_SCALES.search(answer) or _SIGNS_OF_SCALE.search(answer)) and not (
        _SCALES.search(gold) or _PERCENT.search(gold)
    ):
        return None
    if set(_COMPUTED.findall(answer)) - set(_COMPUTED.findall(gold)):
        return None
    if _NUMERAL.fullmatch(gold.replace(" ", "").replace("dfrac", "frac")):
        return (gold, answer) if _is_one_number(answer) else None
    return None if _is_altered(gold, answer) else (gold, answer)


def _respelled(text: str) -> str:
    """Return a text with degrees and roots as LaTeX writes them and without a sentence's full stop."""
    text = _DEGREE.sub(r"^\\circ ", text.strip().removesuffix("."))
    return _ROOT_SIGN.sub(lambda root: f"\\sqrt{{{next(filter(None, root.groups()), '')}}}", text).strip()


def _is_altered(gold: str, answer: str) -> bool:
    """Tell whether words beside a value, of which the gold answer has none, change it, take it back or give another;
    or whether it is computed by functions where the gold answer is a number of digits, signs and roots.
    """
    if _TEXT.search(gold) or _TEXT.fullmatch(answer):
        return False
    is_number = not (set(_COMMAND.findall(gold)) - _OF_A_NUMBER or re.search(r"[a-zA-Z,;]", _COMMAND.sub("", gold)))
    if is_number and set(_COMMAND.findall(_TEXT.sub("", answer))) - _OF_A_NUMBER:
        return True
    return _has_altering_words(answer, whole=is_number)


def _has_altering_words(answer: str, whole: bool = True) -> bool:
    """Tell whether a remark in words, or with ``whole`` any word of an answer, says more than a unit."""
    remarks = _TEXT.findall(answer)
    if not _TEXT.fullmatch(answer) and any(map(_NOT_OF_A_UNIT.search, remarks)):
        return True
    words = _COMMAND.sub(" ", _TEXT.sub(r" \1 ", answer)) if whole else " ".join(remarks)
    return bool(_TAKES_BACK.search(words) or _CHANGES.search(words))


def _is_other_collection(gold: str, answer: str) -> bool:
    """Tell whether one is a set and the other a point, a vector or an interval."""
    brackets = [found[1] for found in map(_COLLECTION.fullmatch, (gold, answer)) if found]
    return len(brackets) == 2 and (brackets[0] == "\\{") != (brackets[1] == "\\{")


def joined_groups(text: str) -> str:
    """The text with the digits of grouped thousands put together: 1,450,000 and 1\\,450\\,000 are 1450000."""
    return _GROUPS.sub(lambda match: match[1] + re.sub("[^0-9]", "", match[2]), text)


def _is_well_formed(answer: str) -> bool:
    """Braces are paired, there is no box inside the box, and digits are those of ASCII."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", answer):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0 and "\\boxed" not in answer and not any(c.isnumeric() and not c.isascii() for c in answer)


def _is_too_dear(gold: str, answer: str) -> bool:
    """Tell whether only a machine that computes for long could say what the answer is."""
    deepest = max(_depth(gold) + 2, _MAX_DEPTH)
    return (
        _depth(answer) > deepest
        or answer.count("^") > gold.count("^") + 12
        or bool(re.search(r"\^\s*\{?[^{}]*\^\s*\{?[^{}]*\^", answer)) > bool(re.search(r"\^.*\^.*\^", gold))
        or bool(_LONG_POWER.search(answer)) > bool(_LONG_POWER.search(gold))
        or bool(_LONG_FACTORIAL.search(answer)) > bool(_LONG_FACTORIAL.search(gold))
    )


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in "{([") - (char in "})]")
        deepest = max(deepest, depth)
    return deepest


def _without_relation(gold: str, answer: str) -> tuple[str, str] | None:
    """Take ``name =`` off an answer to which the gold one has no such thing. None: it states another relation."""
    wanted, given = _RELATION.findall(gold), _RELATION.findall(answer)
    if not given:
        return gold, answer
    if wanted:
        return (gold, answer) if _kinds(wanted) == _kinds(given) else None
    name, _, value = answer.partition(given[0])
    if (
        len(given) > 1
        or given[0] not in ("=", "\\in", "∈")
        or not _NAME.fullmatch(re.sub(r"\\left|\\right|\s", "", name))
    ):
        return None
    return gold, value.strip()


def _kinds(relations: list[str]) -> list[str]:
    return sorted("<" if relation in _INEQUALITIES else relation for relation in relations)


def _is_one_number(answer: str) -> bool:
    """Tell whether it is a number as one writes it down, with or without a unit: no sum, no product, no list."""
    if _has_altering_words(answer):
        return False
    bare = joined_groups(_TEXT.sub("", answer).replace("\\$", "").replace("^\\circ", "").replace("^{\\circ}", ""))
    bare = re.sub(r"\\[,!;: ]|(?<=[0-9])[.]$", " ", bare).strip()
    if set(_COMMAND.findall(bare)) - _OF_A_NUMBER:
        return False
    if _VARIABLE.search(_COMMAND.sub("", bare)):
        return False
    return "," not in bare and not _ARITHMETIC.search(bare)
