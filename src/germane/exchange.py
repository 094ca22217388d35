"""An exchange: one question and its answer, with contexts, route and span ids."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any, Final, Literal

_KEYED_HASH = blake2b(digest_size=8, key=b"germane.draw")  # never change the key: stored sampling keys depend on it
_ID_BATCH_SIZE = 256
_random_digits: list[str] = []
"""Random digits for the next exchange ids, generated in advance."""

FORWARDING: Final = "forwarding"
"""The span holder of exchanges whose span a receiver keeps, until it forwards the span with its scores."""
AttributeValue = str | bool | int | float
Status = Literal["ok", "error", "cancelled", "abandoned"]
Capture = Literal["span+store", "store", "none"]
"""Where texts are kept: on the span and in the database, only in the database, or nowhere."""
Redact = Callable[[str], str]
"""A function that returns a text without what must not be kept."""


@dataclass(frozen=True, slots=True)
class Context:
    """A piece of text that a retriever returned to the handler."""

    text: str
    id: str | None = None
    score: float | None = None
    """The retriever's score, on its own scale."""


@dataclass(frozen=True, slots=True)
class Message:
    """An earlier message in the conversation."""

    role: str
    """The author's role, such as ``user`` or ``assistant``."""
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question and its answer.

    The question or answer is None if it is missing, could not be read, or must not be stored.
    """

    id: str
    """32 hexadecimal digits. Ids sort by creation time. A trace may contain several exchanges."""
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    service: str
    route: str
    """Name of the handler. Trends are grouped by route."""
    question: str | None
    answer: str | None
    contexts: tuple[Context, ...] = ()
    """The texts that the answer is based on."""
    history: tuple[Message, ...] = ()
    """Earlier messages in the conversation, oldest first."""
    model: str | None = None
    prompt_version: str | None = None
    session: str | None = None
    user: str | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    status: Status = "ok"
    """Outcome of the handler. ``abandoned`` means that the caller stopped reading the stream before its end."""
    error: str | None = None
    """Type and message of the exception that the handler raised."""
    started_at: datetime
    """UTC, timezone-aware."""
    duration: float = 0.0
    """Seconds until the handler returned, or until the last chunk of a stream."""
    sampling_key: float = 1.0
    """A number in (0, 1]. The exchange is sampled if its key is at most the sample rate; see :func:`sampling_key_for`.
    """
    capture_probability: float = 1.0
    """Probability in (0, 1] that the exchange was captured; below 1 if ``max_exchanges_per_minute`` was exceeded. The
    sampling key is at most this value."""
    sampling_probability: float | None = field(default=None, compare=False)
    """Probability in (0, 1] of being scored, including that of being captured. None before the sampling decision, so it
    is not compared."""
    traced: bool = True
    """Whether OpenTelemetry sampled the span. This is independent of whether germane scores the exchange."""
    span_holder: str | None = None
    """Id of the worker process that delays the export of the span until its scores arrive, or :data:`FORWARDING` if a
    receiver does. None without a delay."""

    @classmethod
    def from_texts(
        cls,
        question: str | None,
        answer: str | None = None,
        contexts: Iterable[str] = (),
        history: Iterable[Message] = (),
    ) -> Exchange:
        """Create an exchange from texts alone, for tests or for calling a scorer directly."""
        return cls(
            id=new_exchange_id(),
            trace_id="0" * 32,
            span_id="0" * 16,
            service="manual",
            route="manual",
            question=question,
            answer=answer,
            contexts=tuple(Context(text) for text in contexts),
            history=tuple(history),
            started_at=datetime.now(UTC),
        )


def sampling_key_for(trace_id: str) -> float:
    """Return the sampling key of a trace, in (0, 1]. It is the same in every process and for every scorer.

    An exchange is sampled if its key is at most the sample rate, so an exchange sampled at one rate is also sampled at
    every higher rate. The key is a keyed hash, which makes it independent of the bits of the trace id that
    OpenTelemetry's ratio-based samplers use.
    """
    keyed_hash = _KEYED_HASH.copy()
    keyed_hash.update(trace_id.encode())
    return ((int.from_bytes(keyed_hash.digest()) >> 11) + 1) / 2**53


def normalized_question(text: str) -> str:
    """Return a question without differences in case, width, whitespace and final punctuation, to group questions."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip("?!.\u2026 ")


def matches_attributes(attributes: Mapping[str, Any], patterns: Mapping[str, str]) -> bool:
    """Return whether attributes match all shell-style patterns, by name. Booleans are written as in JSON."""
    for name, pattern in patterns.items():
        value = attributes.get(name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if value is None or not fnmatchcase(text, pattern):
            return False
    return True


def new_exchange_id() -> str:
    """Return 32 hexadecimal digits: 48 bits of milliseconds since 1970, then 80 random bits.

    Ids start with the time, so new rows are inserted at one end of the index. The random bits come from the operating
    system, so they neither depend on nor change the state of the application's ``random`` module.
    """
    try:
        random_digits = _random_digits.pop()
    except IndexError:
        # Reading os.urandom releases the GIL. If another thread is waiting for the GIL, a read accounts for a third of
        # the time of a captured call, so each read fetches the digits for many ids.
        digits = os.urandom(10 * _ID_BATCH_SIZE).hex()
        random_digits, *rest = (digits[start : start + 20] for start in range(0, len(digits), 20))
        _random_digits.extend(rest)
    return (time.time_ns() // 1_000_000 % 2**48).to_bytes(6).hex() + random_digits


def exchange_id_for(trace_id: str, span_id: str, started: int) -> str:
    """Return the id of the exchange with this root span: 48 bits of milliseconds since 1970, then 80 bits of a hash.

    The same trace yields the same id wherever it is recognized, so that it is stored once. ``started`` is in
    nanoseconds since 1970.
    """
    digest = blake2b(f"{trace_id}{span_id}".encode(), digest_size=10).hexdigest()
    return f"{(started // 1_000_000) % 2**48:012x}{digest}"


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_random_digits.clear)  # otherwise parent and child would create the same ids
