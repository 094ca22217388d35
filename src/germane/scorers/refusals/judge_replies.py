"""Rules that recognize replies in which a judge refuses, asks for input, offers help or reports an error.

Such replies often contain a question mark, but not a question that an answer would answer. No list of phrases is
complete, so the rules also check which words a reply shares with the texts that it should be about.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Literal

from germane.language import asks
from germane.scorers.base.phrases import load_sections
from germane.scorers.refusals.rules import (
    DOES_NOT_KNOW,
    REFUSAL_RULES_HASH,
    STARTS_WITH_APOLOGY,
    PhrasePattern,
    split_into_sentences,
)

ReplyProblem = Literal["refusal", "request", "courtesy", "error"]
"""What a reply contains instead of a question: a refusal, a request for input, a courtesy, or an error message."""
StatementProblem = Literal["refusal", "error"]

_MAX_CHARACTERS = 4_000
"""Maximum length of a reply. Longer ones are truncated before the rules are applied."""
_MAX_SHOWN_CHARACTERS = 40_000
"""Maximum length of each text that a reply should be about. Longer ones are truncated."""
_MAX_QUESTION_CHARACTERS = 500
"""Number of characters at the end of a question to which the rules are applied."""
_PHRASES = (files("germane.scorers.refusals") / "judge_phrases.txt").read_text(encoding="utf-8")
_VERSION = "2"
REPLY_RULES_HASH = hashlib.sha256(f"{_VERSION}\n{REFUSAL_RULES_HASH}\n{_PHRASES}".encode()).hexdigest()[:12]
"""A hash that is part of fingerprints. It changes whenever a phrase changes."""
_SECTIONS = load_sections(_PHRASES)
_REQUEST, _COURTESY, _REFUSAL, _ERROR, _ADDRESS, _CONVERSATION, _EVALUATION = (
    PhrasePattern(_SECTIONS[name])
    for name in ("request", "courtesy", "refusal", "error", "address", "conversation", "evaluation")
)
_CONVERSATION_PHRASES = re.compile("|".join(_SECTIONS["conversation"]))
_MIN_WORD_CHARACTERS = 3
_STEM_CHARACTERS = 5
"""Number of letters to compare. Words such as "return" and "returned" count as the same word."""
_SHORT_STEM_CHARACTERS = 4
"""Number of letters to compare for words in error messages, such as "retry" and "retries"."""
_HANGUL_CHARACTERS = 2
"""Number of letters to compare for Korean words, which end in particles."""
_UNSPACED_CHARACTERS = {"thai": 4, "ideographs": 2}
"""Length of the pieces into which texts without spaces are split."""
_MAX_FRAGMENT_WORDS = 3
_MIN_COPIED_WORDS = 3
_THAI = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+"
_IDEOGRAPHS = r"[\u3400-\u9fff]+"
_WORD = re.compile(
    rf"(?P<thai>{_THAI})|(?P<ideographs>{_IDEOGRAPHS})|(?P<katakana>[\u30a1-\u30ff]{{2,}})|(?P<hangul>[\uac00-\ud7af]+)"
    r"|(?P<word>[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af]+)"
)
"""A word or number or, in scripts without spaces, a run of letters. Hiragana is excluded, because it is grammar."""
_ASCII_WORD = re.compile(r"[^\W_]+")
"""A simpler pattern for ASCII texts, which are the most common."""
_COMMON_WORDS = frozenset(_SECTIONS["common words"][0].split("|"))
"""Words that carry no information about the subject, in several languages."""
_FUNCTION_WORDS = frozenset(_SECTIONS["function words"][0].split("|"))
"""Short words that show that a text is in one of these languages."""
_EMPTY_WORDS = frozenset(word[:_STEM_CHARACTERS] for word in _SECTIONS["empty words"][0].split("|"))
"""Words that do not count as a subject unless the texts contain them."""
_COMMON_PHRASES = re.compile("|".join(_SECTIONS["common phrases"]))
QUESTION_WITHOUT_MARK = re.compile("|".join(_SECTIONS["questions without a mark"]))
"""Question words in scripts that allow questions without a question mark."""
QUESTION_WORD = re.compile(
    rf"(?:{'|'.join(_SECTIONS['question words at the beginning'])})\b"
    r"(?!'t|\u2019t| (?:not|nicht|keine?|niet|geen)\b)(?:[, ]+\S+){2}"
    rf"|(?=(?:\S+ +){{2}}\S)(?:.*\b)?(?:{'|'.join(_SECTIONS['question words anywhere'])})\b",
    re.IGNORECASE,
)
"""A question without a mark in other scripts, of three words or more. "could not write a question" does not match."""
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{1,300}'(?!\w)|\u201c[^\u201d\n]{1,300}\u201d|\u2018[^\u2019\n]{1,300}\u2019(?!\w)"
    r"|\u00ab[^\u00bb\n]{1,300}\u00bb|\u201e[^\u201c\n]{1,300}\u201c|\u300c[^\u300d\n]{1,300}\u300d"
)
_STARTS_WITH_ERROR = re.compile(rf"\W*?(?:{'|'.join(_SECTIONS['error at the beginning'])})")
_ASKS = re.compile(r"\b(?:what|which|why|how|when|where|who|is|are|does|do|can|should)\b")
_STARTS_WITH_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_SECTIONS['refusal at the beginning'])})")
_CODE = re.compile(r"[a-z0-9.+%/_-]{1,20}")


class _Phrases:
    """Phrases that are ignored if the texts contain their words. In that case, the reply may be about the phrase."""

    def __init__(self, section: str) -> None:
        self._pattern = PhrasePattern(_SECTIONS[section])
        self._matches = re.compile("|".join(f"(?:{expression})" for expression in _SECTIONS[section]))

    def find(self, text: str, shown: _ShownTexts) -> bool:
        """Return whether a phrase matches and the texts lack at least one of its words, apart from common words."""
        if not self._pattern.search(text):
            return False
        for match in self._matches.finditer(text):
            words = [word for word, _ in _pieces(match[0]) if word not in _COMMON_WORDS and len(word) > 1]
            if not (words and all(map(shown.contains_word, words))) and not shown.contains_phrase(match[0]):
                return True
        return False


_ABOUT_TASK, _CANNOT_JUDGE, _ERROR_WORDS = map(_Phrases, ("about the task", "cannot judge", "error words"))


class _ShownTexts:
    """The texts that the judge was shown, and the words that a reply shares with them."""

    def __init__(self, *texts: str) -> None:
        self._text = "\n".join(_normalized(text, _MAX_SHOWN_CHARACTERS) for text in texts)

    @cached_property
    def subjects(self) -> frozenset[str]:
        """The stems of the words that may name the subject of the texts."""
        return _subjects(self._text)

    @cached_property
    def _short_stems(self) -> frozenset[str]:
        return _stems(self._text, _SHORT_STEM_CHARACTERS)

    @cached_property
    def _compact(self) -> str:
        return _compacted(self._text)

    def is_subject_of(self, text: str) -> bool:
        """Return whether a text shares a word with the shown texts."""
        return not self.subjects.isdisjoint(_subjects(_normalized(text)))

    def contains_phrase(self, phrase: str) -> bool:
        """Return whether the texts contain a phrase, ignoring spaces and punctuation: "time out" matches "timeout"."""
        return len(compact := _compacted(phrase)) >= _STEM_CHARACTERS and compact in self._compact

    def contains_word(self, word: str) -> bool:
        """Return whether the texts contain a word with the same stem."""
        return word[:_SHORT_STEM_CHARACTERS] in self._short_stems


@lru_cache(maxsize=8)
def _shown_texts(*texts: str) -> _ShownTexts:
    """Return the texts with their words. The words are computed once for all replies about the texts."""
    return _ShownTexts(*texts)


def find_statement_problem(text: str, *shown: str) -> StatementProblem | None:
    """Return whether a text inside a judge's JSON object is a refusal by the judge or an error message.

    A text may describe the ``shown`` texts: "The answer does not provide any information", "The document says that the
    connection failed".
    """
    start = _normalized(text)
    if _STARTS_WITH_REFUSAL.match(start):
        return "refusal"
    if _starts_with_error(start):
        return "error"
    unquoted = _QUOTED.sub(" ", start)
    texts = _shown_texts(*shown)
    for sentence in split_into_sentences(unquoted):
        # "Why can't I log in?" may be part of the user's question.
        if _REQUEST.search(sentence) if asks(sentence) else _CANNOT_JUDGE.find(sentence, texts):
            return "refusal"
    return "error" if _ERROR_WORDS.find(unquoted, texts) else None


def is_reason(text: str, *shown: str) -> bool:
    """Return whether a text may belong to a judgment: it shares a word with the texts, evaluates them, or is a code.

    Texts in the languages of :func:`find_statement_problem` are always accepted, because it recognizes refusals in
    them. If the shown texts have no words that could be shared, all texts are accepted.
    """
    normalized, texts = _normalized(text), _shown_texts(*shown)
    words = [word for word, kind in _pieces(normalized) if kind == "word"]
    return (
        _CODE.fullmatch(normalized) is not None
        or not texts.subjects
        or texts.is_subject_of(normalized)
        or _EVALUATION.search(normalized)
        or (len(words) > 1 and any(word in _COMMON_WORDS or word in _FUNCTION_WORDS for word in words))
        or not any("LATIN" in unicodedata.name(word[0], "") for word in words)
    )


@lru_cache(maxsize=32)  # cached, because it is called for a reply and for its only line, which is the same text
def find_reply_problem(reply: str, answer: str = "", question: str = "") -> ReplyProblem | None:
    """Return the problem with a judge's text, such as a refusal; None if no rule matches.

    Args:
        reply: The judge's text, which should be a question that the answer would answer.
        answer: The answer. A question about something that it mentions is accepted: "Your API key is invalid" answers
            "Why is my API key invalid?".
        question: The question that the user asked. A question about something that it mentions is also accepted.

    Statements are checked for refusals and error messages, and questions for requests for input and offers of help.
    "Why can't I log in?" and "What does error 503 mean?" match no rule. A question that shares no word with the texts,
    and is part of a conversation or has no subject, is a courtesy. On the other hand, "I can't log in. What should I
    do?" is a question about an answer that mentions logging in.
    """
    text = _normalized(reply)
    stems = _stems(text, _STEM_CHARACTERS)
    if len(stems) >= _MIN_COPIED_WORDS and stems <= _stems(_normalized(question), _STEM_CHARACTERS):
        return None  # all words are from the user's question
    shown = _shown_texts(answer[:_MAX_CHARACTERS], question[:_MAX_CHARACTERS])
    unquoted = _QUOTED.sub(" \u2026 ", text)
    subjects = _subjects(text)
    is_about_texts = not shown.subjects.isdisjoint(subjects)
    if STARTS_WITH_APOLOGY.match(text):
        return "refusal"
    if _starts_with_error(text):
        return "error"
    for sentence in split_into_sentences(unquoted):
        problem = _find_sentence_problem(sentence, unquoted, shown, is_about_texts=is_about_texts)
        if problem is not None:
            return problem
    if _ERROR_WORDS.find(unquoted, shown):
        return "error"
    if _ABOUT_TASK.find(unquoted, shown):
        return "request"
    if not (answer or question):
        return None
    if is_about_texts:
        return "request" if _only_names_subject(unquoted, shown, _normalized(question)) else None
    return "courtesy" if _is_conversation(unquoted, subjects, _normalized(question)) else None


def _find_sentence_problem(
    sentence: str, text: str, shown: _ShownTexts, *, is_about_texts: bool
) -> ReplyProblem | None:
    """Return the problem with one sentence of a text, which as a whole may be about the shown texts."""
    if asks(sentence):
        question = sentence[-_MAX_QUESTION_CHARACTERS:]
        return "request" if _REQUEST.search(question) else "courtesy" if _COURTESY.search(question) else None
    leads_to_question = is_about_texts and _asks_after(text, sentence)
    if DOES_NOT_KNOW.search(sentence) or _REFUSAL.search(sentence):
        return "refusal" if not leads_to_question or _STARTS_WITH_REFUSAL.match(sentence) else None
    if not leads_to_question and _CANNOT_JUDGE.find(sentence, shown):
        return "refusal"
    return "error" if _ERROR.search(sentence) and not is_about_texts else None


def _normalized(text: str, limit: int = _MAX_CHARACTERS) -> str:
    return text[:limit].replace("\u2019", "'").lower().strip()


def _compacted(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word with its type of script; see :data:`_WORD`."""
    for match in _WORD.finditer(text):
        kind = match.lastgroup or "word"
        size = _UNSPACED_CHARACTERS.get(kind)
        if size is None:
            yield match[0], kind
        else:
            yield from ((match[0][start : start + size], kind) for start in range(max(1, len(match[0]) - size + 1)))


