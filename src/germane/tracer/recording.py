"""Recording of one call to a decorated function, from start to finish."""

from __future__ import annotations

import os
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.context import _RUNTIME_CONTEXT
from opentelemetry.context import Context as OTelContext
from opentelemetry.trace import INVALID_SPAN, Span, StatusCode
from opentelemetry.trace.propagation import _SPAN_KEY

from germane.tracer import conventions
from germane.tracer.collection import defer, is_collecting, run_deferred
from germane.tracer.connection import SPAN_TEXT_LIMIT
from germane.tracer.guard import NOT_CAPTURED, NOT_TRACED, guarded, log_once, must_be_raised
from germane.tracer.known_types import library_classes
from germane.tracer.text import as_text, clean

if TYPE_CHECKING:
    from contextvars import Token

    from germane.exchange import AttributeValue, Status
    from germane.tracer.privacy import Privacy

_CANCELLATIONS = {
    ("asyncio", "CancelledError"),
    ("concurrent", "CancelledError"),
    ("greenlet", "GreenletExit"),  # gevent's
    ("trio", "Cancelled"),
    ("airflow", "AirflowSkipException"),
    ("airflow", "TaskDeferred"),
    ("arq", "Retry"),
    ("celery", "TaskPredicate"),  # Retry, Ignore and Reject
    ("dramatiq", "Retry"),
    ("huey", "CancelExecution"),
    ("huey", "RetryTask"),
    ("langgraph", "GraphBubbleUp"),  # interrupts and commands
    ("prefect", "PrefectSignal"),
    ("prefect", "Pause"),
    ("pydantic_ai", "ApprovalRequired"),
    ("pydantic_ai", "CallDeferred"),
    ("streamlit", "ScriptControlException"),
    ("temporalio", "ContinueAsNewError"),
    ("tornado", "Finish"),
}
"""Exceptions that cancel a call, or end it without an error, such as a retry, as pairs of package and class name."""
_STATUS_ATTRIBUTES = {"abandoned": conventions.ABANDONED, "cancelled": conventions.CANCELLED}
_MAX_STACK_FRAMES = 64
"""Maximum number of stack frames to record, counted from the error. Formatting them delays the caller."""
_attach, _detach, current_context = _RUNTIME_CONTEXT.attach, _RUNTIME_CONTEXT.detach, _RUNTIME_CONTEXT.get_current
# The API functions look up the same object and log errors, which takes a tenth of a captured call's time.
_process = object()
"""Identifies this process: every forked child has a different object."""


def _after_fork() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


