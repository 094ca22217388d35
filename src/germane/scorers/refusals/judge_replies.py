"""Rules that recognize replies in which a judge refuses, asks for input, offers help or reports an error.

Such replies often contain a question mark, but not a generated question.
"""

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
"""Maximum length of a reply; longer ones are truncated before the rules are applied."""
_MAX_QUESTION_CHARACTERS = 500
"""The rules are applied only to this number of characters at the end of a question."""
_PHRASES = (files("germane.scorers.refusals") / "judge_phrases.txt").read_text(encoding="utf-8")
REPLY_RULES_HASH = hashlib.sha256(f"{REFUSAL_RULES_HASH}\n{_PHRASES}".encode()).hexdigest()[:12]
"""A hash of the rules, which is part of fingerprints."""
_SECTIONS = load_sections(_PHRASES)
_REQUEST, _COURTESY, _REFUSAL, _ERROR, _CONVERSATION = (
    PhrasePattern(_SECTIONS[name]) for name in ("request", "courtesy", "refusal", "error", "conversation")
)
_MIN_ANSWER_WORDS = 2
"""If an answer has at least this number of distinct words, a question about it is expected to share one."""
_MIN_WORD_CHARACTERS = 3
_STEM_CHARACTERS = 5
"""Words that share this number of leading characters are considered the same, such as "return" and "returned"."""
_MAX_FRAGMENT_WORDS = 3
_WORD = re.compile(r"[\u0e00-\u0eff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7af]+")
"""A word or number; in scripts without spaces and in Korean, a character that is not Hiragana or Katakana."""
_COMMON_WORDS = frozenset(_SECTIONS["common words"][0].split("|"))
"""Words in several languages that do not indicate the subject of a text."""
_STARTS_WITH_ERROR = re.compile(rf"\W*?(?:{'|'.join(_SECTIONS['error at the beginning'])})")
_ASKS = re.compile(r"\b(?:what|which|why|how|when|where|who|is|are|does|do|can|should)\b")
_STARTS_WITH_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_SECTIONS['refusal at the beginning'])})")


def find_statement_problem(text: str) -> Literal["refusal", "error"] | None:
    """Return whether a text in a judge's JSON object starts like a refusal or an error message; None if it does not.

    Unlike :func:`find_reply_problem`, this accepts statements about the texts being judged, such as "The answer does
    not provide any information" and "The document says that the connection failed".
    """
    start = text[:_MAX_CHARACTERS].replace("\u2019", "'").lower().strip()
    if _STARTS_WITH_REFUSAL.match(start):
        return "refusal"
    return "error" if _starts_with_error(start) else None


def find_reply_problem(reply: str, answer: str = "") -> ReplyProblem | None:
    """Return the problem with a judge's reply, such as a refusal; None if no rule matches.

    A statement can be a refusal or an error message; a question can be a request for input or a courtesy. "Why can't I
    log in?" and "What does error 503 mean?" do not match any rule. No list of phrases is complete. Therefore, if
    ``answer`` is given, a question that does not share any word with the answer and addresses a user is also a
    courtesy. Conversely, "I can't log in. What should I do?" is a question about an answer that mentions logging in.
    """
    text = reply[:_MAX_CHARACTERS].replace("\u2019", "'").lower().strip()
    subjects, words = _subjects(answer[:_MAX_CHARACTERS].lower()), _subjects(text)
    is_about_answer = not subjects.isdisjoint(words)
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
            if not (is_about_answer and _asks_after(text, sentence)) or _STARTS_WITH_REFUSAL.match(sentence):
                return "refusal"
        elif _ERROR.search(sentence):
            return "error"
    if len(subjects) >= _MIN_ANSWER_WORDS and not is_about_answer and _is_conversation(text):
        return "courtesy"
    return None


def _subjects(text: str) -> set[str]:
    """Return the leading characters of the words that may indicate the subject of a text."""
    return {
        word[:_STEM_CHARACTERS]
        for word in _WORD.findall(text)
        if (len(word) >= _MIN_WORD_CHARACTERS or not word.isascii() or word.isdigit()) and word not in _COMMON_WORDS
    }


def _asks_after(text: str, sentence: str) -> bool:
    """Return whether a text ends with a question that follows a sentence."""
    return text.rstrip("*_ )\"'").endswith(QUESTION_ENDINGS) and not text.endswith(sentence)


def _is_conversation(text: str) -> bool:
    """Return whether a text reads like an assistant addressing its user, rather than a question about a subject."""
    first = next(split_into_sentences(text), text)
    if _asks_after(text, first) and not first.endswith(QUESTION_ENDINGS):  # "That content is blocked. Appeal?"
        return True
    is_fragment = text.isascii() and len(text.split()) <= _MAX_FRAGMENT_WORDS and not _ASKS.search(text)
    return is_fragment or _CONVERSATION.search(text)


def _starts_with_error(text: str) -> bool:
    """Return whether a text starts with an error message. "404 errors: how do I fix them?" is a question."""
    if not _STARTS_WITH_ERROR.match(text):
        return False
    first = next(split_into_sentences(text), text)
    return not (first.endswith(QUESTION_ENDINGS) and _ASKS.search(first))
