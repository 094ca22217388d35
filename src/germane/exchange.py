"""An exchange: one question and its answer, with contexts, route and span ids."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Literal

_KEYED_HASH = blake2b(digest_size=8, key=b"germane.draw")  # never change the key: stored sampling keys depend on it
_ID_BATCH_SIZE = 256
_random_digits: list[str] = []
"""Random digits for the next exchange ids, generated in advance."""

AttributeValue = str | bool | int | float
Status = Literal["ok", "error", "cancelled", "abandoned"]


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

    The question or answer is None if it is missing, could not be read, or may not be stored.
    """

    id: str
    """32 hexadecimal digits. Ids sort by creation time. A trace may contain several exchanges."""
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    service: str
    route: str
    """Name of the handler, by which trends are grouped."""
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
    """Outcome of the handler. ``abandoned``: the caller stopped reading the stream before its end."""
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
    traced: bool = True
    """Whether OpenTelemetry sampled the span. This is independent of whether germane scores the exchange."""
    span_holder: str | None = None
    """Id of the worker process that delays the export of the span until its scores arrive. None without a delay."""

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


def new_exchange_id() -> str:
    """Return 32 hexadecimal digits: 48 bits of milliseconds since 1970, then 80 random bits.

    Because ids start with the time, new rows are inserted at one end of the index. The random bits come from the
    operating system, so they neither depend on nor change the state of ``random`` in the application.
    """
    try:
        random_digits = _random_digits.pop()
    except IndexError:
        # Reading os.urandom releases the GIL. If another thread is waiting for the GIL, the read takes a third of the
        # duration of a captured call, so each read fetches the digits of many ids.
        digits = os.urandom(10 * _ID_BATCH_SIZE).hex()
        random_digits, *rest = (digits[start : start + 20] for start in range(0, len(digits), 20))
        _random_digits.extend(rest)
    return f"{time.time_ns() // 1_000_000:012x}{random_digits}"


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_random_digits.clear)  # otherwise parent and child would create the same ids