@lru_cache(maxsize=32)
def _subjects(text: str) -> frozenset[str]:
    """Return the stems of the words that may name the subject of a text."""
    if text.isascii():
        words = set(_ASCII_WORD.findall(text)) - _COMMON_WORDS
        long = (word for word in words if len(word) >= _MIN_WORD_CHARACTERS or word.isdigit())
        return frozenset(word[:_STEM_CHARACTERS] for word in long)
    subjects = set()
    for word, kind in _pieces(_COMMON_PHRASES.sub(" ", text)):
        if word in _COMMON_WORDS:
            continue
        if kind == "hangul":
            subjects.add(word[:_HANGUL_CHARACTERS])
        elif kind != "word":
            subjects.add(word)
        elif len(word) >= _MIN_WORD_CHARACTERS or not word.isascii() or word.isdigit():
            subjects.add(word[:_STEM_CHARACTERS])
    return frozenset(subjects)


@lru_cache(maxsize=32)
def _stems(text: str, characters: int) -> frozenset[str]:
    if text.isascii():
        return frozenset(word[:characters] for word in _ASCII_WORD.findall(text))
    return frozenset(word[:characters] if kind == "word" else word for word, kind in _pieces(text))


def _asks_after(text: str, sentence: str) -> bool:
    """Return whether a text ends with a question that follows another sentence."""
    return asks(text) and not text.endswith(sentence)


