"""One call of a decorated function, from its start to its end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,
    Context,
    attach,
    create_key,
    detach,
    get_current,
    set_value,
)
from opentelemetry.trace import Span, StatusCode, set_span_in_context

from germane.tracer import conventions
from germane.tracer.connection import current
from germane.tracer.guard import attempt, say_once

if TYPE_CHECKING:
    from germane.exchange import Status
    from germane.tracer.connection import Connection
    from germane.tracer.handler_recording import HandlerRecording
    from germane.tracer.privacy import Privacy

CURRENT = create_key("germane.recording")
"""Key of OpenTelemetry's context under which the innermost recording stands."""


_ENDINGS: dict[type[BaseException], Status] = {asyncio.CancelledError: "cancelled", GeneratorExit: "abandoned"}
_MARKS = {"abandoned": conventions.ABANDONED, "cancelled": conventions.CANCELLED}


class Recording:
    """A call under way: its span, the context its body runs in, and what became of it.

    A wrapper runs each step of the body inside ``with recording:``, hands a result to :meth:`keep` or the chunks of a
    stream to :meth:`add`, and ends with :meth:`finish` or :meth:`fail`. An end may come twice and from another thread:
    the first counts.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_token",
        "context",
        "ended",
        "privacy",
        "problems",
        "root",
        "span",
        "started",
    )

    def __init__(self, span: Span, here: Context, privacy: Privacy, root: HandlerRecording | None) -> None:
        self.span = span
        self.privacy = privacy
        self.root = root
        """The recording of the outermost handler; None for a retrieval outside of any."""
        self.ended = False
        self.problems: list[str] = []
        self.started = time.time_ns()
        self._clock = time.perf_counter()
        self.context = set_value(CURRENT, self, set_span_in_context(span, here))

    def __enter__(self) -> None:
        """Begin a step of the body: what it does stands under this recording."""
        self._token = attach(self.context)

    def __exit__(self, *_raised: object) -> None:
        """End a step. What the body did to the context waits for its next step, and leaks into nobody meanwhile."""
        self.context = get_current()
        detach(self._token)

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.perf_counter() - self._clock

    def keep(self, result: Any) -> None:
        """Take what the body returned; the call is over."""
        raise NotImplementedError

    def add(self, chunk: Any) -> None:
        """Take one chunk of a stream."""
        raise NotImplementedError

    def expect_frames(self) -> None:
        """Be told that the stream to come consists of server-sent events."""

    def finish(self, status: Status = "ok", error: BaseException | None = None) -> None:
        """End the span and pass on what was captured."""
        if not self.ended:
            self.ended = True
            attempt("the end of a call", self._finish, status, error)

    def fail(self, error: BaseException) -> None:
        """End with what the body raised."""
        self.finish(_ENDINGS.get(type(error), "error"), error)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        raise NotImplementedError

    def _end_span(self, status: Status, error: BaseException | None, told: str | None) -> None:
        """Note on the span how the call ended, and end it."""
        if error is not None and told is not None:
            attempt("the error of a call", self._record_error, error, told)
        elif status in _MARKS:
            self.span.set_attributes({_MARKS[status]: True})
        if self.problems:
            self.span.set_attribute(conventions.CAPTURE_ERROR, "; ".join(self.problems))
        self.span.end()

    def _told(self, status: Status, error: BaseException | None) -> str | None:
        """Return type and message of an error, the message screened as an answer is: it may quote one."""
        if status != "error" or error is None:
            return None
        message = self.privacy.screen("error", attempt("the message of an error", str, error), self.problems)
        return f"{type(error).__name__}: {message}" if message else type(error).__name__

    def _record_error(self, error: BaseException, told: str) -> None:
        shown = told if self.privacy.shows_output and self.privacy.shows_input else type(error).__name__
        self.span.set_status(StatusCode.ERROR, shown)
        if shown is told and self.privacy.redact is None:
            self.span.record_exception(error)
        else:
            self.span.add_event("exception", {"exception.type": type(error).__qualname__, "exception.message": shown})


def place() -> tuple[Connection, Context, Recording | None] | None:
    """Return what a new recording is made from: connection, context and the recording it stands in.

    None where nothing is to be recorded: before ``germane.start()``, and in our own work.
    """
    connection = current()
    if connection is None:
        say_once("an observed handler was called, but germane.start() was not: nothing is captured")
        return None
    here = get_current()
    if here.get(_SUPPRESS_INSTRUMENTATION_KEY):
        return None
    return connection, here, enclosing(here)


def enclosing(here: Context | None = None) -> Recording | None:
    """Return the innermost recording that is still under way, if there is any."""
    found = (get_current() if here is None else here).get(CURRENT)
    return found if isinstance(found, Recording) and not found.ended else None
