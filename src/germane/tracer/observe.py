"""The decorators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, overload

from germane.tracer import handler_recording
from germane.tracer import retrieval as retrieval_recording
from germane.tracer.connection import Capture, Redact
from germane.tracer.handler import Handler
from germane.tracer.privacy import QUIET_ROUTES
from germane.tracer.retrieval import Retriever
from germane.tracer.selectors import Selector
from germane.tracer.wrapping import check, wrap

F = TypeVar("F")
_routes: dict[str, None] = {}


def routes() -> list[str]:
    """Return the routes of all handlers decorated in this process, in the order of decoration."""
    return list(_routes)


@overload
def observe(function: F, /) -> F: ...


@overload
def observe(
    *,
    route: str | None = ...,
    question: Selector | None = ...,
    answer: Selector | None = ...,
    contexts: Selector | None = ...,
    history: Selector | None = ...,
    attributes: Mapping[str, Selector] | None = ...,
    chunk: Selector | None = ...,
    join: Callable[[list[str]], str] | None = ...,
    redact: Redact | None = ...,
    capture: Capture | None = ...,
) -> Callable[[F], F]: ...


def observe(function: Any = None, /, **options: Any) -> Any:
    """Open a span around a handler and capture question, answer and contexts.

    It never changes what the handler returns, raises or yields, and keeps its kind and signature. Works on functions,
    coroutine functions, generators, asynchronous generators, methods, and on handlers that return a stream: a streaming
    response keeps its body, recorded; an iterator that is no generator comes back as a stand-in of its class. Of nested
    handlers the outermost yields the exchange. Put it directly above ``def``, under the decorators of web frameworks.

    Args:
        function: The handler, when the decorator is used without parentheses.
        route: Name that trends group by; the function's name by default.
        question: Where the question is: a dotted path that begins with an argument's name, or a callable that takes the
            :class:`Call` or nothing. By default the first str argument.
        answer: Where the answer is in what the handler returns: a dotted path or a callable. By default all of it.
        contexts: Where the contexts are in what the handler returns.
        history: Where earlier turns are among the arguments.
        attributes: More to keep with the exchange, by name. ``model``, ``prompt_version``, ``session`` and ``user``
            have columns of their own.
        chunk: Where the text is in a chunk of a stream; a dotted path looks into a chunk of text as JSON.
        join: How the texts of the chunks make an answer; ``"".join`` by default.
        redact: Called with each text before it goes anywhere; a text for which it fails is dropped. Of nested handlers
            the outer's is called as well.
        capture: Where text may go: ``"span+store"``, ``"store"`` or ``"none"``. Of nested handlers the stricter holds.

    Raises:
        UsageError: what is decorated is no function, or an option makes no sense.
    """
    if function is None:
        return partial(_observe, **options)
    return _observe(function, **options)


def _observe(function: Any, **options: Any) -> Any:
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_observe(function.__func__, **options))
    check(function, "observe")
    handler = Handler(function, **options)
    _routes[handler.route] = None
    if handler.capture in {"store", "none"}:
        QUIET_ROUTES.add(handler.route)
    return wrap(function, partial(handler_recording.begin, handler))


@overload
def retrieval(function: F, /) -> F: ...


@overload
def retrieval(
    *,
    source: str | None = ...,
    query: Selector | None = ...,
    contexts: Selector | None = ...,
    content: Selector | None = ...,
    id: Selector | None = ...,
    score: Selector | None = ...,
) -> Callable[[F], F]: ...


def retrieval(function: Any = None, /, **options: Any) -> Any:
    """Open a retriever span around a retrieval function; what it returns becomes the contexts of the exchange.

    Args:
        function: The function, when the decorator is used without parentheses.
        source: Name of what is searched; the function's name by default.
        query: Where the query is among the arguments; by default the first str argument.
        contexts: Where the list of contexts is in what the function returns; by default it is that list.
        content: Where the text is in one of them; by default itself, or its ``page_content``, ``text`` or ``content``.
        id: Where its id is.
        score: Where the retriever's figure for it is.

    Raises:
        UsageError: what is decorated is no function, or an option makes no sense.
    """
    if function is None:
        return partial(_retrieval, **options)
    return _retrieval(function, **options)


def _retrieval(function: Any, **options: Any) -> Any:
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_retrieval(function.__func__, **options))
    check(function, "retrieval")
    return wrap(function, partial(retrieval_recording.begin, Retriever(function, **options)))
