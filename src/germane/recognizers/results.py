"""The result of recognition: an exchange, or the reason why a trace cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from germane.exchange import Context, Message


class UnreadableReason(StrEnum):
    """The reason why no question and answer could be read from a trace. The list is closed."""

    CONTENT_CAPTURE_OFF = "content_capture_off"
    CONTENT_CUT = "content_cut"
    MODEL_NOT_TRACED = "model_not_traced"
    NO_QUESTION = "no_question"
    NO_ANSWER = "no_answer"
    AMBIGUOUS = "ambiguous"
    ANSWERED_ELSEWHERE = "answered_elsewhere"
    CALL_FAILED = "call_failed"
    INCOMPLETE = "incomplete"
    TOO_LARGE = "too_large"
    TOO_MANY_OPEN = "too_many_open"
    RECOGNITION_FAILED = "recognition_failed"
    NOT_AN_EXCHANGE = "not_an_exchange"

    @property
    def meaning(self) -> str:
        """A sentence that describes traces with this reason."""
        return _MEANINGS[self]

    @property
    def fix(self) -> str:
        """A sentence that says how to fix traces with this reason, if the instrumentation is unknown."""
        return _FIXES[self]


RECOGNIZED: Final = "recognized"
"""Outcome of a trace whose exchange was recognized. Every other outcome is the reason why it is unreadable."""
WITHOUT_EXCHANGE: Final = frozenset({UnreadableReason.NOT_AN_EXCHANGE, UnreadableReason.ANSWERED_ELSEWHERE})
"""Reasons of traces that are not expected to contain an exchange. They do not count as unreadable."""
_MEANINGS = {
    UnreadableReason.CONTENT_CAPTURE_OFF: "The instrumentation does not record questions and answers",
    UnreadableReason.CONTENT_CUT: "A question, an answer or a prompt was cut off at the maximum length of attributes",
    UnreadableReason.MODEL_NOT_TRACED: "The trace has neither an answer nor a language model call",
    UnreadableReason.NO_QUESTION: "The trace has an answer, but no question",
    UnreadableReason.NO_ANSWER: "The trace has a question, but no answer",
    UnreadableReason.AMBIGUOUS: "Several model calls may have given the answer, and no span records which",
    UnreadableReason.ANSWERED_ELSEWHERE: "The streamed answer is in a separate trace, which is read instead",
    UnreadableReason.CALL_FAILED: "The call failed before it gave an answer",
    UnreadableReason.INCOMPLETE: "Spans of the trace are missing",
    UnreadableReason.TOO_LARGE: "The trace exceeds the limit on spans or bytes",
    UnreadableReason.TOO_MANY_OPEN: "Too many traces were open at the same time, so these were not read",
    UnreadableReason.RECOGNITION_FAILED: "Reading the trace failed with an error",
    UnreadableReason.NOT_AN_EXCHANGE: "The trace has no model, agent or chain that gives an answer",
}
_FIXES = {
    UnreadableReason.CONTENT_CAPTURE_OFF: "turn on content capture in the instrumentation",
    UnreadableReason.CONTENT_CUT: "raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT in the application's environment",
    UnreadableReason.MODEL_NOT_TRACED: "also install the instrumentation of the client that calls the model",
    UnreadableReason.NO_QUESTION: (
        "decorate the handler with @germane.observe, or register a recognizer that returns the question"
    ),
    UnreadableReason.NO_ANSWER: (
        "read streams to their end, and check that the instrumentation records the model's output"
    ),
    UnreadableReason.AMBIGUOUS: "decorate the handler with @germane.observe",
    UnreadableReason.ANSWERED_ELSEWHERE: "nothing; to get one trace per answer, start a span around the call",
    UnreadableReason.CALL_FAILED: "see the error on the trace's spans",
    UnreadableReason.INCOMPLETE: "check that all spans of a trace are sampled and reach germane",
    UnreadableReason.TOO_LARGE: "decorate the handler with @germane.observe",
    UnreadableReason.TOO_MANY_OPEN: "check that the application ends its spans",
    UnreadableReason.RECOGNITION_FAILED: "see the error in the log; if you registered a recognizer, correct it",
    UnreadableReason.NOT_AN_EXCHANGE: "nothing; if the trace should contain an answer, instrument its framework",
}


@dataclass(frozen=True, slots=True)
class Source:
    """The span and attribute in which a part of an exchange was found."""

    span_id: str
    attribute: str
    """Name of the attribute, event or log record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognized:
    """A question and its answer, found in a trace."""

    question: str
    answer: str
    contexts: tuple[Context, ...] = ()
    history: tuple[Message, ...] = ()
    """Earlier messages of the user and the assistant, oldest first."""
    session: str | None = None
    user: str | None = None
    model: str | None = None
    route: str
    """Value of ``germane.route``, otherwise the name of the workflow or agent, otherwise of the first span."""
    root_span_ids: tuple[str, ...]
    """The spans without a parent, in the order of their start times."""
    start: int
    """Start of the first span in nanoseconds since 1970."""
    end: int
    """End of the last root span in nanoseconds since 1970."""
    scope: str
    """The instrumentation scope that recorded the answer."""
    instrumentation: str
    """Name of the convention that the scope follows."""
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)
    """Sources by part: ``question``, ``answer``, ``contexts``, ``session``, ``user``, ``model`` and ``route``."""
    has_documents_without_text: bool = False
    """Whether a retriever recorded documents, but not their texts. Scorers that need contexts skip such exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A trace from which no question and answer could be read."""

    reason: UnreadableReason
    fix: str
    """What to do, in one sentence."""
    route: str
    scope: str = ""
    """The instrumentation scope whose spans could not be read; empty if no scope is known."""
    root_span_ids: tuple[str, ...] = ()
    start: int = 0
    """Start of the first span in nanoseconds since 1970."""
