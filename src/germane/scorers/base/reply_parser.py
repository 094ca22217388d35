"""Parsers for JSON objects in judge replies: strict about values, tolerant of formatting."""

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
_TAG = r"(?:seed:)?(?:think|thinking|thought|reasoning|reflection)"
_THINKING = re.compile(
    rf"\A.*(?:</{_TAG}>|\[/THINK\]|<\|channel\|>final<\|message\|>)"
    rf"|(?:<{_TAG}>|\[THINK\]|<\|channel\|>(?:analysis|commentary)).*\Z|<\|(?:end|return)\|>",
    re.DOTALL | re.IGNORECASE,
)
"""A reasoning block, in tags or in the channels of the Harmony format. Some servers omit the opening tag."""
_OPENING = re.compile(r"[{\[]")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"```\w*")
_INTRODUCTION_WORDS = frozenset(
    {
        *("sure", "ok", "okay", "certainly", "of", "course", "here", "is", "s", "are", "the", "my", "your", "this"),
        *("json", "object", "format", "in", "output", "response", "reply", "result", "results", "answer", "requested"),
        *("rating", "ratings", "score", "scores", "verdict", "verdicts", "evaluation", "analysis", "assessment", "as"),
        *("below", "following", "final", "what", "you", "asked", "for", "i", "hope", "that", "it", "helps", "based"),
        *("on", "and", "a", "each", "any", "time", "valid", "only", "claims", "passages", "sub", "questions", "all"),
        *("done", "thank", "thanks", "let", "me", "see", "know", "if", "need", "anything", "else"),
    }
)
"""The words allowed around a rating in a code fence, or around a JSON object."""
_ERROR_NAME = re.compile(r"(?<![a-z])(?:errors?|err|exceptions?|faults?|failures?|refusals?|traceback)(?![a-z])")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_ERROR = ("", "none", "no", "null", "false", "n/a", "-", "ok", "0")
_PLACEHOLDER = re.compile(r"\W*|<[^<>]*>|\W*(?:strings?|n/?a|tbd|todo|placeholder|null|undefined)\W*", re.IGNORECASE)
"""A placeholder that the judge copied from the description of the reply format."""
_NUMBER = re.compile(r"\A\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*\Z")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
QUESTION_MARKS = "?\uff1f\u061f;\u055e\u1367\u2e2e\u203d"
"""Question marks in several scripts. The fourth is the Greek one."""


class UnreadableReply(ScoringError):
    """The reply does not have the requested format. A retry may help."""

    def __init__(self, message: str, reason: UnscoredReason = UnscoredReason.UNPARSABLE) -> None:
        super().__init__(reason, message)


def strip_thinking(reply: str) -> str:
    """Return a reply without reasoning blocks, control characters and a byte order mark."""
    return strip_control_characters(_THINKING.sub("", reply)[:MAX_REPLY_CHARACTERS]).strip().lstrip("\ufeff")


def find_json_values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists in a text, ignoring any text around them.

    A truncated value ends the search, because the values inside it are not the requested ones. An object with duplicate
    names is not valid JSON.
    """
    for value, _, _ in _locate_json_values(text):
        yield value


def _locate_json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield each value of :func:`find_json_values` with its start and end positions."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique_members)
    end = 0
    for opening in list(_OPENING.finditer(text))[:_MAX_JSON_CANDIDATES]:
        if opening.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                return
            continue
        except (ValueError, RecursionError):
            continue
        yield value, opening.start(), end


def parse_json_object(reply: str) -> Mapping[str, Any]:
    """Return the JSON object in a reply, which may also contain code fences, reasoning and an introduction.

    Within any other text, an object is an example or part of a refusal: "I cannot rate this. The format is {...}."

    Raises:
        UnreadableReply: the reply contains no JSON object, several different ones, other text, or an error field.
    """
    text = strip_thinking(reply)
    located = [each for each in _locate_json_values(text) if isinstance(each[0], dict)]
    found: list[dict[str, Any]] = [value for value, _, _ in located]
    if not found:
        raise UnreadableReply("the reply contains no JSON object")
    if any(value != found[0] for value in found):
        raise UnreadableReply(f"the reply contains {len(found)} different JSON objects")
    ends = [0, *(end for _, _, end in located)]
    starts = [*(start for _, start, _ in located), len(text)]
    require_introduction(text, *(text[end:start] for end, start in zip(ends, starts, strict=True)))
    if error := find_error_member(found[0]):
        raise UnreadableReply(f"the reply contains an error: {error:.200}")
    return found[0]


def require_introduction(text: str, *around: str) -> None:
    """Check that the texts around a value only introduce it, such as "Sure! Here is the JSON:".

    Raises:
        UnreadableReply: the texts contain any other words.
    """
    if any(word not in _INTRODUCTION_WORDS for word in _WORD.findall(_FENCE.sub(" ", " ".join(around)).lower())):
        raise UnreadableReply(f"{text!r:.80} contains more than the requested value")


def find_error_member(value: Any) -> str | None:
    """Return the first non-empty field of a JSON value, at any depth, whose name indicates an error; None if there is
    none.
    """
    if isinstance(value, list):
        return next((error for item in value if (error := find_error_member(item))), None)
    if not isinstance(value, dict):
        return None
    for name, member in value.items():
        is_empty = not member or (isinstance(member, str) and member.strip().lower() in _NO_ERROR)
        if not is_empty and _ERROR_NAME.search(_CAPITAL.sub("_", name).lower()):
            return f"{name}: {member!r}"
        if error := find_error_member(member):
            return error
    return None


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    if len(unique) < len(members):
        raise ValueError("two members have the same name")
    return unique


def parse_number(value: Any, minimum: float, maximum: float) -> float:
    """Parse a number, a numeric string (``"4"``, ``"80%"``, ``"4/5"`` if ``maximum`` is 5), or a number word up to ten.

    Raises:
        UnreadableReply: the value is not a number (``unparsable``), or it is outside the limits (``out_of_range``).
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
    """Return a string with normalized whitespace.

    Raises:
        UnreadableReply: the value is not a string, is blank, or is a placeholder.
    """
    if not isinstance(value, str) or is_placeholder(value):
        raise UnreadableReply(f"{value!r:.80} is not a usable text")
    return " ".join(strip_control_characters(value).split())


def is_placeholder(text: str) -> bool:
    """Return whether a text is blank or a placeholder, such as "...", "string" or "N/A"."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def parse_list(value: Any, *, count: int | None = None) -> list[Any]:
    """Check that a value is a list, with ``count`` items if ``count`` is given, and return it.

    Raises:
        UnreadableReply: the value is not a list, or has a different length.
    """
    if not isinstance(value, list):
        raise UnreadableReply(f"{value!r:.80} is not a list")
    if count is not None and len(value) != count:
        raise UnreadableReply(f"the list has {len(value)} items instead of {count}")
    return value


def parse_choice(value: Any, choices: Mapping[str, bool]) -> bool:
    """Return the Boolean meaning of a verdict. It must equal one of the choices: "not supported" contains "supported".

    Raises:
        UnreadableReply: the value is not one of the choices.
    """
    if isinstance(value, bool):
        return value
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word not in choices:
        raise UnreadableReply(f"{value!r:.80} is not one of {', '.join(choices)}")
    return choices[word]
