"""Functions that a handler calls to change the current exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.context import get_current
from opentelemetry.trace import SpanKind

from germane.arguments import explain_unknown_arguments
from germane.tracer import conventions
from germane.tracer.contexts import ContextReader, document_attributes
from germane.tracer.guard import NOT_TRACED, guarded, log_once
from germane.tracer.handler_recording import enclosing_recording
from germane.tracer.known_types import is_lazy_sequence
from germane.tracer.provider import start_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from germane.tracer.handler_recording import HandlerRecording
    from germane.tracer.selectors import Selector


@dataclass(frozen=True, slots=True)
class CurrentExchange:
    """The ids of the current exchange. Both are None if nothing is being recorded."""

    id: str | None = None
    trace_id: str | None = None


@explain_unknown_arguments
def current_exchange() -> CurrentExchange:
    """Return the ids of the current exchange. Pass ``id`` to your front end, which sends it back with feedback."""

    def handle() -> CurrentExchange | None:
        recording = enclosing_recording()
        return None if recording is None else CurrentExchange(recording.root.exchange_id, recording.root.trace_id)

    return guarded("current exchange", handle) or CurrentExchange()


@explain_unknown_arguments
def set_question(text: str) -> None:
    """Set the question of the current exchange, for handlers whose arguments do not contain it.

    The text is redacted and truncated like a captured question.
    """
    guarded("question", _change, "set_question", lambda recording: recording.set_question(text))


@explain_unknown_arguments
def set_attribute(name: str, value: Any) -> None:
    """Set an attribute of the current exchange to text, a number or a Boolean. None removes it.

    ``model``, ``prompt_version``, ``session`` and ``user`` have their own columns.
    """
    guarded("attribute", _change, "set_attribute", lambda recording: recording.set_attribute(name, value))


@explain_unknown_arguments
def add_contexts(
    contexts: Any,
    *,
    content: Selector | None = None,
    id: Selector | None = None,
    score: Selector | None = None,
) -> None:
    """Add contexts to the current exchange, for handlers without a retrieval function to decorate.

    Args:
        contexts: Texts, or objects that contain them, as for :func:`retrieval`.
        content: Selector for a context's text.
        id: Selector for a context's id.
        score: Selector for the score that the retriever gave a context.
    """

    def add(recording: HandlerRecording) -> None:
        items = list(contexts) if is_lazy_sequence(type(contexts)) else contexts  # the caller passed it to be read
        added = recording.add_contexts(ContextReader(content=content, id=id, score=score).read_all(items))
        route = recording.handler.route
        attributes: dict[str, Any] = {
            conventions.OPERATION_NAME: conventions.RETRIEVAL,
            conventions.DATA_SOURCE_ID: route,
        }
        if recording.privacy.shows_output:
            attributes.update(document_attributes(added))
        attributes[conventions.SPAN_KIND] = conventions.RETRIEVER
        name = f"{conventions.RETRIEVAL} {route}"
        texts = lambda: [context.text for context in added]  # noqa: E731 - only called if the span fails
        span, _ = start_span(name, get_current(), attributes, SpanKind.CLIENT, texts)
        guarded("end of the span", span.end, message=NOT_TRACED, texts=texts)

    guarded("contexts", _change, "add_contexts", add)


def _change(function: str, change: Callable[[HandlerRecording], object]) -> None:
    """Apply a change to the current exchange. If there is none, log that the public function has no effect."""
    recording = enclosing_recording()
    if recording is None:
        log_once(f"germane.{function}() was called outside an observed handler: the call has no effect")
    else:
        change(recording)
