"""The question among the arguments of a call: which text asks, and where in a prompt the question is.

The name and the form of an argument distinguish a question in any language from an identifier, a key or a locale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from germane.errors import UsageError
from germane.language import GROUNDED, asks, grams, share_from
from germane.recognizers import IGNORED_KEYS, INPUT_WRAPPERS, QUESTION_KEYS, QuestionValue, find_question, read_messages
from germane.tracer.outcomes import words_of
from germane.tracer.serialized import is_event, json_value
from germane.tracer.shapes import plain

_QUESTION_NAMES: Final = frozenset({"q", "text", *(key.rpartition("_")[2] for key in QUESTION_KEYS)})
"""Last words of the names of questions."""
_OTHER_NAMES: Final = frozenset(
    {"id", "uid", "uuid", "key", "token", "secret", "password", "tenant", "session", "user", "name", "model", "locale"}
    | {"lang", "language", "url", "uri", "path", "file", "system", "document", "instruction", "doc", "answer"}
    | IGNORED_KEYS
)
"""Last words of the names of other texts, in the singular."""
_ASCII_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_MARKS: Final = "\"'*.,;:!?()[]\u2026"
_SECRET: Final = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w.+/=~-]{16,}", re.ASCII)
"""A key, a token or a UUID."""
_MAX_LENGTH: Final = 400
"""Maximum number of characters of a text whose form is looked at."""
_MAX_LINE: Final = 150
"""Maximum number of characters of a line that is certainly not a whole prompt."""
_MAX_BATCH: Final = 1000
ASKS: Final = 3
"""Minimum rank of a text that asks."""


def may_be_prompt(text: str) -> bool:
    """Return whether a text may be a whole prompt with documents and instructions, unlike a short line."""
    return "\n" in text or "<" in text or len(text) > _MAX_LINE


def is_text(value: Any) -> bool:
    """Return whether a value is a ``str`` with content, but neither an enum member nor JSON."""
    kind = type(value)  # isinstance() would call the value's own code, which may fail
    if kind is not str and (not issubclass(kind, str) or issubclass(kind, Enum)):
        return False
    text = str.__str__(value)
    return bool(text.strip()) and not is_event(json_value(text))


def is_secret(text: str) -> bool:
    """Return whether a text consists of a key or a token, alone or after one word such as ``Bearer``."""
    words = text[:_MAX_LENGTH].split(maxsplit=2)
    return len(words) < 3 and any(map(_SECRET.fullmatch, words))


def candidates(texts: Iterable[tuple[str, Any]]) -> list[tuple[float, str, str]]:
    """Return the rank, name and text of possible questions, the most likely ones first.

    A text that asks ranks 3, other prose 1, and a single word 0. A name that questions usually have adds 1.5.
    """
    found = []
    for name, value in texts:
        last = _last_word(name)
        text = str.__str__(value) if is_text(value) and last not in _OTHER_NAMES else ""
        words = [word for part in text[:_MAX_LENGTH].split() if _is_word(word := part.strip(_MARKS))]
        if words and not is_secret(text):
            is_prose = len(words) > 1 or words[0].lower() == words[0].upper()  # scripts without case may have no spaces
            rank = (ASKS if asks(text) else 1 if is_prose else 0) + (1.5 if last in _QUESTION_NAMES else 0)
            found.append((rank, name, text))
    return sorted(found, key=lambda candidate: -candidate[0])


def _last_word(name: str) -> str:
    words = words_of(name)
    return words[-1].removesuffix("s") if words else ""


def _is_word(text: str) -> bool:
    """Return whether a text is a word of a language, unlike ``gpt-4``, ``en-US`` or a path."""
    if not text.isascii():
        return any(map(str.isalpha, text))
    return bool(_ASCII_WORD.fullmatch(text)) and (len(text) == 1 or text.isupper() or text[1:].islower())


def question_in(arguments: Mapping[str, Any]) -> QuestionValue | None:
    """Find the question in the structured arguments of a call: by the names of the arguments, or in one of them."""
    values = {name: part for name, value in arguments.items() if isinstance(part := plain(value), dict | list)}
    if (found := find_question(values)) is not None:
        return None if is_secret(found.text) else found
    alone = [found for value in values.values() if (found := find_question(value)) and not is_secret(found.text)]
    if alone:
        return alone[0] if len({question.text for question in alone}) == 1 else None
    return _question_in_records(values.values())


def _question_in_records(values: Iterable[Any]) -> QuestionValue | None:
    """Find the text that asks, or has a name such as ``text``, among the fields of records."""
    records = [value for value in values if isinstance(value, dict) and not read_messages(value)]
    records += [inner for record in records for key in INPUT_WRAPPERS if isinstance(inner := record.get(key), dict)]
    found = candidates(field for record in records for field in record.items())
    is_clear = found and found[0][0] > 1 and all(rank < found[0][0] for rank, _, _ in found[1:])
    return QuestionValue(found[0][2].strip()) if is_clear else None


def batch_in(arguments: Iterable[tuple[str, Any]]) -> tuple[list[str], Any]:
    """Return the questions of a call with a list of them, and the list without its objects' own code.

    Both are empty if no list or more than one consists of questions.
    """
    batches = [
        (found, plain(value))
        for name, value in arguments
        if _last_word(name) not in _OTHER_NAMES and (found := _batch(value))
    ]
    return batches[0] if len(batches) == 1 else ([], [])


def in_order(results: Sequence[Any], questions: Sequence[str], items: Sequence[Any]) -> list[Any]:
    """Return the results of a batch in the order of its questions: by a question or an id that results repeat, if any.

    Raises:
        UsageError: Results repeat some of the questions or ids, but not each of them once.
    """
    found, numbers = _columns(plain(list(results))), [str(number) for number in range(len(questions))]
    given = {"question": list(questions), "index": numbers, **_columns(items)}
    pairs = [
        (name, keys, repeated)
        for name, keys in given.items()
        for other, repeated in found.items()
        if keys is given["question"] or name == other or _last_word(name) == _last_word(other) == "id"
    ]
    for _, keys, repeated in pairs:
        if len(set(keys)) == len(keys) and sorted(keys) == sorted(repeated):
            return [results[repeated.index(key)] for key in keys]
    names = {name for name, keys, repeated in pairs if keys != repeated and not set(keys).isdisjoint(repeated)}
    if any(name == "question" or _last_word(name) == "id" for name in names):
        raise UsageError("the results do not match the questions one to one; observe the function that answers one")
    return list(results)


def _columns(records: Sequence[Any]) -> dict[str, list[str]]:
    """Return the texts and numbers in records and in nested records, by field name."""
    rows = [record if isinstance(record, dict) else {} for record in records]
    for row in rows:
        inner = [(name, part) for name, part in row.items() if isinstance(part, dict)]
        row |= {f"{name}.{field}": part for name, record in inner for field, part in record.items()}
    names = dict.fromkeys(name for row in rows for name, part in row.items() if type(part) in {str, int})
    return {name: [str(row.get(name)).strip() for row in rows] for name in names}


def _batch(value: Any) -> list[str]:
    questions = list[str]()
    for item in value if type(value) in {list, tuple} and len(value) <= _MAX_BATCH else ():
        found = candidates([("", item)]) if issubclass(type(item), str) else question_in({"item": item})
        if isinstance(found, QuestionValue):
            questions.append(found.text)
        elif found and found[0][0] >= 1:
            questions.append(found[0][2])
        else:
            return []
    return questions


def _contained(text: str, documents: Sequence[str], length: int) -> list[str]:
    """Return the documents of at least some length that a text contains, apart from the text itself."""
    return [each for each in documents if each != text and len(each) >= length and each in text]


def question_of_prompt(
    text: str, answer: str | None, documents: Sequence[str], *, is_typed: bool = False
) -> str | None:
    """Return the question in a text that may be a whole prompt: the text itself if it is a question, or was typed.

    None if the text is long or contains documents, or what the answer was taken from, and the question is unknown.
    """
    # They need the modules that read traces.
    from germane.recognizers import MIN_DOCUMENT, is_short, parts_of, question_in_prompt

    inserted = _contained(text, documents, MIN_DOCUMENT)
    is_source = inserted or share_from(answer or "", grams(text), frozenset()) >= GROUNDED
    found = question_in_prompt(text, answer, documents=inserted)
    is_named = any(part.is_named and part.text == found for part in parts_of(text))
    is_last = found is not None and found != text and "\n" not in text.rpartition(found)[2].strip()
    if is_typed and not is_source and not is_last and len(text) <= _MAX_LENGTH:
        return text
    if found is not None and (found == text or is_named or asks(found)):
        return found
    is_without = bool(documents) and not inserted
    return text if not is_source and (is_without or is_short(text)) else None
