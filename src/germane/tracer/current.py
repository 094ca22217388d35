"""What a handler may say of the exchange it is part of, from inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.context import get_current
from opentelemetry.trace import SpanKind

from germane.tracer import conventions
from germane.tracer.contexts import ContextReader, document_attributes
from germane.tracer.guard import attempt, say_once
from germane.tracer.provider import tracer
from germane.tracer.recording import enclosing

if TYPE_CHECKING:
    from germane.tracer.selectors import Selector


@dataclass(frozen=True, slots=True)
class CurrentExchange:
    """A handle on the exchange under way. Both ids are None where nothing is recorded."""

    id: str | None = None
    trace_id: str | None = None


def current_exchange() -> CurrentExchange:
    """Return a handle on the exchange under way: hand its id to your front end, to send feedback with."""
    return attempt("the current exchange", _current_exchange) or CurrentExchange()


def _current_exchange() -> CurrentExchange:
    recording = enclosing()
    if recording is None:
        return CurrentExchange()
    return CurrentExchange(recording.root.exchange_id, recording.root.trace_id)


def set_attribute(name: str, value: Any) -> None:
    """Keep an attribute with the exchange under way: text, a number or a truth value; None removes it.

    ``model``, ``prompt_version``, ``session`` and ``user`` have columns of their own.
    """
    attempt("an attribute", _set_attribute, name, value)


def _set_attribute(name: str, value: Any) -> None:
    recording = enclosing()
    if recording is None:
        say_once("germane.set_attribute() was called outside an observed handler: nothing is kept")
    else:
        recording.label(name, value)


def add_contexts(
    contexts: Any,
    *,
    content: Selector | None = None,
    id: Selector | None = None,
    score: Selector | None = None,
) -> None:
    """Add to the contexts of the exchange under way, where there is no retriever function to decorate.

    Args:
        contexts: Texts, or objects that carry them, as :func:`retrieval` reads them.
        content: Where the text is in one of them.
        id: Where its id is.
        score: Where the retriever's figure for it is.
    """
    attempt("contexts", _add_contexts, contexts, content, id, score)


def _add_contexts(contexts: Any, content: Selector | None, identity: Selector | None, score: Selector | None) -> None:
    recording = enclosing()
    if recording is None:
        say_once("germane.add_contexts() was called outside an observed handler: nothing is kept")
        return
    found = ContextReader(content=content, id=identity, score=score).all(contexts)
    kept = recording.add_contexts(found)
    source = tracer()
    if source is not None:
        route = recording.handler.route
        attributes: dict[str, Any] = {
            conventions.OPERATION_NAME: conventions.RETRIEVAL,
            conventions.DATA_SOURCE_ID: route,
        }
        if recording.privacy.shows_output:
            attributes.update(document_attributes(kept))
        attributes[conventions.SPAN_KIND] = conventions.RETRIEVER
        name = f"{conventions.RETRIEVAL} {route}"
        source.start_span(name, get_current(), kind=SpanKind.CLIENT, attributes=attributes).end()
