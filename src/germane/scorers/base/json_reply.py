"""Parsers for JSON replies of judges: strict about values, tolerant about formatting."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.text import strip_control_characters

MAX_REPLY_CHARACTERS = 100_000
"""Replies are truncated to this length before parsing."""
_MAX_JSON_CANDIDATES = 50
_THINKING = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL | re.IGNORECASE)
"""A reasoning block. Some servers omit its opening tag."""
_OPENING = re.compile(r"[{\[]")
_NUMBER = re.compile(r"\A\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*\Z")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class UnreadableReply(ScoringError):
    """A reply does not have the requested form. Asking once more may help."""

    def __init__(self, message: str, reason: UnscoredReason = UnscoredReason.UNPARSABLE) -> None:
        super().__init__(reason, message)


def strip_thinking(reply: str) -> str:
    """Remove reasoning blocks and control characters from a reply."""
    return strip_control_characters(_THINKING.sub("", reply)[:MAX_REPLY_CHARACTERS]).strip()


def find_json_values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists in a text, outermost first, ignoring any text around them."""
    decoder = json.JSONDecoder()
    end = 0
    for opening in list(_OPENING.finditer(text))[:_MAX_JSON_CANDIDATES]:
        if opening.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        yield value


def parse_json_object(reply: str) -> Mapping[str, Any]:
    """Return the first JSON object in a reply.

    Raises:
        UnreadableReply: the reply holds no JSON object.
    """
    for value in find_json_values(strip_thinking(reply)):
        if isinstance(value, dict):
            return value
    raise UnreadableReply("there is no JSON object in the reply")


def parse_number(value: Any, minimum: float, maximum: float) -> float:
    """Parse a number, digits (``"4"``, ``"80%"``, or ``"4/5"`` for a ``maximum`` of 5) or a number word up to ten.

    Raises:
        UnreadableReply: the value is not a number (``unparsable``) or lies outside the limits (``out_of_range``).
    """
    number: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer with hundreds of digits
            number = math.inf
    elif isinstance(value, str):
        word, match = value.strip().lower(), _NUMBER.match(value)
        if word in _NUMBER_WORDS:
            number = float(_NUMBER_WORDS.index(word))
        elif match and (not match[2] or float(match[2]) == maximum):
            number = float(match[1].replace(",", "."))
            number = number / 100 * maximum if match[3] else number
    if number is None:
        raise UnreadableReply(f"{value!r:.80} is not a number")
    if not math.isfinite(number) or not minimum <= number <= maximum:
        raise UnreadableReply(
            f"{number!r} is not a number from {minimum:g} to {maximum:g}", UnscoredReason.OUT_OF_RANGE
        )
    return number


def parse_text(value: Any) -> str:
    """Return a text with normalized white space.

    Raises:
        UnreadableReply: the value is not a text, or blank.
    """
    if not isinstance(value, str) or not value.strip():
        raise UnreadableReply(f"{value!r:.80} is not a text")
    return " ".join(strip_control_characters(value).split())


def parse_list(value: Any, *, count: int | None = None) -> list[Any]:
    """Return a list, checking that it has ``count`` items if that is given.

    Raises:
        UnreadableReply: the value is not a list, or has another length.
    """
    if not isinstance(value, list):
        raise UnreadableReply(f"{value!r:.80} is not a list")
    if count is not None and len(value) != count:
        raise UnreadableReply(f"the list has {len(value)} items instead of {count}")
    return value


def parse_choice(value: Any, choices: Mapping[str, bool]) -> bool:
    """Return the meaning of a verdict. It must equal one choice as a whole, because some contain their opposite.

    Raises:
        UnreadableReply: the value is not one of the choices.
    """
    if isinstance(value, bool):
        return value
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word not in choices:
        raise UnreadableReply(f"{value!r:.80} is not one of {', '.join(choices)}")
    return choices[word]
