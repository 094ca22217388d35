"""Parsers for judge replies: strict about values, tolerant about formatting.

Questions are read from JSON if possible, otherwise from lines that end in a question mark."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.text import has_letters, strip_control_characters

MAX_REPLY_CHARACTERS = 100_000
"""Replies are truncated to this length before parsing."""
_MAX_JSON_CANDIDATES = 50
_THINKING = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL | re.IGNORECASE)
"""A reasoning block. Some servers omit its opening tag."""
_OPENING = re.compile(r"[{\[]")
_NUMBER = re.compile(r"\A\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+)|(%))?\s*\Z")
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MAX_QUESTION_REPLY_CHARACTERS = 20_000
"""Replies with questions are truncated to this length before parsing."""
QUESTION_MARKS = "?\uff1f\u061f;\u055e\u1367\u2e2e\u203d"
"""Question marks of several scripts; the fourth is the Greek one."""
_BROKEN = re.compile(
    r'"question"\s*:\s*("(?:[^"\\]|\\.)*")(?:[^{}"]*"noncommittal"\s*:\s*(true|false))?', re.IGNORECASE
)
_BULLET = re.compile(r"^\s*(?:[-*\u2022>]+|\(?\d{1,2}[.):]|q(?:uestion)?\s*\d*\s*[:.])\s*", re.IGNORECASE)
_QUOTES = "\"'`*_\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e \t"
_WITHOUT_MARK = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]")
"""Scripts in which a question may lack a question mark: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_ASKING = re.compile(
    r"(who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should|has|have"
    r"|qu[ée]|qui[ée]n|cu[áa]l|cu[áa]ndo|d[óo]nde|c[óo]mo|cu[áa]nt[oa]s?|por qu[ée]"
    r"|qui|quel|quelle|quels|quelles|quand|o[ùu]|pourquoi|comment|combien|est-ce"
    r"|wer|was|wann|wo|warum|wieso|wie|welche[rsnm]?|wessen)\b(?!'t|\u2019t| not\b)(?: +\S+){2}",
    re.IGNORECASE,
)
"""The beginning of a question without a question mark. "could not write a question" does not match."""
_STATEMENT_ENDS = (".", "!", "\u3002", "\uff01")


class UnreadableReply(ScoringError):
    """A reply does not have the requested form. A retry may help."""

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
        UnreadableReply: the reply contains no JSON object.
    """
    for value in find_json_values(strip_thinking(reply)):
        if isinstance(value, dict):
            return value
    raise UnreadableReply("the reply contains no JSON object")


def parse_number(value: Any, minimum: float, maximum: float) -> float:
    """Parse a number, a numeric string (``"4"``, ``"80%"``, ``"4/5"`` if ``maximum`` is 5), or a number word up to ten.

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
    """Return a string with normalized white space.

    Raises:
        UnreadableReply: the value is not a string, or is blank.
    """
    if not isinstance(value, str) or not value.strip():
        raise UnreadableReply(f"{value!r:.80} is not a non-blank string")
    return " ".join(strip_control_characters(value).split())


def parse_list(value: Any, *, count: int | None = None) -> list[Any]:
    """Return a list. If ``count`` is given, check that the list has this number of items.

    Raises:
        UnreadableReply: the value is not a list, or has another length.
    """
    if not isinstance(value, list):
        raise UnreadableReply(f"{value!r:.80} is not a list")
    if count is not None and len(value) != count:
        raise UnreadableReply(f"the list has {len(value)} items instead of {count}")
    return value


def parse_choice(value: Any, choices: Mapping[str, bool]) -> bool:
    """Return the meaning of a verdict, which must equal a choice: "not supported" contains "supported".

    Raises:
        UnreadableReply: the value is not one of the choices.
    """
    if isinstance(value, bool):
        return value
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word not in choices:
        raise UnreadableReply(f"{value!r:.80} is not one of {', '.join(choices)}")
    return choices[word]


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question generated by the judge, with the judge's vote on the answer."""

    text: str
    noncommittal: bool | None = None
    """Whether the judge considers the answer noncommittal; None without a vote."""

    @property
    def is_usable(self) -> bool:
        """Whether the text is a question and contains letters."""
        if not has_letters(self.text):
            return False
        if self.text.rstrip(_QUOTES + ").!").endswith(tuple(QUESTION_MARKS)):
            return True
        # "か。": the Japanese interrogative particle before a full stop.
        if self.text.endswith(_STATEMENT_ENDS) and not self.text.endswith("\u304b\u3002"):
            return False
        return bool(_ASKING.match(self.text) or _WITHOUT_MARK.search(self.text))


def parse_questions(reply: str) -> list[GeneratedQuestion]:
    """Return the questions in a judge's reply, in order. Texts that are not questions are included as unusable."""
    text = strip_thinking(reply)[:MAX_QUESTION_REPLY_CHARACTERS]
    for value in find_json_values(text):
        if questions := list(_from_json(value)):
            return questions
    if questions := list(_from_broken_json(text)):
        return questions
    lines = (_tidy(_BULLET.sub("", line)) for line in text.splitlines())
    return [GeneratedQuestion(line) for line in lines if line.endswith(tuple(QUESTION_MARKS))]


def parse_first_question(reply: str) -> GeneratedQuestion:
    """Return the first question in a reply that should be JSON, or an empty one."""
    questions = parse_questions(reply)
    return questions[0] if questions else GeneratedQuestion("")


def parse_question_line(reply: str) -> GeneratedQuestion:
    """Return the question in a reply that should be one line of text, or an empty one.

    JSON is only parsed if the reply starts with it. JSON inside a line comes from the answer.
    """
    text = strip_thinking(reply)[:MAX_QUESTION_REPLY_CHARACTERS]
    if text.startswith(("{", "[", "```")):
        return parse_first_question(text)
    lines = [GeneratedQuestion(_tidy(_BULLET.sub("", line))) for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.text.endswith(tuple(QUESTION_MARKS))]
    usable = [line for line in lines if line.is_usable]
    return next(iter(marked + usable + lines), GeneratedQuestion(""))


def _from_json(value: Any) -> Iterator[GeneratedQuestion]:
    if isinstance(value, str):
        yield GeneratedQuestion(_tidy(value))
    elif isinstance(value, list):
        for item in value:
            yield from _from_json(item) if isinstance(item, (str, dict)) else ()
    elif isinstance(value, dict) and isinstance(value.get("questions"), list):
        yield from _from_json(value["questions"])
    elif isinstance(value, dict) and isinstance(value.get("question"), str):
        yield GeneratedQuestion(_tidy(value["question"]), _parse_vote(value.get("noncommittal")))


def _from_broken_json(text: str) -> Iterator[GeneratedQuestion]:
    """Yield the complete questions in truncated or unclosed JSON."""
    for match in _BROKEN.finditer(text):
        try:
            question = json.loads(match[1], strict=False)
        except ValueError:
            continue
        yield GeneratedQuestion(_tidy(question), _parse_vote(match[2]))


def _tidy(text: str) -> str:
    return " ".join(strip_control_characters(text).split()).strip(_QUOTES)


def _parse_vote(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return bool(value) if value in (0, 1) else None