class Recording(ABC):
    """A recording of one call: its span, the context in which its body runs, and its outcome.

    A wrapper runs each step of the body inside ``with recording:``, passes the result to :meth:`finish_with` or the
    chunks of a stream to :meth:`add_chunk`, and calls :meth:`finish` or :meth:`fail` at the end. The end may be
    reported more than once and from another thread. Only the first report counts.
    """

    __slots__ = (
        "__weakref__",
        "_left_context",
        "_outer_context",
        "_process",
        "_started_at",
        "_token",
        "context",
        "ended",
        "privacy",
        "problems",
        "span",
        "started",
    )

    def __init__(self, span: Span, outer_context: OTelContext, privacy: Privacy) -> None:
        run_deferred()
        self.span = span
        self.privacy = privacy
        self.ended = False
        self.problems: list[str] = []
        self.started = time.time_ns()
        self._started_at = time.perf_counter()
        self._process = _process
        self._outer_context = outer_context
        self._left_context: OTelContext | None = None
        """The call's own context, if the body attached another context and did not detach that in the same step."""
        self.context = OTelContext(outer_context)
        if span is not INVALID_SPAN:  # otherwise, the body's spans remain children of the caller's span
            dict.__setitem__(self.context, _SPAN_KEY, span)  # a context is read-only, but no one else has it yet

    def __enter__(self) -> None:
        """Enter a step of the body. Spans that the body starts become children of this call's span."""
        self._token = self.enter()

    def __exit__(self, *_error: object) -> None:
        """Leave the step."""
        self.leave(self._token)

    def enter(self) -> Token[OTelContext] | None:
        """Enter a step that may overlap with others. Pass the returned token to :meth:`leave`."""
        return None if is_collecting() else _attach(self.context)

    def leave(self, token: Token[OTelContext] | None) -> None:
        """Leave a step. Changes that the body made to the context only apply to its next step."""
        if token is None:
            return
        if not self.ended:
            current = current_context()
            if current is not self.context:
                self._left_context = self._left_context or self.context
                self.context = current
        try:
            _detach(token)
        except ValueError:  # a coroutine may be closed outside the context in which it ran
            return

    @property
    def seconds(self) -> float:
        """Seconds since the start of the call."""
        return time.perf_counter() - self._started_at

    @property
    def active(self) -> bool:
        """Whether the call is still running in this process. After a fork, it only runs in the parent."""
        return not self.ended and self._process is _process

    @abstractmethod
    def finish_with(self, result: Any) -> None:
        """Capture the return value and end the recording."""

    def record_returned(self, result: Any) -> Any:  # noqa: B027 - most recordings treat no further values as streams
        """Return a recorded version of a value that this kind of recording treats as a stream, otherwise None."""

    @abstractmethod
    def add_chunk(self, chunk: Any) -> None:
        """Capture one chunk of a stream."""

    def add_field(self, key: Any, value: Any) -> None:  # noqa: B027 - only retrieval functions return lazy mappings
        """Capture one value of a lazy mapping."""

    @property
    @abstractmethod
    def has_chunks(self) -> bool:
        """Whether any chunk of a stream was captured."""

    def expect_response(self, response: Any) -> None:  # noqa: B027 - only handlers return responses
        """Read the status and content type of a response whose body is a stream."""

    def warn(self, problem: str, *, key: str | None = None) -> None:
        """Log a capture problem the first time it, or its key, occurs, and record it on the span."""
        if problem not in self.problems:
            self.problems.append(problem)
        log_once(NOT_CAPTURED.format(problem), key=key)

    def finish(self, status: Status = "ok", error: BaseException | None = None) -> None:
        """End the span, and pass the captured data to the sink."""
        if is_collecting():
            defer(partial(self.finish, status, error))
        elif not self.ended and self._process is _process:
            self.ended = True
            # The caller may still detach the body's token, which makes this context current.
            if self._left_context is not None:
                dict.clear(self._left_context)
                dict.update(self._left_context, self._outer_context)
            # The call's own context refers to the recording, which would delay garbage collection.
            self.context = self._outer_context
            guarded("end of the call", self._finish, status, error)

    def fail(self, error: BaseException) -> None:
        """End the recording with the error that the body raised."""
        self.finish(guarded("error type", _status_after, error) or "error", error)

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """Return the captured text, which the application's log must not contain."""

    @abstractmethod
    def _finish(self, status: Status, error: BaseException | None) -> None: ...

    def _end_span(
        self,
        attributes: Mapping[str, AttributeValue],
        status: Status,
        error: BaseException | None,
        error_text: str | None,
    ) -> None:
        """Record the attributes and the status on the span, and end it. If that fails, log the cause once."""
        span = self.span
        try:
            try:
                span.set_attributes(attributes)
                if error is not None and error_text is not None:
                    guarded("error of the call", self._record_exception, error, error_text)
                elif error_text is not None:
                    span.set_status(StatusCode.ERROR, error_text)
                elif status in _STATUS_ATTRIBUTES:
                    span.set_attributes({_STATUS_ATTRIBUTES[status]: True})
                if self.problems:
                    span.set_attribute(conventions.CAPTURE_ERROR, "; ".join(self.problems)[:SPAN_TEXT_LIMIT])
            finally:
                span.end()
        except Exception as problem:
            if must_be_raised(problem, "end of the span", None, NOT_TRACED, self.texts):
                raise

    def _describe_error(self, status: Status, error: BaseException | None) -> str | None:
        """Return an error's type and message as text. The message is redacted, because it may quote captured text."""
        if status != "error" or error is None:
            return None
        name = guarded("error type", lambda: clean(as_text(type(error).__name__), 200), problems=self.problems)
        message = guarded("error message", lambda: as_text(str(error)), problems=self.problems)
        message = self.privacy.screen("error", message, self.problems)
        return f"{name or 'error'}: {message}" if message else name or "error"

    def _record_exception(self, error: BaseException, error_text: str) -> None:
        """Record an exception event like OpenTelemetry's. Include message and stack trace only if text is allowed."""
        description, _, message = error_text.partition(": ")
        attributes = {"exception.type": guarded("error type", _qualified_type_name, error) or description}
        if self.privacy.shows_input and self.privacy.shows_output:
            attributes["exception.message"] = message[:SPAN_TEXT_LIMIT]
            if not self.privacy.redacts:
                stack = "".join(traceback.format_exception(error, limit=-_MAX_STACK_FRAMES))
                attributes["exception.stacktrace"] = clean(stack[-SPAN_TEXT_LIMIT:], SPAN_TEXT_LIMIT)
            description = error_text[: SPAN_TEXT_LIMIT // 8]
        self.span.set_status(StatusCode.ERROR, description)
        self.span.add_event("exception", attributes)


def _status_after(error: BaseException) -> Status:
    """Return the status of a call that raised an exception. A group of cancellations is a cancellation."""
    if issubclass(type(error), BaseExceptionGroup):
        statuses = {_status_after(part) for part in error.exceptions}  # type: ignore[attr-defined]  # of a group
        return "cancelled" if statuses == {"cancelled"} else "error"
    if issubclass(type(error), GeneratorExit):
        return "abandoned"
    classes = library_classes(type(error))
    return "cancelled" if classes & _CANCELLATIONS or _is_redirect(error, classes) else "error"


def _is_redirect(error: BaseException, classes: set[tuple[str, str]]) -> bool:
    """Return whether an exception is a web framework's, with a status that is not an error."""
    if not any(name == "HTTPException" for _, name in classes):
        return False
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return isinstance(status, int) and status < 400


def _qualified_type_name(error: BaseException) -> str:
    module = type(error).__module__
    name = as_text(type(error).__qualname__)
    return clean(name if module == "builtins" else f"{module}.{name}", 500)
