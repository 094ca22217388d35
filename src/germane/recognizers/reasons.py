"""The reasons why a trace has no readable question and answer."""

from __future__ import annotations

from collections.abc import Sequence

from germane.recognizers.attributes import find_model, is_finished
from germane.recognizers.calls import ModelCall
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

    Args:
        trace: The trace.
        calls: Its model calls. The last one should have given the answer.
        steps: The steps that contain the last call, from the outermost to the innermost.
        question: The question, if it was found.
        answer: The answer, if it was found.
        is_ambiguous: Whether another call may have given the answer as well.
    """
    readings = [reading for span in trace.tree.spans if (reading := trace.reading(span)) is not None]
    values = [raw.value for reading in readings for raw in (*reading.inputs, *reading.outputs)]
    if not {reading.kind for reading in readings} & {"workflow", "model", "retriever"}:
        return UnreadableReason.NOT_AN_EXCHANGE
    if any(isinstance(value, str) and is_hidden(value) for value in values):
        return UnreadableReason.CONTENT_CAPTURE_OFF
    # The whole trace, the answering call, or a call without content may have failed.
    may_fail = [*trace.tree.roots, *steps[:1], *(call.span for call in calls[:-1] if not call.has_content)]
    may_fail += [call.span for call in calls[-1:] if call.answer is None]
    if answer is None and any(span.status == "ERROR" for span in may_fail):
        return UnreadableReason.CALL_FAILED
    if calls and _is_step(trace, calls[-1]):
        return UnreadableReason.NOT_AN_EXCHANGE
    if calls and (question is None or answer is None) and _is_content_hidden(trace, calls, question):
        return UnreadableReason.CONTENT_CAPTURE_OFF
    if trace.tree.orphans:
        return UnreadableReason.INCOMPLETE
    if not calls and answer is None:
        return UnreadableReason.MODEL_NOT_TRACED
    if is_ambiguous:
        return UnreadableReason.AMBIGUOUS
    if answer is not None:
        return UnreadableReason.NO_QUESTION
    reading = trace.reading(calls[-1].span) if calls else None
    is_split = reading is not None and reading.splits_streams
    return UnreadableReason.ANSWERED_ELSEWHERE if is_split else UnreadableReason.NO_ANSWER


def _is_step(trace: Trace, call: ModelCall) -> bool:
    """Return whether the trace is only one step towards an answer: a model that calls a tool, or a span without a
    model.
    """
    if len(trace.tree.spans) > 1 or trace.tree.orphans:
        return False
    if call.is_tool_call:
        return True
    reading = trace.reading(call.span)
    has_values = reading is not None and bool(reading.inputs or reading.outputs)
    return has_values and not call.has_content and reading is not None and find_model(call.span, reading) is None


def _is_content_hidden(trace: Trace, calls: Sequence[ModelCall], question: str | None) -> bool:
    """Return whether the model calls recorded neither inputs nor outputs, or the missing one of them is turned off."""
    if not any(call.has_content for call in calls):
        return True
    readings = [reading for span in trace.tree.spans if (reading := trace.reading(span)) is not None]
    if question is None:
        return all(reading.hides_separately and not reading.inputs for reading in readings)
    own = [(span, reading) for span in calls[-1].spans if (reading := trace.reading(span)) is not None]
    is_off = all(reading.hides_separately and not reading.outputs for _, reading in own)
    return is_off and any(is_finished(span) for span, _ in own)
