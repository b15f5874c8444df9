"""What a word problem asks for: rules 4 and 6 of ``agreement``, which read its question.

The question is the last sentence; where that asks for no quantity ("Can you help her?"), the last one that does. What
it counts is the head of the words behind "how many", "the number of" or the like: "pens", but litres in "more litres"
and bills in "dollar bills".
"""

from __future__ import annotations

import re

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
"""Plurals alone: in "dollar bills" the unit says of what kind the bills are."""
_TIME = r"second|minute|hour|day|week|month|year"
_IS_MEAN = re.compile(
    rf"(?<!\w)(?:average|mean|per|(?<!after )(?<!of )(?<!for )(?<!within )(?:each|every|an|a|one) (?:{_TIME}))(?!\w)"
)


def plain(text: str) -> str:
    """Return the text in small letters with single spaces, without quotes and brackets, and with "percent" written out:
    what the rules read."""
    return _SPACE.sub(" ", _APART.sub(" ", text.casefold().replace("%", " percent "))).strip()


def question(text: str) -> str:
    """Return the sentence of the text that asks, as ``plain`` writes it."""
    sentences: list[str] = []
    for part in _BREAK.split(plain(text)):
        if sentences and _ENDS.search(sentences[-1]):
            sentences[-1] += f" {part}"
        else:
            sentences.append(part)
    asking = [one for one in sentences if _ASKS.search(one)]
    return (asking or sentences)[-1]


def wanted_unknown(text: str) -> str:
    """Return ``most`` or ``least`` where the question is for the larger or the smaller of several numbers, else "".

    What stands right behind the question word counts: "How many pens has the older one?" asks for pens.
    """
    asked = [*_EXTREME.finditer(question(text))]
    return str(asked[-1].lastgroup) if asked else ""


def miscounted(text: str, answer: str, is_negative: bool = False) -> str:
    """Return why the question cannot have ``answer``, a number as the solver writes it, or "".

    ``is_negative`` says so of a number that the solver writes with roots.
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
