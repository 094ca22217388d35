"""What a judge wrote, read as values: strictly by meaning, tolerantly by form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.text import clean

LONGEST = 100_000
"""Characters of a reply that are read."""
_THINKING = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL | re.IGNORECASE)
"""Some servers leave out where it begins."""
_OPENING = re.compile(r"[{\[]")
_NUMBER = re.compile(r"\A\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*\Z")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Unreadable(ScoringError):
    """A reply is not of the form that was asked for; asking once more may help."""

    def __init__(self, message: str, reason: Reason = Reason.UNPARSABLE) -> None:
        super().__init__(reason, message)


def without_thinking(reply: str) -> str:
    """Return what a judge said after it had thought, without control characters."""
    return clean(_THINKING.sub("", reply)[:LONGEST]).strip()


def json_values(text: str) -> Iterator[Any]:
    """Return the JSON values that stand somewhere in the text, whatever is written around them, outermost first."""
    decoder = json.JSONDecoder()
    end = 0
    for opening in list(_OPENING.finditer(text))[:50]:
        if opening.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        yield value


def json_object(reply: str) -> Mapping[str, Any]:
    """Return the first JSON object in a reply.

    Raises:
        Unreadable: there is none.
    """
    for value in json_values(without_thinking(reply)):
        if isinstance(value, dict):
            return value
    raise Unreadable("there is no JSON object in the reply")


def as_number(value: Any, least: float, greatest: float) -> float:
    """Return a number that the judge gave as one, as digits (``"4"``, ``"4/5"`` of ``greatest`` 5) or as a word.

    Raises:
        Unreadable: it is none (``unparsable``), or not from ``least`` to ``greatest`` (``out_of_range``).
    """
    number = _number(value, greatest)
    if number is None:
        raise Unreadable(f"{value!r:.80} is not a number")
    if not math.isfinite(number) or not least <= number <= greatest:
        raise Unreadable(f"{number!r} is not a number from {least:g} to {greatest:g}", Reason.OUT_OF_RANGE)
    return number


def as_text(value: Any) -> str:
    """Return a text without what surrounds it.

    Raises:
        Unreadable: it is none, or an empty one.
    """
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"{value!r:.80} is not a text")
    return " ".join(clean(value).split())


def as_list(value: Any, *, count: int | None = None) -> list[Any]:
    """Return a list, of ``count`` items where that is given.

    Raises:
        Unreadable: it is none, or of another length.
    """
    if not isinstance(value, list):
        raise Unreadable(f"{value!r:.80} is not a list")
    if count is not None and len(value) != count:
        raise Unreadable(f"a list of {len(value)} items, not of {count}")
    return value


def as_choice(value: Any, choices: Mapping[str, bool]) -> bool:
    """Return what a verdict stands for. It must be one of the words as a whole: some contain their opposite.

    Raises:
        Unreadable: it is none of them.
    """
    if isinstance(value, bool):
        return value
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word not in choices:
        raise Unreadable(f"{value!r:.80} is none of {', '.join(choices)}")
    return choices[word]


def _number(value: Any, greatest: float) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _as_float(value)
    if not isinstance(value, str):
        return None
    if (word := value.strip().lower()) in _WORDS:
        return float(_WORDS.index(word))
    match = _NUMBER.match(value)
    if match is None or (match[2] and float(match[2]) != greatest):
        return None
    number = float(match[1].replace(",", "."))
    return number / 100 * greatest if match[3] else number


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf
