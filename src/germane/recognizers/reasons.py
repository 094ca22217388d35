"""The reasons why a trace has no readable question and answer."""

from __future__ import annotations

from collections.abc import Sequence

from germane.recognizers.attributes import find_model, is_finished
from germane.recognizers.calls import ModelCall
from germane.recognizers.documents import read_documents
from germane.recognizers.results import UnreadableReason
from germane.recognizers.spans import SpanData
from germane.recognizers.text import is_hidden
from germane.recognizers.trace import Trace


def unreadable_reason(
    trace: Trace,
    calls: Sequence[ModelCall],
    steps: Sequence[SpanData],
    *,
    question: str | None,
    answer: str | None,
    is_ambiguous: bool,
) -> UnreadableReason:
    """Return the reason why a trace is unreadable.

    The last of the calls should have given the answer. The steps are those that contain it, from the outermost to the
    innermost. It is ambiguous if another call may have given the answer as well.
    """
    readings = [trace.reading(span) for span in trace.tree.spans]
    values = [raw.value for reading in readings for raw in (*reading.inputs, *reading.outputs)]
    if not _may_answer(trace, is_read=question is not None or answer is not None):
        return UnreadableReason.NOT_AN_EXCHANGE
    if any(isinstance(value, str) and is_hidden(value) for value in values):
        return UnreadableReason.CONTENT_CAPTURE_OFF
    if answer is None and _has_failed(trace, calls, steps):
        return UnreadableReason.CALL_FAILED
    if calls and _is_step(trace, calls[-1]):
        return UnreadableReason.NOT_AN_EXCHANGE
    if calls and _is_content_hidden(trace, calls, question, answer):
        return UnreadableReason.CONTENT_CAPTURE_OFF
    if trace.tree.orphans:
        return UnreadableReason.INCOMPLETE
    if is_ambiguous:
        return UnreadableReason.AMBIGUOUS
    if answer is not None:
        return UnreadableReason.NO_QUESTION
    if not calls:
        return UnreadableReason.MODEL_NOT_TRACED
    is_split = trace.reading(calls[-1].span).splits_streams
    return UnreadableReason.ANSWERED_ELSEWHERE if is_split else UnreadableReason.NO_ANSWER


def _may_answer(trace: Trace, *, is_read: bool) -> bool:
    """Return whether a trace, a part of which may have been read, may be an exchange rather than build an index."""
    readings = [reading for _, reading in trace.readings(trace.tree.spans)]
    kinds = {reading.kind for reading in readings}
    if kinds & {"model", "retriever"} or "workflow" not in kinds:
        return bool(kinds & {"model", "retriever"})
    outputs = (raw.content for reading in readings if reading.kind == "workflow" for raw in reading.outputs)
    return is_read or not ("embedding" in kinds or any(map(read_documents, outputs)))


def _has_failed(trace: Trace, calls: Sequence[ModelCall], steps: Sequence[SpanData]) -> bool:
    """Return whether the whole trace, the answering call, or a call without content failed."""
    spans = [*trace.tree.roots, *steps[:1], *(call.span for call in calls[:-1] if not call.has_content)]
    spans += [call.span for call in calls[-1:] if call.answer is None]
    return any(span.status == "ERROR" for span in spans)


def _is_step(trace: Trace, call: ModelCall) -> bool:
    """Return whether the trace is only one step towards an answer: a model that calls a tool, or a span without a
    model.
    """
    if len(trace.tree.spans) > 1 or trace.tree.orphans:
        return False
    if call.is_tool_call:
        return True
    reading = trace.reading(call.span)
    has_values = bool(reading.inputs or reading.outputs)
    return has_values and not call.has_content and find_model(call.span, reading) is None


def _is_content_hidden(trace: Trace, calls: Sequence[ModelCall], question: str | None, answer: str | None) -> bool:
    """Return whether the model calls recorded neither inputs nor outputs, or the missing one of them is turned off."""
    if question is not None and answer is not None:
        return False
    if not any(call.has_content for call in calls):
        return True
    if question is None:
        readings = trace.readings(trace.tree.spans)
        return all(reading.hides_separately and not reading.inputs for _, reading in readings)
    own = trace.readings(calls[-1].spans)
    is_off = all(reading.hides_separately and not reading.outputs for _, reading in own)
    return is_off and any(is_finished(span) for span, _ in own)
