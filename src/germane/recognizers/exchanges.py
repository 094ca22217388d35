"""The exchange of a recognized request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from germane.exchange import Context, Exchange, Message, exchange_id_for
from germane.recognizers.results import Recognized
from germane.recognizers.spans import SpanData

Screen = Callable[[str, str], str | None]
"""A function that applies the privacy settings. It takes the name of a part, such as ``question``, and its text, and
returns the text to be stored; None if it must not be stored."""
MAX_CONTEXTS: Final = 100
NAME_LENGTH: Final = 200
"""Maximum number of characters in the names of models, users, sessions and sources."""


def create_exchange(
    found: Recognized,
    root: SpanData,
    *,
    screen: Screen,
    service: str,
    route: str,
    started_at: datetime,
    sampling_key: float,
    capture_probability: float,
    traced: bool = True,
    span_holder: str | None = None,
) -> Exchange:
    """Create the exchange of a request, and apply the privacy settings with ``screen``.

    Its id is derived from ``root``, the first span, to which scores are attached, so that a request never yields two
    exchanges. The route may differ from the recognized one if there are too many. ``traced`` is whether OpenTelemetry
    sampled the first span, and ``span_holder`` the id of the process that delays its export.
    """
    contexts = ((screen("contexts", context.text), context) for context in found.contexts[:MAX_CONTEXTS])
    history = ((screen("history", message.content), message.role) for message in found.history)
    sources = {
        f"source.{part}": ", ".join(dict.fromkeys(source.attribute for source in found.sources[part]))[:NAME_LENGTH]
        for part in ("question", "answer", "contexts")
        if part in found.sources
    }
    return Exchange(
        id=exchange_id_for(root.trace_id, root.span_id, root.start),
        trace_id=root.trace_id,
        span_id=root.span_id,
        service=service,
        route=route,
        question=screen("question", found.question),
        answer=screen("answer", found.answer),
        contexts=tuple(
            Context(text, _shorten(context.id), context.score) for text, context in contexts if text is not None
        ),
        history=tuple(Message(role[:NAME_LENGTH], text) for text, role in history if text is not None),
        model=_shorten(found.model),
        session=_shorten(found.session),
        user=_shorten(found.user),
        attributes={"instrumentation": found.instrumentation[:NAME_LENGTH], **sources},
        status="error" if root.status == "ERROR" else "ok",
        started_at=started_at,
        duration=max(0, found.end - found.start) / 1e9,
        sampling_key=sampling_key,
        capture_probability=capture_probability,
        traced=traced,
        span_holder=span_holder,
    )


def _shorten(name: str | None) -> str | None:
    """Truncate a name. A registered recognizer may return a number instead of a text."""
    return None if name is None else str(name)[:NAME_LENGTH]
