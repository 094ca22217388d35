"""The noun that flows through every room: one question and its answer, with what the answer was made from."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Literal

_KEYED = blake2b(digest_size=8, key=b"germane.draw")
AttributeValue = str | bool | int | float
Status = Literal["ok", "error", "cancelled", "abandoned"]


@dataclass(frozen=True, slots=True)
class Context:
    """One piece of text that a retriever handed to the handler."""

    text: str
    id: str | None = None
    score: float | None = None
    """The retriever's own figure, on its own scale."""


@dataclass(frozen=True, slots=True)
class Message:
    """An earlier message of the conversation that the question ends."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question and its answer.

    A question or answer that was not given, could not be read, or may not be kept is None.
    """

    id: str
    """32 hexadecimal digits, its own: one trace may hold several exchanges. Ids sort by the time they were made."""
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    service: str
    route: str
    """The named handler it came through: the first thing that trends group by."""
    question: str | None
    answer: str | None
    contexts: tuple[Context, ...] = ()
    history: tuple[Message, ...] = ()
    model: str | None = None
    prompt_version: str | None = None
    session: str | None = None
    user: str | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    status: Status = "ok"
    """How the handler ended. ``abandoned``: the caller dropped the stream before its end."""
    error: str | None = None
    """Type and message of what the handler raised."""
    started_at: datetime
    """UTC, with its zone."""
    duration: float = 0.0
    """Seconds from the call to the return, or to the last chunk of a stream."""
    sampling_key: float = 1.0
    """In (0, 1]: its own lottery ticket, see :func:`draw_of`."""
    capture_probability: float = 1.0
    """In (0, 1]: how probable it was that the capture limit kept it; it was kept because its draw is not above."""
    traced: bool = True
    """Whether its span is exported: OpenTelemetry's own sampling, which decides nothing about scoring."""

    @classmethod
    def from_texts(
        cls,
        question: str | None,
        answer: str | None = None,
        contexts: Iterable[str] = (),
        history: Iterable[Message] = (),
    ) -> Exchange:
        """Return an exchange that no handler had, of these texts: to call a scorer by hand, and in tests of yours."""
        return cls(
            id=new_exchange_id(),
            trace_id="0" * 32,
            span_id="0" * 16,
            service="by hand",
            route="by hand",
            question=question,
            answer=answer,
            contexts=tuple(Context(text) for text in contexts),
            history=tuple(history),
            started_at=datetime.now(UTC),
        )


def sampling_key_for(trace_id: str) -> float:
    """Return the lottery ticket of a trace, in (0, 1]: the same in every process and for every scorer.

    It is a keyed hash, so that it does not depend on the bits a ratio-based head sampler has already looked at,
    and an exchange drawn at some rate is also drawn at every higher one.
    """
    keyed = _KEYED.copy()
    keyed.update(trace_id.encode())
    return ((int.from_bytes(keyed.digest()) >> 11) + 1) / 2**53


def new_exchange_id() -> str:
    """Return 32 hexadecimal digits: 48 bits of milliseconds, then 80 random bits.

    Time first keeps new rows at one end of the index. The random bits come from the system: seeding ``random`` in the
    application neither repeats ids nor sees its own sequence moved.
    """
    try:
        random = _random.pop()
    except IndexError:
        random = _draw_random()
    return f"{time.time_ns() // 1_000_000:012x}{random}"


def _draw_random() -> str:
    """Return 20 random digits, and put more of them by.

    Asking the system lets go of the interpreter: with another thread waiting for it, that costs a call a third of its
    time, so it is done once for many.
    """
    digits = os.urandom(10 * _AT_ONCE).hex()
    first, *rest = (digits[start : start + 20] for start in range(0, len(digits), 20))
    _random.extend(rest)
    return first


_AT_ONCE = 256
_random: list[str] = []
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_random.clear)  # or parent and child would give the same ids