def _only_names_subject(text: str, shown: _ShownTexts, question: str) -> bool:
    """Return whether a text only names a single subject of the texts: "What do you want to ask about ferries?"."""
    if not (_CONVERSATION.search(text) and _ADDRESS.search(text)) or _ADDRESS.search(question):
        return False
    subjects = _subjects(_CONVERSATION_PHRASES.sub(" ", text))
    shared = subjects & shown.subjects
    if text.split()[0].isascii():  # the subject of an English question may be a whole sentence without spaces
        shared, subjects = (
            frozenset(word if word.isascii() and not word.isdigit() else "" for word in words)
            for words in (shared, subjects)
        )
    return len(shared) == 1 and subjects - shared <= _EMPTY_WORDS


def _is_conversation(text: str, subjects: frozenset[str], question: str) -> bool:
    """Return whether a text addresses the user as an assistant would, rather than asking about something."""
    first = next(split_into_sentences(text), text)
    if _asks_after(text, first) and not asks(first):  # "That content is blocked. Appeal?"
        return True
    count = len(text.split())
    has_question_word = _ASKS.search(text) or QUESTION_WORD.match(text)
    is_fragment = count <= _MAX_FRAGMENT_WORDS - (not text.isascii()) and not has_question_word
    # In scripts without spaces, a whole sentence counts as one word.
    is_fragment = is_fragment and all(kind not in _UNSPACED_CHARACTERS for _, kind in _pieces(text))
    if not subjects - _EMPTY_WORDS or is_fragment or _CONVERSATION.search(text):
        return True
    return _ADDRESS.search(text) and not _ADDRESS.search(question)


def _starts_with_error(text: str) -> bool:
    """Return whether a text starts with an error message. "404 errors: how do I fix them?" is a question."""
    if not _STARTS_WITH_ERROR.match(text):
        return False
    first = next(split_into_sentences(text), text)
    return not (asks(first) and _ASKS.search(first))
