"""Parsers for JSON objects in judge replies: strict about values, tolerant of formatting."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.phrases import any_of, words_in
from germane.scorers.base.text import strip_control_characters

MAX_REPLY_CHARACTERS = 100_000
"""Replies are truncated to this length before parsing."""
_MAX_JSON_CANDIDATES = 50
_TAG = r"(?:seed:)?(?:think|thinking|thought|reasoning|reflection)"
_THINKING = re.compile(
    rf"\A.*(?:</{_TAG}>|\[/THINK\]|\u25c1/think\u25b7|<\|end_of_thought\|>|<channel\|>|<\|channel\|>final<\|message\|>)"
    rf"|(?:<{_TAG}>|\[THINK\]|\u25c1think\u25b7|<\|begin_of_thought\|>|<\|channel>|<\|channel\|>(?:analysis|commentary))"
    r".*\Z",
    re.DOTALL | re.IGNORECASE,
)
"""A reasoning block, in tags or in the channels of the harmony format. Some servers omit its opening tag."""
_CONTROL_TOKEN = re.compile(
    r"(?:<[|\uff5c][\w\u2581]{1,40}[|\uff5c]>|</s>|<eos>|<(?:end|start)_of_turn>)(?:(?<=im_start\|>)assistant\b)?",
    re.IGNORECASE,
)
"""A token that marks the start or end of a model's turn. The server should have removed it."""
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\[\s\S])*(?:"|\Z))|,(\s*[}\]])')
"""A JSON string, or a comma before a closing bracket, which JSON does not allow."""
_OPENING = re.compile(r"[{\[]")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"```\w*")
_INTRODUCTION_WORDS = words_in("introduction")
"""Words allowed around a rating in a code fence, or around a JSON object."""
_MAX_INTRODUCTION = 60
"""Maximum length of an introduction in any language."""
_NO_INTRODUCTION = re.compile(
    rf"[.!?\u3002\uff01\uff1f;\d]|n't\b|n\u2019t\b|\b(?:{any_of('no introduction')})\b"
    rf"|{any_of('no introduction in scripts without word boundaries')}",
    re.IGNORECASE,
)
"""Signs that a short text before a value does not introduce the value: a negation, an example, a format, an error."""
_ERROR_NAME = re.compile(r"(?<![a-z])(?:errors?|err|exceptions?|faults?|failures?|refusals?|traceback)(?![a-z])")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_ERROR = ("", "none", "no", "null", "false", "n/a", "-", "ok", "0")
_PLACEHOLDER = re.compile(r"\W*|<[^<>]*>|\W*(?:strings?|n/?a|tbd|todo|placeholder|null|undefined)\W*", re.IGNORECASE)
"""A placeholder that the judge copied from the description of the reply format."""
_NUMBER = re.compile(r"\A\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*\Z")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class UnreadableReply(ScoringError):
    """The reply does not have the requested format. A retry may help."""

    def __init__(self, message: str, reason: UnscoredReason = UnscoredReason.UNPARSABLE) -> None:
        super().__init__(reason, message)


def strip_thinking(reply: str) -> str:
    """Remove reasoning blocks, control characters and tokens, and a byte order mark from a reply."""
    text = _CONTROL_TOKEN.sub("", _THINKING.sub("", reply)[:MAX_REPLY_CHARACTERS])
    return strip_control_characters(text).strip().strip(_INVISIBLE).strip()


def find_json_values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists in a text, ignoring any text around them.

    A truncated value ends the search, because the values inside it are not the requested ones. An object with duplicate
    names is not valid JSON.
    """
    for value, _, _ in _locate_json_values(without_trailing_commas(text)):
        yield value


def _locate_json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the values of :func:`find_json_values`, with their start and end positions."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique_members)  # strings may contain line breaks
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


def without_trailing_commas(text: str) -> str:
    """Remove commas before closing brackets, outside of strings."""
    return _STRING_OR_COMMA.sub(lambda match: match[1] or match[2], text)


def parse_json_object(reply: str) -> Mapping[str, Any]:
    """Return the JSON object in a reply, which may also contain code fences, reasoning and an introduction.

    An object inside other text is an example or part of a refusal: "I cannot rate this. The format is {...}."

    Raises:
        UnreadableReply: the reply contains no JSON object, several different ones, other text, or an error field.
    """
    text = without_trailing_commas(strip_thinking(reply))
    located = list(_locate_json_values(text))
    values = [value[0] if isinstance(value, list) and len(value) == 1 else value for value, _, _ in located]
    found: list[dict[str, Any]] = [value for value in values if isinstance(value, dict)]
    if not found:
        raise UnreadableReply("the reply contains no JSON object")
    if any(value != found[0] for value in found):
        raise UnreadableReply(f"the reply contains {len(found)} different JSON objects")
    starts, ends = [start for _, start, _ in located], [end for _, _, end in located]
    require_introduction(
        text, text[: starts[0]], *(text[end:start] for end, start in zip(ends, [*starts[1:], len(text)], strict=True))
    )
    if error := find_error_member(found[0]):
        raise UnreadableReply(f"the reply contains an error: {error:.200}")
    return found[0]


def require_introduction(text: str, before: str, *after: str) -> None:
    """Check that the text around a value only introduces it, such as "Sure! Here is the JSON:".

    A short text before the value, in any language, counts as an introduction if it ends with a colon and does not
    announce an example, a format or an error.

    Raises:
        UnreadableReply: The text contains words that are not part of an introduction.
    """
    short = _FENCE.sub(" ", before).strip(" \n\t*_")
    is_short = (
        len(short) <= _MAX_INTRODUCTION and short.endswith((":", "\uff1a")) and not _NO_INTRODUCTION.search(short)
    )
    around = " ".join(after if is_short else (before, *after))
    if any(word not in _INTRODUCTION_WORDS for word in _WORD.findall(_FENCE.sub(" ", around).lower())):
        raise UnreadableReply(f"the reply contains more than the requested value: {text!r:.80}")


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
        raise UnreadableReply(f"the value must be a number, not {value!r:.80}")
    if not math.isfinite(number) or not minimum <= number <= maximum:
        raise UnreadableReply(
            f"the number must be from {minimum:g} to {maximum:g}, not {number!r}", UnscoredReason.OUT_OF_RANGE
        )
    return number


def parse_text(value: Any) -> str:
    """Return a string with normalized whitespace. Raise UnreadableReply if it is blank or a placeholder."""
    if not isinstance(value, str) or is_placeholder(value):
        raise UnreadableReply(f"{value!r:.80} is not a usable text")
    return " ".join(strip_control_characters(value).split())


def is_placeholder(text: str) -> bool:
    """Return whether a text is blank or a placeholder, such as "...", "string" or "N/A"."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def parse_list(value: Any, *, count: int | None = None) -> list[Any]:
    """Return a list, with ``count`` items if given. Raise UnreadableReply if the value is anything else."""
    if not isinstance(value, list):
        raise UnreadableReply(f"the value must be a list, not {value!r:.80}")
    if count is not None and len(value) != count:
        raise UnreadableReply(f"the list has {len(value)} items instead of {count}")
    return value


def parse_choice(value: Any, choices: Mapping[str, bool]) -> bool:
    """Return a verdict as a Boolean. It must equal one of the choices, because "not supported" contains "supported".

    Raises:
        UnreadableReply: the value is not one of the choices.
    """
    if isinstance(value, bool):
        return value
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word not in choices:
        raise UnreadableReply(f"the value must be one of {', '.join(choices)}, not {value!r:.80}")
    return choices[word]
