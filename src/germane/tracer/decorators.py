"""The ``observe`` and ``retrieval`` decorators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodDescriptorType, MethodType, coroutine
from typing import Any, TypeVar, overload

from germane.arguments import explain_unknown_arguments
from germane.errors import UsageError
from germane.exchange import Capture, Redact
from germane.tracer.delivery import deliver, record_iterable_coroutine
from germane.tracer.guard import guarded
from germane.tracer.handler import Handler
from germane.tracer.handler_recording import start_handler_recording
from germane.tracer.known_types import pretends
from germane.tracer.privacy import REDACTED_ROUTES
from germane.tracer.retrieval_recording import Retriever, start_retrieval_recording
from germane.tracer.selectors import Selector, unwrap_partial
from germane.tracer.streams import StartRecording, async_generator_function, record_generator

F = TypeVar("F")
_PLAIN_DESCRIPTORS = (
    FunctionType,
    MethodType,
    BuiltinFunctionType,
    MethodDescriptorType,
    MemberDescriptorType,
    classmethod,
    staticmethod,
)
"""Types of attributes that can be read without running code, unlike properties."""
_routes: dict[str, None] = {}


def observed_routes() -> list[str]:
    """Return the routes of all observed handlers in this process, in the order in which they were decorated."""
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
    stream: type | tuple[type, ...] | None = ...,
    chunk: Selector | None = ...,
    join: Callable[[list[str]], str] | None = ...,
    redact: Redact | None = ...,
    capture: Capture | None = ...,
) -> Callable[[F], F]: ...


@explain_unknown_arguments
def observe(
    function: Any = None,
    /,
    *,
    route: str | None = None,
    question: Selector | None = None,
    answer: Selector | None = None,
    contexts: Selector | None = None,
    history: Selector | None = None,
    attributes: Mapping[str, Selector] | None = None,
    stream: type | tuple[type, ...] | None = None,
    chunk: Selector | None = None,
    join: Callable[[list[str]], str] | None = None,
    redact: Redact | None = None,
    capture: Capture | None = None,
) -> Any:
    """Open a span around a handler, and capture its question, answer and contexts as an exchange.

    The decorator never changes what the handler returns, raises or yields, and preserves its kind and signature. It
    works with functions, coroutine functions, generators, asynchronous generators, methods, and handlers that return a
    stream: a streaming response is returned with a recorded body, and any other iterator is replaced by a proxy with
    the same class. Lazy objects are returned without being evaluated. If observed handlers are nested, the outermost
    one creates the exchange. Apply the decorator directly above ``def``, below the decorators of web frameworks.

    Args:
        function: The handler, if the decorator is used without parentheses.
        route: Name under which trends group the exchanges. Defaults to the function's name.
        question: Selector for the question: a dotted path that begins with an argument's name, or a callable that
            takes the :class:`Call` or nothing. By default, the question is the argument named ``question``,
            ``query``, ``prompt``, ``message``, ``input`` or ``user_input``, or else the question in messages or another
            structured argument, or else the ``str`` argument that most likely asks.
        answer: Selector for the answer in the return value: a dotted path or a callable. By default, the text of the
            value, or its known part.
        contexts: Selector for the contexts in the return value.
        history: Selector for earlier messages in the arguments.
        attributes: Additional values to store with the exchange, by name. ``model``, ``prompt_version``, ``session``
            and ``user`` have their own columns.
        stream: Class or tuple of classes whose instances are streams. Generators, iterators and the streaming
            responses of common frameworks are recognized automatically.
        chunk: Selector for the text in a chunk of a stream. A dotted path parses a text chunk as JSON.
        join: Function that joins the texts of the chunks into an answer. By default, the answer is the last chunk if
            each chunk begins with the chunk before, and all chunks otherwise.
        redact: Called with each text before it is recorded. If it raises an exception, the text is dropped. The
            redaction of an enclosing observed handler is applied as well.
        capture: Where text may be recorded: ``"span+store"``, ``"store"`` or ``"none"``. It can only be as permissive
            as the ``capture`` setting. If observed handlers are nested, the strictest value applies.

    Raises:
        UsageError: The decorated object is not a function, or an option is invalid.
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, classmethod | staticmethod):
            return type(function)(decorate(function.__func__))
        check_decorable(function, "observe")
        handler = Handler(
            function,
            route=route,
            question=question,
            answer=answer,
            contexts=contexts,
            history=history,
            attributes=attributes,
            stream=stream,
            chunk=chunk,
            join=join,
            redact=redact,
            capture=capture,
        )
        _routes[handler.route] = None
        if handler.capture in {"store", "none"}:
            REDACTED_ROUTES.add(handler.route)
        return wrap(function, partial(start_handler_recording, handler))

    return decorate if function is None else decorate(function)


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


