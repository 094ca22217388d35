"""One call of a decorated function, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from opentelemetry.context import (
    _RUNTIME_CONTEXT,
    _SUPPRESS_INSTRUMENTATION_KEY,
    Context,
    attach,
    create_key,
    get_current,
)
from opentelemetry.trace import Span, StatusCode, set_span_in_context

from germane.tracer import conventions
from germane.tracer.connection import SPAN_TEXT_LIMIT, current
from germane.tracer.guard import attempt, say_once
from germane.tracer.text import as_text, clean

if TYPE_CHECKING:
    from contextvars import Token

    from germane.exchange import Status
    from germane.tracer.connection import Connection
    from germane.tracer.handler_recording import HandlerRecording
    from germane.tracer.privacy import Privacy

CURRENT = create_key("germane.recording")
"""Key of OpenTelemetry's context under which the recording of the innermost handler stands."""


_ENDINGS: dict[type[BaseException], Status] = {asyncio.CancelledError: "cancelled", GeneratorExit: "abandoned"}
_MARKS = {"abandoned": conventions.ABANDONED, "cancelled": conventions.CANCELLED}
_FRAMES = 64
"""Frames of a stack trace that are shown, those nearest to its cause: writing them takes the caller's time."""
_process = object()
"""Another object in every forked child."""


def _forked() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Recording(ABC):
    """A call under way: its span, the context its body runs in, and what became of it.

    A wrapper runs each step of the body inside ``with recording:``, hands a result to :meth:`keep` or the chunks of a
    stream to :meth:`add`, and ends with :meth:`finish` or :meth:`fail`. An end may come twice and from another thread:
    the first counts.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_here",
        "_process",
        "_token",
        "context",
        "ended",
        "outer",
        "privacy",
        "problems",
        "span",
        "started",
    )

    def __init__(self, span: Span, here: Context, privacy: Privacy, outer: HandlerRecording | None) -> None:
        self.span = span
        self.privacy = privacy
        self.outer = outer
        """The recording of the handler around this call, if there is one."""
        self.ended = False
        self.problems: list[str] = []
        self.started = time.time_ns()
        self._clock = time.perf_counter()
        self._process = _process
        self._here = here
        self.context = set_span_in_context(span, here)

    def __enter__(self) -> None:
        """Begin a step of the body: what it does stands under this recording."""
        self._token = self.enter()

    def __exit__(self, *_raised: object) -> None:
        """End a step."""
        self.leave(self._token)

    def enter(self) -> Token[Context]:
        """Begin a step that others may overlap; :meth:`leave` it with the token."""
        return attach(self.context)

    def leave(self, token: Token[Context]) -> None:
        """End a step. What the body did to the context waits for its next step, and leaks into nobody meanwhile."""
        if not self.ended:
            self.context = get_current()
        try:
            _RUNTIME_CONTEXT.detach(token)
        except ValueError:  # a coroutine may be closed from outside of the context that it ran in
            return

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.perf_counter() - self._clock

    @property
    def under_way(self) -> bool:
        """Whether the call goes on, in this process: after a fork it is the parent's alone."""
        return not self.ended and self._process is _process

    @abstractmethod
    def keep(self, result: Any) -> None:
        """Take what the body returned; the call is over."""

    @abstractmethod
    def add(self, chunk: Any) -> None:
        """Take one chunk of a stream."""

    def expect_frames(self) -> None:  # noqa: B027 - most have no use for it
        """Be told that the stream to come consists of server-sent events."""

    def finish(self, status: Status = "ok", error: BaseException | None = None) -> None:
        """End the span and pass on what was captured."""
        if self.under_way:
            self.ended = True
            self.context = self._here  # its own leads back to it: what it captured would wait for the collector
            attempt("the end of a call", self._finish, status, error)

    def fail(self, error: BaseException) -> None:
        """End with what the body raised."""
        self.finish(_ENDINGS.get(type(error), "error"), error)

    @abstractmethod
    def _finish(self, status: Status, error: BaseException | None) -> None: ...

    def _end_span(self, status: Status, error: BaseException | None, told: str | None) -> None:
        """Note on the span how the call ended, and end it."""
        if error is not None and told is not None:
            attempt("the error of a call", self._show_error, error, told)
        elif status in _MARKS:
            self.span.set_attributes({_MARKS[status]: True})
        if self.problems:
            self.span.set_attribute(conventions.CAPTURE_ERROR, "; ".join(self.problems)[:SPAN_TEXT_LIMIT])
        self.span.end()

    def _told(self, status: Status, error: BaseException | None) -> str | None:
        """Return type and message of an error, the message screened as an answer is: it may quote one."""
        if status != "error" or error is None:
            return None
        name = attempt("the type of an error", _type_of, error, problems=self.problems) or "error"
        message = attempt("the message of an error", _message_of, error, problems=self.problems)
        message = self.privacy.screen("error", message, self.problems)
        return f"{name}: {message}" if message else name

    def _show_error(self, error: BaseException, told: str) -> None:
        """Show an error on the span, as OpenTelemetry does; its text only where texts may be shown."""
        kind, _, message = told.partition(": ")
        shown = {"exception.type": attempt("the type of an error", _full_type_of, error) or kind}
        if self.privacy.shows_input and self.privacy.shows_output:
            shown["exception.message"] = message[:SPAN_TEXT_LIMIT]
            if not self.privacy.redacts:
                trace = "".join(traceback.format_exception(error, limit=-_FRAMES))
                shown["exception.stacktrace"] = clean(trace[-SPAN_TEXT_LIMIT:], SPAN_TEXT_LIMIT)
            kind = told[: SPAN_TEXT_LIMIT // 8]
        self.span.set_status(StatusCode.ERROR, kind)
        self.span.add_event("exception", shown)


def place() -> tuple[Connection, Context, HandlerRecording | None] | None:
    """Return what a new recording is made from: connection, context and the recording of the handler it stands in.

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


def enclosing(here: Context | None = None) -> HandlerRecording | None:
    """Return the recording of the innermost handler that is still under way, if there is any."""
    found: HandlerRecording | None = (get_current() if here is None else here).get(CURRENT)  # type: ignore[assignment]  # a context holds objects
    while found is not None and not found.under_way:
        found = found.outer
    return found


def _type_of(error: BaseException) -> str:
    return clean(as_text(type(error).__name__), 200)


def _full_type_of(error: BaseException) -> str:
    module = type(error).__module__
    name = as_text(type(error).__qualname__)
    return clean(name if module == "builtins" else f"{module}.{name}", 500)


def _message_of(error: BaseException) -> str:
    return as_text(str(error))
