"""Rules that recognize replies in which a judge refuses, asks for input, offers help or passes on an error.

Such replies often contain a question mark, but no question that an answer would answer."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import Literal

from germane.scorers.refusals.rules import (
    DOES_NOT_KNOW,
    QUESTION_ENDINGS,
    REFUSAL_RULES_HASH,
    STARTS_WITH_APOLOGY,
    PhrasePattern,
    load_sections,
    split_into_sentences,
)

ReplyProblem = Literal["refusal", "request", "courtesy", "error"]
"""What a reply contains instead of a question: a refusal, a request for input, a courtesy, or an error message."""

_MAX_CHARACTERS = 4_000
"""Length to which replies are truncated before the rules are applied."""
_MAX_QUESTION_CHARACTERS = 500
"""Length of the end of a question to which the rules are applied."""
_PHRASES = (files("germane.scorers.refusals") / "judge_phrases.txt").read_text(encoding="utf-8")
REPLY_RULES_HASH = hashlib.sha256(f"{REFUSAL_RULES_HASH}\n{_PHRASES}".encode()).hexdigest()[:12]
"""Part of fingerprints: changes whenever a phrase changes."""
_SECTIONS = load_sections(_PHRASES)
_REQUEST, _COURTESY, _REFUSAL, _ERROR = (
    PhrasePattern(_SECTIONS[name]) for name in ("request", "courtesy", "refusal", "error")
)
_STARTS_WITH_ERROR = re.compile(rf"\W*?(?:{'|'.join(_SECTIONS['error at the beginning'])})")
_ASKS = re.compile(r"\b(?:what|which|why|how|when|where|who|is|are|does|do|can|should)\b")
_STARTS_WITH_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_SECTIONS['refusal at the beginning'])})")


def find_statement_problem(text: str) -> Literal["refusal", "error"] | None:
    """Return whether a statement inside a judge's JSON object begins as a refusal by the judge or an error message.

    Unlike :func:`find_reply_problem`, it accepts what a judge says about the texts that it judges: "The answer does not
    provide any information", "The document says that the connection failed".
    """
    start = text[:_MAX_CHARACTERS].replace("\u2019", "'").lower().strip()
    if _STARTS_WITH_REFUSAL.match(start):
        return "refusal"
    return "error" if _starts_with_error(start) else None


def find_reply_problem(reply: str) -> ReplyProblem | None:
    """Return the problem with a judge's text, such as a refusal; None if no rule matches.

    A statement may refuse or report an error; a question may ask for input or offer help. "Why can't I log in?" and
    "What does error 503 mean?" match no rule.
    """
    text = reply[:_MAX_CHARACTERS].replace("\u2019", "'").lower().strip()
    if STARTS_WITH_APOLOGY.match(text):
        return "refusal"
    if _starts_with_error(text):
        return "error"
    for sentence in split_into_sentences(text):
        if sentence.rstrip("*_ )\"'").endswith(QUESTION_ENDINGS):
            sentence = sentence[-_MAX_QUESTION_CHARACTERS:]
            if _REQUEST.search(sentence):
                return "request"
            if _COURTESY.search(sentence):
                return "courtesy"
        elif DOES_NOT_KNOW.search(sentence) or _REFUSAL.search(sentence):
            return "refusal"
        elif _ERROR.search(sentence):
            return "error"
    return None


def _starts_with_error(text: str) -> bool:
    """Return whether a text begins with an error message. "404 errors: how do I fix them?" is a question."""
    if not _STARTS_WITH_ERROR.match(text):
        return False
    first = next(split_into_sentences(text), text)
    return not (first.endswith(QUESTION_ENDINGS) and _ASKS.search(first))
