"""What a judge wrote, read as questions: JSON where it kept to the form, else lines that end in a question mark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from germane.scorers.base.json_reply import json_values, without_thinking
from germane.scorers.base.text import clean, has_letters

LONGEST = 20_000
"""Characters of a reply that are read."""
MARKS = "?\uff1f\u061f;\u055e\u1367\u2e2e\u203d"
"""Question marks of the scripts; the fourth is the Greek one."""
_BROKEN = re.compile(
    r'"question"\s*:\s*("(?:[^"\\]|\\.)*")(?:[^{}"]*"noncommittal"\s*:\s*(true|false))?', re.IGNORECASE
)
_BULLET = re.compile(r"^\s*(?:[-*\u2022>]+|\(?\d{1,2}[.):]|q(?:uestion)?\s*\d*\s*[:.])\s*", re.IGNORECASE)
_QUOTES = "\"'`*_\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e \t"
_WITHOUT_MARK = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff]")
"""Scripts in which a question may end without a mark: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_ASKING = re.compile(
    r"(who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should|has|have"
    r"|qu[ée]|qui[ée]n|cu[áa]l|cu[áa]ndo|d[óo]nde|c[óo]mo|cu[áa]nt[oa]s?|por qu[ée]"
    r"|qui|quel|quelle|quels|quelles|quand|o[ùu]|pourquoi|comment|combien|est-ce"
    r"|wer|was|wann|wo|warum|wieso|wie|welche[rsnm]?|wessen)\b(?!'t|\u2019t| not\b)(?: +\S+){2}",
    re.IGNORECASE,
)
"""How a question begins that lacks its mark; "could not write a question" is none."""
_STATING = (".", "!", "\u3002", "\uff01")
"""Marks that end what is no question."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question as the judge wrote it, and its vote on the answer."""

    text: str
    noncommittal: bool | None = None
    """Whether the judge holds the answer for noncommittal; None where it did not say."""

    @property
    def is_usable(self) -> bool:
        """Whether it is a question at all, with letters in it."""
        if not has_letters(self.text):
            return False
        if self.text.rstrip(_QUOTES + ").!").endswith(tuple(MARKS)):
            return True
        if self.text.endswith(_STATING) and not self.text.endswith("\u304b\u3002"):  # the Japanese particle that asks
            return False
        return bool(_ASKING.match(self.text) or _WITHOUT_MARK.search(self.text))


def read_questions(reply: str) -> list[Question]:
    """Return the questions in a judge's reply, in order. One that is no question comes too, and is not usable."""
    text = without_thinking(reply)[:LONGEST]
    for value in json_values(text):
        found = list(_from_json(value))
        if found:
            return found
    return _from_broken_json(text) or _from_lines(text)


def read_question(reply: str) -> Question:
    """Return the first question in a reply that was to be JSON; an empty one where there is none."""
    found = read_questions(reply)
    return found[0] if found else Question("")


def read_line(reply: str) -> Question:
    """Return the question in a reply that was to be one line of text: an empty one where there is none.

    JSON is read only where the judge answers with it: what merely stands in a line came from the answer.
    """
    text = without_thinking(reply)[:LONGEST]
    if text.startswith(("{", "[", "```")):
        return read_question(text)
    lines = [Question(_tidy(_BULLET.sub("", line))) for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.text.endswith(tuple(MARKS))]
    usable = [line for line in lines if line.is_usable]
    return next(iter(marked + usable + lines), Question(""))


def _from_json(value: Any) -> Iterator[Question]:
    if isinstance(value, str):
        yield Question(_tidy(value))
    elif isinstance(value, list):
        for item in value:
            yield from _from_json(item) if isinstance(item, (str, dict)) else ()
    elif isinstance(value, dict) and isinstance(value.get("questions"), list):
        yield from _from_json(value["questions"])
    elif isinstance(value, dict) and isinstance(value.get("question"), str):
        yield Question(_tidy(value["question"]), _as_vote(value.get("noncommittal")))


def _from_broken_json(text: str) -> list[Question]:
    """Read what is left of JSON that was cut off or not closed."""
    found = []
    for match in _BROKEN.finditer(text):
        try:
            found.append(Question(_tidy(json.loads(match[1], strict=False)), _as_vote(match[2])))
        except ValueError:
            continue
    return found


def _from_lines(text: str) -> list[Question]:
    lines = (_tidy(_BULLET.sub("", line)) for line in text.splitlines())
    return [Question(line) for line in lines if line.endswith(tuple(MARKS))]


def _tidy(text: str) -> str:
    return " ".join(clean(text).split()).strip(_QUOTES)


def _as_vote(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return bool(value) if value in (0, 1) else None
