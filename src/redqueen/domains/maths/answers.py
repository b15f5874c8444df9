"""Grading of answers in mathematics by their text. This module uses no library that computes with the texts.

An answer must state a value. An uncomputed sum, an equation between numbers or two values at once are not a value,
although a library that evaluates them may obtain the gold answer's value. Numbers therefore have a grammar, ``number``.
Other values may contain only symbols and words that the gold answer contains, and a few harmless ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

from redqueen.domains.maths.notation import final_answer, is_balanced, plain_form, top_level_parts
from redqueen.records import Grade, Task
from redqueen_sandbox.pool import Jobs
from redqueen_sandbox.programs import CALL_MEMORY_BYTES, Rules, call_job, run_once

MAX_NUMBER_CHARS = 250
"""A longer text is not a number (ours)."""
MAX_ANSWER_CHARS, COMPARE_CPU_MS, LEAST_CPU_MS = 300, 3_000, 50
"""Maximum length of an answer; CPU time limit of one comparison by default, and its minimum for tasks (ours)."""
_PLAIN = re.compile(r"-?[0-9]{1,80}(?:\.[0-9]{1,80}|/[1-9][0-9]{0,79})?", re.ASCII)
_DIGITS = r"(?:[0-9]{1,80}(?:\.[0-9]{0,80})?|\.[0-9]{1,80})"
_TEN = r"[eE]\{?([-+]?[0-9]{1,3})\}?| ?(?:\\times|\\cdot|\*|x|\\text\{ x \}) ?\{?10\}? ?\^ ?[{(]?([-+]?[0-9]{1,3})[)}]?"
_ATOM = re.compile(
    rf"([-+]?)(?:\\?sqrt(?:\[([2-9])\])? ?[{{(]({_DIGITS})[)}}]|[({{]?({_DIGITS})[)}}]?"
    rf"(?:\^ ?[{{(]?([-+]?[0-9]{{1,3}})(?:/([1-9]))?[)}}]?|{_TEN})?)"
)
_OVER = re.compile(r"\\frac\{([^{}]*(?:\{[^{}]*\})?)\}\{([^{}]*(?:\{[^{}]*\})?)\}|([^/]+)/([^/]+)")
_MIXED = re.compile(r"([0-9]+) ?(?:\\frac\{([0-9]+)\}\{([0-9]+)\}|(?<= )([0-9]+)/([0-9]+))")
_THOUSANDS = re.compile(r"(?<![0-9.,])([0-9]{1,3})((?:(?:,|\{,\}| |')[0-9]{3})+|(?:\.[0-9]{3}){2,})(?![0-9,])")
_POWER = re.compile(r"\((.+[/}].*)\) ?\^ ?\{?(-?[0-9]{1,3})\}?")
_REPEATING = re.compile(r"([0-9]{0,40})\.([0-9]{0,40})\\(?:overline|bar|dot)\{((?!9+\})[0-9]{1,40})\}")
_BASED = re.compile(r"(?<![A-Za-z0-9\\])(?:[0-9][0-9A-Fa-f.]*|[A-F][0-9A-F]*(?=_1[1-6]))_([0-9]+|[a-z]+)")

_UNIT = re.compile(
    r"(?:\\text\{([^{}]*)\}|(?<![\\A-Za-z])([A-Za-z][A-Za-z .'/-]*))(?:\^ ?\{?-?[1-4]\}?)?(?:\\cdot|[ /*])*$"
)
_OF_NO_UNIT = re.compile(
    r"\b(?:not|nor|or|isn't|wrong|incorrect|false|unless|except|other|never|no|n't|either|between|about|approx\w*|maybe|"
    r"at least|at most|less|more(?= than)|if|when|half|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve|(?:twen|thir|for|four|fif|six|seven|eigh|nine)(?:teen|t(?:y|ies))|infinity|perhaps|nearly|almost|roughly|"
    r"factorial|(?:doubl|tripl|halv)e[ds]?|twice|thrice|times|plus|minus|negative|opposite|over|modulo|mod|inverse|"
    r"reciprocal|root|log|base|divided|(?:halve|third|quarter|fourth|\w*fth|sixth|seventh|eighth|ninth|ten|\w+teenth|"
    r"\w+ieth)s|percentage|per ?mil(?:le?)?|ppm|/.*squared|(?<![a-z] )(?:squared|cubed)|dozens?|bn|mn|lakhs?|crores?|"
    r"basis|none|too|power|to the (?:\w+th|second|third)|(?:tenth|(?:hundred|thousand|[a-z]+illion)(?:th)?)s?|bil|mil|"
    r"doubt|can't|cannot|might|could|whether|guess|myriads?|(?:grand|gross|score|couple|(?:un|tern|quatern)ary)(?! )|"
    r"duodecimal|kilo|mega|giga|tera|hecto|de[ck]a|deci|centi|milli|micro|nano|pico|exp|phi|sqrt|tau|cos|sin|tan|pi|ln"
    r")\b",
    re.IGNORECASE,
)
"""Words next to a number that change it, negate the answer, or are numbers themselves."""
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {"k": 10**3, "M": 10**6}
_SI = "m meter metre|g gram|l liter litre|mol mole|s second sec|W watt|J joule|N newton|Hz hertz|V volt|Pa pascal"
_PREFIXES = " |k kilo|c centi|d deci|m milli|M mega|G giga|u micro|n nano"
_OTHERS = (
    "l L|in inch inches|ft foot feet|yd yard|mi mile|lb pound|oz ounce|gal gallon|min minute|h hour hr|day|week wk|"
    "pint|quart qt|cup|teaspoon tsp|tablespoon tbsp|bit|byte|decade|century centuries|penny pennies|nickel|dime|"
    "quarter|month|year yr|¢ cent|USD dollar|€ eur euro|£|¥|₹ rs rupee|degrees degree|radians rad radian|am midnight|"
    "pm noon|C celsius|F fahrenheit|acre|ha hectare|ton tonne|K kelvin|A amp|T tesla|eV|dB|AU au|pc"
)
_UNITS = {name: names.split()[0] for names in _OTHERS.split("|") for name in names.split()} | {
    spelled: prefix.split(" ")[0] + symbol
    for prefix in _PREFIXES.split("|")
    for symbol, *names in map(str.split, _SI.split("|"))
    for spelled in (prefix.split(" ")[0] + symbol, *(prefix.split(" ")[1] + name for name in names))
}
"""Units that are distinguished, by their names; other counted things may have any name."""
_ALL_TEXT = re.compile(r"\s*\\(?:text(?:bf|rm|it)?|mbox|mathrm)\s*\{[^{}]*\}\s*|[A-Za-z]{3,}[A-Za-z ]*")
_CHOICE = re.compile(r"(?:\\text\{)?\(([A-Z])\)(?!.*\([A-Z]\))(?:[ }]+(-?(?:[.\w]|\\(?:frac|sqrt|pi|te)).*)|[ }]*)$")
_SENTENCE = re.compile(
    r"(?:.*[.!?:]\s+)?((?:[A-Za-z][A-Za-z',]* )+)((?:\$[^$]+\$|\\\(.+\\\)|[$€£]?-?[0-9][0-9,.]*%?)(?: [a-z]+)*)[.!]?",
    re.DOTALL,
)
"""An answer in prose whose last sentence is words followed by one value."""
_COUNTED = re.compile(r"[^A-Za-z\\]*[0-9] +[A-Za-z]{2}")
_NAME = (
    r"(?:m?\\angle |\\triangle |\\det |\\?(?:sin|cos|tan) ?(?=[a-z(\\]))?(?:\\text\{[A-Za-z ]*\}|"
    r"\\?[a-zA-Z]+'*(?:_(?:[a-zA-Z0-9]+|\{[a-zA-Z0-9]+\}))?(?:\(\\?[a-zA-Z0-9]+ ?(?:,[a-zA-Z])*\))?)|"
    r"\(\\?[a-z]+(?:, ?\\?[a-z]+)+\)|\[[A-Z]{3,}\]|\|[A-Z]{1,2}\||\\?(?:sin|cos|tan) ?\(\\?[a-z]+ ?\)"
)
_NAMED = re.compile(rf"\s*({_NAME})\s*(?:=|\\in(?![a-zA-Z]))\s*(?=[^=\s])")
_RELATION = re.compile(
    r"(?<!\\)[=<>≈≡≅≃∼∝＝→]|\\(?:n?eq?|ne|le|ge|lt|gt|approx|equiv|sim(?:eq)?|cong|doteq|propto|in|to|mapsto|mid|ni|"
    r"(?:left|right|Right|Left|long\w*)arrow|implies|iff)(?![a-zA-Z])"
)
_ORDERS = frozenset({"<", ">", "\\le", "\\ge", "\\lt", "\\gt", "\\ne"})
_INTERVAL = re.compile(r"[\[(][^\[\]()]*,[^\[\]()]*[\])](?:\s*\\cup.*)?")
_COLLECTION = re.compile(r"(?!.*\\cup)\s*(?:\\(?=\{))?([{(\[])(.*,.*?)(?:\\(?=\}))?[})\]]\s*", re.DOTALL)
_COMMAND = re.compile(r"\\([a-zA-Z]+)")
_HARMLESS = {
    "frac", "sqrt", "cdot", "times", "pi", "infty", "cup", "in", "le", "ge", "lt", "gt", "ne", "pm", "mathbb",
    "setminus", "exp", "alpha", "beta", "theta", "lambda",
}  # fmt: skip
"""Commands and words that an answer may have even if the gold answer does not have them."""
_FAMILIES = [set(names.split()) for names in ("sin cos tan cot sec csc arcsin arccos arctan", "ln log")]
"""Functions that express each other: if the gold answer has one of a family, an answer may have all of it."""
_DOUBTFUL = re.compile(r"[!?'\"|:;&@#`]|[^\x00-\x7f]|\\frac\{d|\.\.\.|\\infty *\]|\[ *-\\infty")
"""Signs that an answer may have only if the gold answer has them."""
_A_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")


def number(text: str) -> Fraction | None:
    """Return the number that a text states: digits with a sign, brackets, a point, one bar, power or root.

    None if it states something else, or an expression that must be computed.
    """
    text = text.strip()
    if len(text) > MAX_NUMBER_CHARS:
        return None
    if text[:1] in ("-", "+") and text[1:].lstrip()[:1] not in ("-", "+"):
        value = number(text[1:])
        return value if value is None or text[0] == "+" else -value
    for left, right in (("\\{", "\\}"), ("(", ")"), ("{", "}"), ("[", "]")):
        if text.startswith(left) and text.endswith(right) and is_balanced(text[len(left) : -len(right)]):
            return number(text[len(left) : -len(right)])
    text = _THOUSANDS.sub(lambda found: found[1] + re.sub("[^0-9]", "", found[2]), text)
    if found := _MIXED.fullmatch(text):
        whole, over, under = [int(part) for part in found.groups() if part]
        return whole + Fraction(over, under) if over < under else None
    if found := _REPEATING.fullmatch(text):
        before, after, again = found.groups()
        return Fraction(f"{before or 0}.{after or 0}") + Fraction(int(again), 10 ** len(after) * (10 ** len(again) - 1))
    if (found := _POWER.fullmatch(text)) and (base := number(found[1])):
        return base ** int(found[2]) if max(map(int.bit_length, base.as_integer_ratio())) < 300 else None
    value = _atom(text)
    if value is None and (found := _OVER.fullmatch(text)):
        above, below = [
            _atom(re.sub(r"^\((-?[0-9.]+)\)$", r"\1", part.strip())) for part in found.groups() if part is not None
        ]
        return None if above is None or not below else above / below
    return value


def _atom(text: str) -> Fraction | None:
    """Return the value of digits with at most one power, one root or a power of ten; None for other texts."""
    found = _ATOM.fullmatch(text)
    if found is None or text.count("(") != text.count(")") or text.count("{") != text.count("}"):
        return None
    sign, index, under_root, digits, power, degree, exponent, of_ten = found.groups()
    value = Fraction((under_root or digits).removesuffix("."))
    if not value and power and int(power) <= 0:
        return None
    value = value ** int(power or 1) * Fraction(10) ** int(exponent or of_ten or 0)
    if under_root or degree:
        roots = [_whole_root(part, int(index or degree or 2)) for part in value.as_integer_ratio()]
        if None in roots:
            return None
        value = Fraction(*roots)  # type: ignore[arg-type]
    return -value if sign == "-" else value


def _whole_root(value: int, degree: int) -> int | None:
    if value.bit_length() > 900:
        return None
    near = math.isqrt(value) if degree == 2 else round(value ** (1 / degree))
    return near if near**degree == value else None


def _without_unit(text: str, bare: bool = True) -> tuple[str, int, frozenset[tuple[str, int]]] | None:
    """Split off the unit or the counted thing. Return the value, the factor of words such as "million", and the units
    with their powers. ``bare``: read words outside ``\\text`` too. None: other words, which may change the value.
    """
    tail = ""
    while (found := _UNIT.search(text)) and (bare or found[1] is not None):
        tail, text = f"{found[0]} {tail}", text[: found.start()].rstrip()
    words, scale = re.sub(r"\\(?:text|cdot)|[{}]", " ", tail).strip(), 1
    while (found := re.match(r"([a-z]+?)s?\b *", words, re.IGNORECASE)) and (
        by := _SCALES.get(found[1] if len(found[1]) == 1 else found[1].lower())
    ):
        scale, words = scale * by, words[found.end() :]
    words = re.sub(r"(?<=[a-z]{2}) an? (?=[a-z]{3})", " per ", words)
    words = re.sub(r"\b(m|k)m?ph\b", lambda speed: {"m": "mi/h", "k": "km/h"}[speed[1]], words)
    plain = re.sub(r"\^ *-?[1-4]", "", words)
    if _OF_NO_UNIT.search(words) or re.search(r"[^A-Za-z .,'/*()$€£¥¢₹-]|(?<![A-Za-z])-", plain):
        return None
    powers, sign, times, unit = Counter[str](), 1, 1, ""
    for token in re.findall(r"[A-Za-z]+|[€£¥¢₹/]|\^ *-?[1-4]", words):
        word = token if len(token) == 1 else token.lower()
        if word in ("/", "per"):
            sign = -1
        elif word in ("square", "sq", "cubic", "cu"):
            times = 2 if "q" in word else 3
        elif word in ("squared", "cubed") or word[0] == "^":
            powers[unit] *= {"squared": 2, "cubed": 3}.get(word) or int(word[1:])
            unit = ""
        elif unit := next((_UNITS[one] for one in (token, word, word.removesuffix("s")) if one in _UNITS), ""):
            powers[unit] += sign * times
            times = 1
        elif len(word) < 3 and word not in ("of", "to", "by", "at", "sq", "cu"):
            return None
    return text, scale, frozenset((unit, power) for unit, power in powers.items() if unit and power)


def _are_other_units(some: frozenset[tuple[str, int]], others: frozenset[tuple[str, int]]) -> bool:
    """Return whether two values have different units; a missing one, or one added to degrees or dollars, is ignored."""
    less, more = sorted((some, others), key=len)
    return bool(less) and less != more and not (less < more and less & {("degrees", 1), ("USD", 1)})


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[0-9]+|[^\s(){}\\,'\"!]", re.sub(r"\\text|\.", "", text).lower())


def compare_texts(gold: str, answer: str) -> bool | tuple[str, str]:
    """Return whether an answer is right, or (gold, answer) in the form in which a library must compare them."""
    if _PLAIN.fullmatch(gold) and _PLAIN.fullmatch(answer):  # nearly all answers to tasks
        return Fraction(gold) == Fraction(answer)
    if (sentence := _SENTENCE.fullmatch(answer)) and not _OF_NO_UNIT.search(sentence[1]):
        answer = sentence[2]
    is_text, gold, answer = bool(_ALL_TEXT.fullmatch(gold)), plain_form(gold), plain_form(answer)
    if (letter := _CHOICE.match(answer)) and not _OF_NO_UNIT.search(answer):
        answer = letter[1] if is_text else letter[2] or answer
    is_a_range = _RELATION.search(gold) or _INTERVAL.fullmatch(gold)
    for sign, read in (("\\lor", "\\cup" if is_a_range else ","), ("\\mixed", "," if "," in gold else "")):
        gold, answer = gold.replace(sign, read), answer.replace(sign, read)
    if gold == answer:
        return True
    named, others = _equations(gold), _equations(answer)
    if len(others) > 1 and gold.startswith("(") and set(others) <= set("abcdxyz"):
        answer = f"({','.join(others[name] for name in sorted(others))})"
    elif len(named) > 1 and named.keys() == others.keys():
        gold, answer = (f"({','.join(values[name] for name in named)})" for values in (named, others))
    name, gold = _without_name(gold)
    other_name, value = _without_name(answer)
    if name and other_name and name != other_name:
        return False
    gold = f"{name} = {gold}" if name and not other_name and "=" in answer else gold
    answer = answer if _RELATION.search(gold) else _last_side(value)
    if _BASED.search(gold):
        wanted, given = (sorted(text.replace(" ", "").upper().split(",")) for text in (gold, answer))
        return given in (wanted, [part.partition("_")[0] for part in wanted])
    answer = re.sub(r"(?<=\d)_10$", "", answer)
    percents = [bool(re.search(r"[0-9}] ?\\?%$", text)) for text in (gold, answer)]
    gold, answer = (
        re.sub(r"\s*\\?%$", "", text) if has else text for has, text in zip(percents, (gold, answer), strict=True)
    )
    if _BASED.search(answer):
        return False
    value, scale, unit = _without_unit(gold, bool(_COUNTED.match(gold))) or (gold, 1, frozenset())
    number_wanted = number(value)
    if (is_text and number_wanted is None) or not value or "\\text" in value:
        return _words(gold) == _words(answer)
    has_letters = re.search("[a-zA-Z]", _COMMAND.sub("", value)) or (_RELATION.search(answer) and is_a_range)
    split = _without_unit(answer, bare=not has_letters)
    is_share = percents == [False, True]
    if split is None or _are_other_units(unit, split[2]) or (is_share and (unit or number_wanted is None)):
        return False
    if number_wanted is None:
        return scale == split[1] and _comparable(value, split[0])
    number_given = number(split[0])
    if number_given is None:
        return False
    if is_share:  # a percent sign after an integer gold value is an error
        return number_wanted.denominator > 1 and number_given == 100 * number_wanted
    factors = (1, 100) if percents == [True, False] else (1,)
    return any(factor * number_given * split[1] == number_wanted * scale for factor in factors)


def _without_name(text: str) -> tuple[str, str]:
    """Take ``x =`` or ``x \\in`` off a value, or off each value of a list."""
    found = _NAMED.match(text)
    if found is None:
        return "", text
    return found[1], re.sub(rf",\s*(?:{_NAME})\s*=", ",", text[found.end() :])


def _last_side(text: str) -> str:
    """Return the last side of a chain such as ``2+3=5`` unless another side is a different number; else the text."""
    *sides, last = text.split("=")
    if re.search("[A-Za-z]", _COMMAND.sub("", "".join(sides))) or {*map(number, sides)} - {None, number(last)}:
        return text
    return last


def _equations(text: str) -> dict[str, str]:
    """Return the values of a list of equations by name; empty for any other list."""
    parts = top_level_parts(text)
    values = {found[1]: part[found.end() :] for part in parts if (found := _NAMED.match(part))}
    return values if len(values) == len(parts) else {}


def _comparable(gold: str, answer: str) -> bool | tuple[str, str]:
    """As ``compare_texts``, for values that are not numbers in digits, without names and units."""
    if gold.replace(" ", "") == answer.replace(" ", ""):
        return True
    is_mixed = "\\text" in answer and "\\text" not in gold
    if is_mixed or not is_balanced(re.sub(r"[()]", "", answer)):
        return False
    wanted, given = (["<" if one in _ORDERS else one for one in _RELATION.findall(text)] for text in (gold, answer))
    is_a_range = _INTERVAL.fullmatch(gold) or set(wanted) == {"<"} or gold.startswith("\\mathbb")
    if given and sorted(wanted) != sorted(given) and (set(given) != {"<"} or not is_a_range):
        return False
    letters = [set(re.findall(r"(?<![\\a-zA-Z])[a-z](?![a-zA-Z])", text)) for text in (gold, answer)]
    if wanted and given and letters[0] != letters[1]:
        return False
    brackets = [found[1] for found in map(_COLLECTION.fullmatch, (gold, answer)) if found and is_balanced(found[2])]
    if len(brackets) == 2 and (brackets[0] == "{") != (brackets[1] == "{"):
        return False
    for pattern in (_COMMAND, _DOUBTFUL, _A_WORD):
        known = set(pattern.findall(gold) + ["|"] * ("<" in given))
        if set(pattern.findall(answer)) - known.union(_HARMLESS, *(names for names in _FAMILIES if names & known)):
            return False
    return gold, answer


def grade_number(task: Task, answer: str, rules: Rules) -> Jobs[Grade]:
    """Grade one answer to a task, in the formal language or LaTeX; the gold answer is a number in that language."""
    return grade_value(task.outputs[0], answer, rules, cpu_ms=max(LEAST_CPU_MS, rules.limits.cpu_ms))


def grade_value(
    gold: str,
    answer: str,
    rules: Rules,
    in_latex: bool = False,
    max_chars: int = MAX_ANSWER_CHARS,
    cpu_ms: int = COMPARE_CPU_MS,
    memory_bytes: int = CALL_MEMORY_BYTES,
) -> Jobs[Grade]:
    """Grade one answer by its text where possible, as for all numbers in digits, else by values in the sandbox.

    ``in_latex``: the gold answer is LaTeX. Numbers are compared exactly: ``0.3333`` is not a third.
    """
    given = final_answer(answer)
    if not given:
        return Grade(False, "unparsable", "no answer")
    if len(given) > max_chars:
        return Grade(False, "too-large", f"longer than {max_chars} characters")
    found = compare_texts(gold if in_latex else gold.replace("sqrt", "\\sqrt"), given)
    if isinstance(found, bool):
        return Grade(found, "ok")
    function, texts = ("is_equal", [*found]) if in_latex else ("states", [gold, found[1]])
    job = call_job("redqueen.domains.maths.equality", function, texts, cpu_ms, rules)
    run = yield from run_once(replace(job, memory_bytes=memory_bytes))
    if run.verdict != "ok":
        lost = run.verdict == "infra"
        return Grade(False, run.verdict, run.detail if lost else run.reason, lost=lost)
    return Grade(run.items[0].text == "True", "ok")
