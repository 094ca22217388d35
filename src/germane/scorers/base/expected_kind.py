"""A check of whether the answer contains a time or a quantity, for English questions that ask for one.

The check is lenient: an answer fails only if it contains no common word or digit of the expected kind at all. Other
questions, and questions and answers in other languages, always pass. No list of words is complete ("at dusk", "under
Queen Victoria"), so a failed check limits the label but does not decide it.
"""

from __future__ import annotations

import re
from typing import Final

VERSION: Final = "1"
_CLAUSE_START: Final = r"(?:\A|[,;:.]\s*|\b(?:and|or|in|on|at|since|until|from|by)\s+)"
_MONTHS: Final = (
    "jan(?:uary)?|feb(?:ruary)?|march|mar|april|apr|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_ASKS_FOR_TIME: Final = re.compile(
    rf"{_CLAUSE_START}(?:when|(?:what|which)\s+(?:year|date|day|month|time|century|decade))\b", re.IGNORECASE
)
_ASKS_FOR_QUANTITY: Final = re.compile(
    rf"{_CLAUSE_START}how\s+(?:many|much|long|old|tall|far|high|deep|heavy|wide|fast)\b", re.IGNORECASE
)
_TIME: Final = re.compile(
    r"\b(?:1\d{3}|2[01]\d\d)(?:s|\b)|\b(?:in|around|circa|about|c\.)\s+(?:the year\s+)?\d{3}\b(?!\s*[a-z])"
    rf"|\d:\d\d|\d\s*[ap]\.?m\b|\b\d{{1,2}}[./-]\d{{1,2}}\b|\b(?:{_MONTHS})\b"
    r"|\b\d+(?:st|nd|rd|th)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:spring|summer|autumn|fall|winter|seasons?|weekends?|yesterday|today|tonight|tomorrow|now|currently|soon|once"
    r"|immediately|ago|bce?|ad|after|before|when|whenever|during|since|until|while|if|as soon as|every|each|daily"
    r"|weekly|monthly|yearly|annually|always|never|ever|night|midnight|morning|noon|afternoon|evening|days?|weeks?"
    r"|months?|years?|decades?|century|centuries|eras?|hours?|minutes?|seconds?|early|earlier|late|later|latest|last"
    r"|depends?|varies|vary|first|next|previous|recently|still|not yet|already"
    r"|o'clock|easter|christmas|[a-z]+teenth|[a-z]+ieth)\b",
    re.IGNORECASE,
)
_QUANTITY: Final = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|halves|thirds?|quarters?|both|single"
    r"|several|none|no|nothing|any|many|few|fewer|more|most|less|least|once|twice|all|every|free|until|unlimited"
    r"|forever|always|never|permanent|permanently|indefinitely|as (?:long|much|many|far) as|lots?|little|much"
    r"|enough|depends?|varies|vary"
    r"|an?(?: \w+)? (?:hour|day|week|month|year|minute|second|moment|night|decade|century|mile|lot|while|couple"
    r"|kilometers?|meters?|foot|inch|pound|dollar|euro)|(?:hours|days|weeks|months|years|minutes|decades|centuries))\b",
    re.IGNORECASE,
)
_ENGLISH: Final = re.compile(r"\b(?:the|and|it|its|has|have|were|are|this|that|your?|we|they)\b", re.IGNORECASE)


def describe_missing_kind(kind: str) -> str:
    """Describe the missing kind that :func:`find_missing_kind` returned, in a sentence."""
    return f"The question asks for {kind}, but none was recognized in the answer."


def find_missing_kind(question: str, answer: str) -> str | None:
    """Return ``a time`` or ``a quantity`` if the question asks for one, but the answer has no common word for it."""
    if not _ENGLISH.search(answer):
        return None
    if _ASKS_FOR_TIME.search(question):
        return None if _TIME.search(answer) else "a time"
    if _ASKS_FOR_QUANTITY.search(question):
        return None if _QUANTITY.search(answer) else "a quantity"
    return None
