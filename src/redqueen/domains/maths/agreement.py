"""Rules that compare a word problem's text with its formal twin, the statement that defines the right answer.

1. The text is one question: plain prose of printable characters, at most ``MAX_TEXT_CHARS`` long, with one question
   mark, at its end. It holds no formula: no sign of arithmetic, and no digits inside a word.
2. Its numbers are the twin's, with equal multiplicity; digits and number words count. Only the twin may have 0 and 1
   (the start of a range, the previous member) and numbers that ``_IMPLIED`` words mean (2 for "twice", 7 for "week").
   Only the text may have "one", and number words that count the unknowns ("the sum of two numbers").
3. An operation that the text names ("product", "remainder", "gives away") occurs in the twin: ``_CUES``. Things that
   are used up ("eats") are also subtracted, unless the question asks for their number ("How much does it eat?") or for
   the number before.
4. If the question asks for the larger, smaller, largest or smallest number, and the twin asks for one of its unknowns,
   that unknown is the largest or smallest in the solution (``wanted_unknown``).
5. The text names those operations of the twin that are in ``_MUST_BE_NAMED``. If the twin has only + - * / and no
   conditions, the text also names differences, products and quotients: ``_PLAIN_MUST_BE_NAMED``.
6. The answer to a counting question ("How many pens ...", "the number of pens") is a whole number of at least 0. Only
   measured quantities (litres, euros) and means ("How many pages does he read per day?") may be fractions, and only
   degrees may be negative (``miscounted``).

A text that breaks a rule is refused. Errors that the rules miss do no harm: the twin's answer counts, so a misleading
text is hard for every student, and a task that no student solves gives its teacher no reward.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from redqueen.domains.maths.language import Node

MAX_TEXT_CHARS, MIN_WORDS = 600, 5

_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?![\w])", re.ASCII)
_FORMULA = re.compile(
    r"[=<>^*/+~|\\{}\[\]_×÷·≤≥≠−]|\$(?!\d)|[0-9]\s*-\s*[0-9]|%(?!\s|[.,?]|$)|[0-9][A-Za-z]|[A-Za-z][0-9]"
)
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
_SMALL += "seventeen eighteen nineteen twenty"
_TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS_FOR = {word: n for n, word in enumerate(_SMALL.split())} | {word: 10 * n for n, word in enumerate(_TENS, 3)}
_COUNTS_THE_ASKED = re.compile(
    r"\b(?:two|three|four)(?= (?:(?:whole|positive|consecutive|different|natural|real|unknown) )*"
    r"(?:numbers|integers|unknowns)\b)"
)
_IMPLIED: dict[int, str] = {
    2: r"twice|double[ds]?|half|halves|halved|pairs?|both|couple|squares?|squared|even|odd|second|consecutive|"
    r"handshakes?|shakes? hands|perimeter|diameter",
    3: r"thrice|triple[ds]?|thirds?|cubes?|cubed|triplets?|consecutive|triangles?",
    4: r"quarters?|quadruple[ds]?|fourths?|squares?",
    5: r"fifths?|pentagons?",
    6: r"sixths?|dice|die|hexagons?|cubes?",
    7: r"weeks?|sevenths?|weekly",
    10: r"tens?|tenths?|digits?|decade",
    12: r"dozens?|years?|yearly|annual|months?",
    24: r"days?|daily",
    52: r"years?|yearly",
    60: r"seconds?|minutes?|hours?|hourly",
    180: r"triangles?|straight",
    360: r"circles?|full turns?|quadrilaterals?",
    100: r"percent|hundreds?|metres?|meters?|centimetres?|centuries|century|euros?|dollars?|cents?",
    1000: r"thousands?|kilometres?|kilometers?|kilograms?|kg|km|litres?",
}
_TAKEN_AWAY = (
    r"giv(?:es?|en|ing) (?:\S+ ){0,4}away|gave (?:\S+ ){0,4}away|fewer|minus|subtract\w*|tak(?:es|en) away|younger|"
    r"decreas\w*|differences?|are left\b(?! over)"
)
_TAKING = frozenset({"-", "neg", "%", "gcd"})
_USED_UP = r"los(?:es?|t)|eats?|ate|spen(?:ds?|t)|sells?|sold|removes?d?"
_ASKS_HOW_MUCH_OF_IT = (
    r"eat|eats|eaten|ate|sells?|sold|spend|spends|spent|loses?|lost|removed?|costs?|earns?|earned|pays?|paid|initially|"
    r"(?:at|in) (?:first|the beginning)|to begin with|originally|before"
)
_ASKS_FOR_THE_REST = r"left|remain\w*|now|still|rest"
"""Words of questions for the used-up amount or the amount before; with these, ``_USED_UP`` needs no subtraction."""
_DIVIDES = r"shar(?:es?|ed)|splits?|divid(?:es?|ed)|quotient|equally|evenly|halves|halved"
_TIMES = r"product|multipl(?:y|ies|ied)|times as|twice|thrice|doubles?d?|triples?d?"
_CUES: tuple[tuple[str, frozenset[str]], ...] = (
    (_TAKEN_AWAY, _TAKING),
    (r"sum of|adds?\b|added|plus|increased by|older", frozenset({"+", "-", "sum", "digitsum", "sigma"})),
    (_TIMES, frozenset({"*", "/", "^", "prod", "sum", "fact", "lcm"})),
    (_DIVIDES, frozenset({"/", "%", "*", "gcd", "lcm", "divisors"})),
    (r"remainders?", frozenset({"%"})),
    (r"greatest common|largest common|highest common|as many (?:\S+ )?as possible", frozenset({"gcd", "max"})),
    (r"(?:least|lowest|smallest) common", frozenset({"lcm"})),
    (r"how many divisors|number of divisors", frozenset({"divisors", "count"})),
    (r"primes?", frozenset({"prime"})),
    (r"square root", frozenset({"sqrt", "^"})),
    (r"factorial", frozenset({"fact", "prod"})),
)
"""Words of a text, and the operations of which the twin must then have at least one."""
_MUST_BE_NAMED: dict[str, str] = {
    "gcd": r"common|as many (?:\S+ )?as possible|largest|greatest|longest|biggest|equal",
    "lcm": r"common|again|multiple|at the same time|smallest|least|fewest|next time",
    "%": r"remainders?|left|over|remain\w*|rest|modulo|even|odd|clock|divisible|multiples?|last digit|weekday",
    "choose": r"choos\w+|ways|pick\w*|select\w*|combinations?|pairs?|teams?|groups?|handshakes?|committees?|subsets?",
    "fact": r"factorial|product|multipl\w+|ways|orders?|arrange\w*|permutations?|line up|seat\w*",
    "divisors": r"divisors?|factors?|divide\w*|rectangles?",
    "sigma": r"divisors?|factors?",
    "phi": r"coprime|prime to|common",
    "digitsum": r"digits?",
    "prime": r"primes?",
    "sqrt": r"root|side|square|length|distance|diagonal",
    "floor": r"whole|complete|full|at most|down|fully|entire",
    "ceil": r"at least|needed|need|up|fewest|required|smallest",
    "abs": r"difference|distance|apart|absolute|far",
    "max": r"largest|greatest|most|maximum|biggest|longest|highest|oldest|larger|bigger",
    "min": r"smallest|least|fewest|minimum|shortest|lowest|youngest|smaller|lesser",
    "count": r"how many|number of|in how many",
    "prod": r"product|multipl\w+|ways|times|factorial",
}
_PLAIN_MUST_BE_NAMED: dict[str, str] = {
    "-": rf"{_TAKEN_AWAY}|{_USED_UP}|less|left|remain\w*|rest|away|than|gone|leav\w+|uses?d?|pays?|paid|change|missing|"
    r"out|drops?|before|return\w*|lends?|lent|free|behind|must|how (?:much|many) (?:\w+er|more)|by how|fell|breaks?|"
    r"broke\w*|dies|died|off|back|still|lower|shorter|cheaper|ago|without|except|falls?",
    "*": rf"{_TIMES}|each|every|per|times|of|by|with|apiece|rows?|boxes|packs?|bags?|for|at|area|rate|an? \w+|costs?|"
    r"seconds?|minutes?|hours?|one day",
    "/": rf"{_DIVIDES}|each|every|per|half|third|quarter|fifth|average|mean|into|between|among|equal|ratio|rate|of|"
    r"costs?|takes?|minutes?|hours?|percent",
}


def disagreement(text: str, statement: Node) -> str:
    """Return the reason why the text and the statement disagree, or ""."""
    text = text.strip()
    words = plain(text)
    if why := _no_question(text):
        return why
    twin = Counter(_numbers_of(statement))
    in_text = Counter(_numbers_in(words))
    free = {0, 1} | {number for number, cue in _IMPLIED.items() if _find(words, cue)}
    if in_text - twin:
        return f"the text has {min(in_text - twin):g}, the twin does not have it"
    missing = [number for number in (twin - in_text) if number not in free]
    if missing:
        return f"the twin has {min(missing):g}, the text does not have it"
    operations = set(_operations_of(statement))
    asked = question(text)
    counts_it = _find(asked, _ASKS_HOW_MUCH_OF_IT) and not _find(asked, _ASKS_FOR_THE_REST)
    for cue, wanted in _CUES if counts_it else ((_USED_UP, _TAKING), *_CUES):
        if not operations & wanted and (found := _find(words, cue)):
            return f"the text says {found!r}, the twin does nothing of the kind"
    must = dict(_MUST_BE_NAMED)
    if not statement[2] and operations <= {"+", "-", "*", "/"}:
        must |= _PLAIN_MUST_BE_NAMED
    for operation in sorted(operations & must.keys()):
        if not _find(words, must[operation]):
            return f"the twin has {operation}, the text does not say so"
    return ""


def _no_question(text: str) -> str:
    if not text:
        return "there is no text"
    if len(text) > MAX_TEXT_CHARS:
        return f"a text of more than {MAX_TEXT_CHARS} characters"
    if not all(char.isprintable() or char == "\n" for char in text) or any(
        char.isnumeric() and not char.isascii() for char in text
    ):
        return "characters that are not plain text"
    if text.count("?") != 1 or not text.endswith("?"):
        return "the text is not one question, with its mark at the end"
    if found := _FORMULA.search(text):
        return f"a formula in the text: {found[0]!r}"
    if len(re.findall(r"[^\W\d_]{2,}", text)) < MIN_WORDS:
        return f"fewer than {MIN_WORDS} words"
    return ""


def _numbers_in(words: str) -> Iterator[float]:
    """Yield the numbers of a lower-case text; the word "one" is ignored, because it may be a pronoun."""
    words = _COUNTS_THE_ASKED.sub(" ", words)
    for found in _NUMBER.finditer(words):
        yield float(found[0].replace(",", ""))
    for word in re.findall(r"[a-z]+(?:-[a-z]+)?", words):
        tens, dash, ones = word.partition("-")
        if dash and _WORDS_FOR.get(tens, 0) >= 20 and 0 < _WORDS_FOR.get(ones, 0) < 10:
            yield float(_WORDS_FOR[tens] + _WORDS_FOR[ones])
            continue
        yield from (float(_WORDS_FOR[part]) for part in (tens, ones) if part in _WORDS_FOR and part != "one")


def _numbers_of(node: Any) -> Iterator[float]:
    if isinstance(node, tuple):
        if node and node[0] == "num":
            yield float(node[1])
            return
        for part in node:
            yield from _numbers_of(part)


def _operations_of(node: Any) -> Iterator[str]:
    """Yield signs and functions of a statement, without + and - in indices such as ``n - 1`` and in ranges."""
    match node:
        case ("call", name, *arguments) if len(name) == 1:
            for part in arguments:
                yield from (op for op in _operations_of(part) if op not in ("+", "-"))
        case ("call", name, *arguments):
            yield str(name)
            for part in arguments:
                yield from _operations_of(part)
        case ("num" | "name", *_):
            return
        case ("in", _, low, high):
            yield from (op for side in (low, high) for op in _operations_of(side) if op not in ("+", "-"))
        case tuple():
            if node and isinstance(node[0], str) and node[0] not in ("ask", "rel"):
                yield node[0]
            for part in node:
                yield from _operations_of(part)


def _find(words: str, cue: str) -> str:
    found = re.search(rf"(?<!\w)(?:{cue})(?!\w)", words)
    return found[0] if found else ""


_TITLES = r"mrs?|ms|dr|st|prof|jr|sr|no|vs|e\.g|i\.e|etc|[a-z]"
_ENDS = re.compile(rf"(?<!\w)(?:{_TITLES})\.$")
_BREAK = re.compile(r"(?<=[.!?]) ")
_ASKS = re.compile(r"(?<!\w)(?:how|what|which|who|whose|when|find|determine|calculate|compute)(?!\w)")
_SPACE, _APART = re.compile(r"\s+"), re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)|[\"“”()]")

_LARGER = r"(?:larg|great|bigg|high|old)(?:er|est)"
_SMALLER = r"(?:small|low|young)(?:er|est)|lesser|least"
_EXTREME = re.compile(
    r"(?<!\w)(?:what|which|find|determine|calculate|compute|how (?:old|large|big|high|much|great))"
    r"(?: (?:number|one|child|person|of (?:the |these |those )?(?:two |three |four |both )?\w+))?"
    r"(?: (?:is|are|was|were|will be|would be))? (?:the )?(?:(?:value|age|size|price|height) of (?:the )?)?"
    rf"(?:(?P<most>{_LARGER})|(?P<least>{_SMALLER}))(?!\w)(?! (?:\w+ )?(?:number|amount|count|quantity) of| common)"
)

_NO_COUNT = (
    r"if|when|where|for|by|to|as|of|than|and|ratio|fraction|mean|average|percent|factor|probability|expected|share|"
    r"proportion|product|sum|difference|square|price|cost"
)
_COUNTS = re.compile(
    r"(?<!\w)(?:(?<!by )how[ -]?many|what (?:number|quantity) of|"
    rf"(?:what(?:'s)?|find|determine|calculate|compute|tell)(?: (?!(?:{_NO_COUNT})(?!\w))[\w']+){{0,5}}? "
    r"(?:number|count|quantity) of)(?!\w)([^,;]*)"
)
_BEFORE_THE_HEAD = re.compile(
    r"^(?: (?:more|fewer|less|other|extra|additional|different|distinct|possible|whole|full|complete|entire|total|"
    r"remaining|working|square|cubic|fluid|metric|us|of|the|these|those|his|her|their|its|our|my|your))+(?= )"
)
_MEASURES = (
    r"(?:milli|centi|deci|kilo)?(?:grams?|lit(?:re|er)s|met(?:re|er)s)|kilos|tons|tonnes|miles|feet|inches|yards|pounds|"
    r"ounces|gallons|pints|quarts|acres|hectares|seconds|minutes|hours|days|weeks|months|years|decades|centuries|euros|"
    r"dollars|euro(?! (?:coin|note|bill)s?)|cents|pence|rupees|percent|degrees|calories|watts|volts|m|mm|cm|dm|km|g|kg|"
    r"mg|l|ml|h|min|teaspoons|tablespoons|(?:cups|glasses|spoons) of|dozens?|times (?:as|more|less|\w+er)"
)
_IS_MEASURED = re.compile(rf"^ (?:{_MEASURES})(?![\w-])")
"""Only plurals: in "dollar bills" the unit is an adjective."""
_TIME = r"second|minute|hour|day|week|month|year"
_IS_MEAN = re.compile(
    rf"(?<!\w)(?:average|mean|per|(?<!after )(?<!of )(?<!for )(?<!within )(?:each|every|an|a|one) (?:{_TIME}))(?!\w)"
)


def plain(text: str) -> str:
    """Return the text as the rules read it: in lower case with single spaces, without quotes and brackets, and with
    "percent" written out."""
    return _SPACE.sub(" ", _APART.sub(" ", text.casefold().replace("%", " percent "))).strip()


def question(text: str) -> str:
    """Return the sentence of the text that asks the question, as ``plain`` writes it."""
    sentences: list[str] = []
    for part in _BREAK.split(plain(text)):
        if sentences and _ENDS.search(sentences[-1]):
            sentences[-1] += f" {part}"
        else:
            sentences.append(part)
    asking = [one for one in sentences if _ASKS.search(one)]
    return (asking or sentences)[-1]


def wanted_unknown(text: str) -> str:
    """Return ``most`` or ``least`` if the question asks for the largest or the smallest of several numbers, else "".

    The words directly after the question word decide: "How many pens has the older one?" asks for pens.
    """
    asked = [*_EXTREME.finditer(question(text))]
    return str(asked[-1].lastgroup) if asked else ""


def miscounted(text: str, answer: str, is_negative: bool = False) -> str:
    """Return the reason why ``answer``, a number as the solver writes it, cannot answer the question, or "".

    ``is_negative``: whether an answer with roots is negative.
    """
    counted = _COUNTS.search(question(text))
    if not counted:
        return ""
    words = _BEFORE_THE_HEAD.sub("", counted[1].rstrip("?"))
    if (is_negative or answer.startswith("-")) and not words.startswith(" degrees"):
        return f"the text asks how many, and there are {answer}"
    is_mean = _IS_MEAN.search(counted[1]) or "on average" in counted.string
    if not answer.removeprefix("-").isdecimal() and not _IS_MEASURED.search(words) and not is_mean:
        return f"the text counts{' '.join(words.split(' ')[:3])}, and there are {answer}"
    return ""