@explain_unknown_arguments
def retrieval(
    function: Any = None,
    /,
    *,
    source: str | None = None,
    query: Selector | None = None,
    contexts: Selector | None = None,
    content: Selector | None = None,
    id: Selector | None = None,
    score: Selector | None = None,
) -> Any:
    """Open a retriever span around a retrieval function. Its return value becomes the contexts of the exchange.

    Args:
        function: The function, if the decorator is used without parentheses.
        source: Name of the data source. Defaults to the function's name.
        query: Selector for the query in the arguments. The defaults are the same as for the question in
            :func:`observe`.
        contexts: Selector for the list of contexts in the return value. By default, the whole value.
        content: Selector for a context's text. By default, the context itself, or its ``page_content``, ``text`` or
            ``content``.
        id: Selector for a context's id.
        score: Selector for the score that the retriever gave a context.

    Raises:
        UsageError: The decorated object is not a function, or an option is invalid.
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, classmethod | staticmethod):
            return type(function)(decorate(function.__func__))
        check_decorable(function, "retrieval")
        retriever = Retriever(
            function, source=source, query=query, contexts=contexts, content=content, id=id, score=score
        )
        return wrap(function, partial(start_retrieval_recording, retriever))

    return decorate if function is None else decorate(function)


def check_decorable(function: Any, decorator: str) -> None:
    """Raise a usage error if an object is a class or not callable."""
    if isinstance(function, type) or not callable(function):
        raise UsageError(f"@germane.{decorator} decorates functions and methods, not {function!r:.100}")


def wrap(function: Callable[..., Any], start_recording: StartRecording) -> Callable[..., Any]:
    """Wrap a plain, coroutine, generator or async generator function in a recording function of the same kind."""

    def recorded(*args: Any, **kwargs: Any) -> Any:
        recording = guarded("start of the call", start_recording, args, kwargs)
        if recording is None:
            return function(*args, **kwargs)
        try:
            with recording:
                result = function(*args, **kwargs)
        except BaseException as error:
            recording.fail(error)
            raise
        return deliver(recording, result)

    async def recorded_coroutine(*args: Any, **kwargs: Any) -> Any:
        recording = guarded("start of the call", start_recording, args, kwargs)
        if recording is None:
            return await function(*args, **kwargs)
        try:
            with recording:
                result = await function(*args, **kwargs)
        except BaseException as error:
            recording.fail(error)
            raise
        return deliver(recording, result)

    def recorded_generator(*args: Any, **kwargs: Any) -> Any:
        body = function(*args, **kwargs)
        recording = guarded("start of the call", start_recording, args, kwargs)
        return (yield from (body if recording is None else record(recording, body)))

    if inspect.isasyncgenfunction(function):
        return named_like(function, async_generator_function(function, start_recording))
    if inspect.isgeneratorfunction(function):
        is_awaited = unwrap_partial(function).__code__.co_flags & inspect.CO_ITERABLE_COROUTINE
        record: Callable[..., Any] = record_iterable_coroutine if is_awaited else record_generator
        return named_like(function, coroutine(recorded_generator) if is_awaited else recorded_generator)
    return named_like(function, recorded_coroutine if inspect.iscoroutinefunction(function) else recorded)


def named_like(function: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Copy a function's name, signature and public attributes to its wrapper, and return the wrapper.

    For example, a function that is cached with :func:`functools.lru_cache` has the public attribute ``cache_clear``.
    """
    wraps(function)(wrapper)
    if isinstance(function, FunctionType | MethodType) or pretends(type(function)):
        return wrapper
    for name in dir(function):
        attribute = inspect.getattr_static(function, name)
        is_computed = hasattr(type(attribute), "__get__") and not isinstance(attribute, _PLAIN_DESCRIPTORS)
        if not name.startswith("__") and not is_computed and not hasattr(wrapper, name):
            setattr(wrapper, name, getattr(function, name))
    return wrapper
