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

_OF_SEVERAL = r"(?: one| of (?:them|the (?:two|three|four|numbers|integers))| (?:\w+ )?(?:numbers?|integers?))\b"
_MOST = re.compile(rf"(?<!\w)(?:larg|great|bigg|high|old)(?:er|est){_OF_SEVERAL}")
_LEAST = re.compile(rf"(?<!\w)(?:small|low|young)(?:er|est){_OF_SEVERAL}|(?<!\w)(?:lesser|least){_OF_SEVERAL}")
_HOW_MANY = re.compile(r"(?<!\w)how[ -]?(?:many|much)(?!\w)")

_SIZES = r"total|whole|full|exact|final|new|remaining|original|greatest|largest|smallest|least|fewest|maximum|minimum"
_COUNTS = re.compile(
    r"(?<!\w)(?:how[ -]?many|what number of|"
    rf"what quantity of|(?:what|find|determine|calculate|compute)(?: \w+)? the (?:(?:{_SIZES}) )?"
    r"(?:number|count|quantity) of)(?!\w)(.*)"
)
_BEFORE_THE_HEAD = re.compile(
    r"^(?: (?:more|fewer|less|other|extra|additional|different|distinct|possible|whole|full|complete|entire|square|"
    r"cubic|of|the|these|those|his|her|their|its|our|my|your))+(?= )"
)
_MEASURES = (
    r"(?:milli|centi|deci|kilo)?(?:grams?|lit(?:re|er)s|met(?:re|er)s)|tons|tonnes|miles|feet|inches|yards|pounds|ounces|"
    r"gallons|pints|quarts|acres|hectares|seconds|minutes|hours|days|weeks|months|years|decades|centuries|euros|dollars|"
    r"euro(?! (?:coin|note|bill)s?)|cents|pence|percent|degrees|calories|watts|volts|m|mm|cm|dm|km|g|kg|mg|l|ml|h|min|"
    r"(?:cups|glasses|teaspoons|tablespoons|spoons|bottles|bags|boxes) of|times (?:as|more|less|\w+er)"
)
_IS_MEASURED = re.compile(rf"^ (?:{_MEASURES})(?![\w-])")
"""Plurals alone: in "dollar bills" the unit says of what kind the bills are."""
_IS_MEAN = re.compile(
    r"(?<!\w)(?:average|mean|expected|per|(?:each|every|an|a) (?:second|minute|hour|day|week|month|year))(?!\w)"
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
    """Return ``most`` or ``least`` where the question is for the larger or the smaller of several numbers, else ""."""
    asked = question(text)
    if _HOW_MANY.search(asked):  # "How many pens has the older one?" asks for pens
        return ""
    if _MOST.search(asked):
        return "most"
    return "least" if _LEAST.search(asked) else ""


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
    if (
        not answer.removeprefix("-").isdecimal()
        and not _IS_MEASURED.search(words)
        and not _IS_MEAN.search(counted.string)
    ):
        return f"the text counts{' '.join(words.split(' ')[:3])}, and there are {answer}"
    return ""
