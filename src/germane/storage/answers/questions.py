"""The normalized form of questions, by which answers to the same question are found and grouped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection, func, select

from germane.exchange import normalized_question
from germane.storage.archive.reader import open_exchanges
from germane.storage.db.functions import is_one_of
from germane.storage.db.tables import exchange

MAX_QUESTION_LENGTH: Final = 2_000
"""Number of characters of a question that are compared, so that long questions do not fill the memory."""
MAX_KEY_LENGTH: Final = 100
"""Maximum length of a normalized question in a key. Keys are part of links, in which a character may take 12 bytes."""
_PREFIX_LENGTH: Final = 60
BLANK_KEY: Final = "?"
"""The key of all questions that consist of white space and punctuation."""


def question_key(text: str) -> str:
    """Return a short text that is the same for questions that differ only in case, white space or final punctuation.

    The key is the normalized question. The key of a long question is its beginning, followed by a hash.
    """
    normalized = normalized_question(text[:MAX_QUESTION_LENGTH])
    if len(normalized) <= MAX_KEY_LENGTH:
        return normalized or BLANK_KEY
    digest = sha256(normalized.encode("utf-8", "replace")).hexdigest()
    return f"{normalized[:_PREFIX_LENGTH].rstrip()} sha256:{digest[:24]}"


def load_question_keys(connection: Connection, moments: Mapping[str, datetime | None]) -> dict[str, str]:
    """Return a dict of exchange ids to keys, given start times by id.

    Exchanges whose question is erased or not stored are omitted.
    """
    question = func.substr(exchange.c.question, 1, MAX_QUESTION_LENGTH)
    keys: dict[str, str] = {}
    with open_exchanges(connection, moments) as sources:
        for source, ids in sources:
            is_asked = is_one_of(exchange.c.id, ids, source.dialect.name)
            query = select(exchange.c.id, question).where(is_asked, exchange.c.question.is_not(None))
            keys |= {id_: question_key(text) for id_, text in source.execute(query).all()}
    return keys
