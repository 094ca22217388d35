"""Parser for questions in a judge's reply: JSON if possible, otherwise lines that end in a question mark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from germane.scorers.base.json_reply import find_json_values, strip_thinking
from germane.scorers.base.text import has_letters, strip_control_characters

MAX_QUESTION_REPLY_CHARACTERS = 20_000
"""Replies are truncated to this length before parsing."""
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


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """One question that the judge wrote, and its vote on the answer."""

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
    """Yield the complete questions of truncated or unclosed JSON."""
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
