"""An observed function with its options, compiled to functions that read question, answer and the rest from a call."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.tracer import conventions
from germane.tracer.contexts import ContextReader, first_present
from germane.tracer.selectors import Call, Selector, argument_reader, chunk_reader, signature_of, value_reader
from germane.tracer.text import NAME_LIMIT, as_text, clean, items_of

if TYPE_CHECKING:
    from germane.tracer.connection import Capture, Redact

_CONTEXT_READER = ContextReader()
_KEYWORD_ONLY = sys.maxsize
"""Position of a parameter that is never passed positionally."""


class Handler:
    """An observed function: its route, and functions that read question, answer and the rest from a call."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        route: str | None = None,
        question: Selector | None = None,
        answer: Selector | None = None,
        contexts: Selector | None = None,
        history: Selector | None = None,
        attributes: Mapping[str, Selector] | None = None,
        chunk: Selector | None = None,
        join: Callable[[list[str]], str] | None = None,
        redact: Redact | None = None,
        capture: Capture | None = None,
    ) -> None:
        for option, value, valid, expected in (
            ("capture", capture, capture in {"span+store", "store", "none"}, "'span+store', 'store' or 'none'"),
            ("route", route, isinstance(route, str), "a name"),
            ("attributes", attributes, isinstance(attributes, Mapping), "a mapping of names to selectors"),
            ("join", join, callable(join), "a function that takes the chunks' texts"),
            ("redact", redact, callable(redact), "a function that takes a text"),
        ):
            if value is not None and not valid:
                raise UsageError(f"{option}={value!r:.100}: must be {expected}")
        self.function = function
        self.signature = signature_of(function)
        self.route = clean(route or name_of(function), NAME_LIMIT)
        self.redact = redact
        self.capture = capture
        self.question_argument = QuestionArgument(self.signature)
        self.find_question = None if question is None else argument_reader(question)
        self.find_answer = None if answer is None else value_reader(answer)
        self.find_contexts = None if contexts is None else value_reader(contexts)
        self.find_history = None if history is None else argument_reader(history)
        self.find_attributes = {str(name): argument_reader(value) for name, value in (attributes or {}).items()}
        self.find_chunk = None if chunk is None else chunk_reader(chunk)
        self.detects_sse = chunk is None or isinstance(chunk, str)
        """Whether a text stream that looks like server-sent events is parsed as such."""
        self.join = join or "".join
        self.on_question = f"question of {self.route}"
        self.on_answer = f"answer of {self.route}"
        self.on_chunk = f"a chunk of {self.route}"
        self.span_name = f"{conventions.INVOKE_WORKFLOW} {self.route}"
        self.span_attributes = {
            conventions.SPAN_KIND: conventions.CHAIN,
            conventions.OPERATION_NAME: conventions.INVOKE_WORKFLOW,
            conventions.WORKFLOW_NAME: self.route,
        }

    @property
    def needs_call(self) -> bool:
        """Whether selectors read the arguments, in addition to the default question."""
        return bool(self.find_question or self.find_attributes or self.find_history)

    def question(self, call: Call) -> str | None:
        """Return the question of a call."""
        if self.find_question is None:
            return self.question_argument(call.args, call.kwargs)
        return text_or_none(self.find_question(call))

    def answer(self, result: Any) -> str | None:
        """Return the answer in a return value."""
        return text_or_none(result if self.find_answer is None else self.find_answer(result))

    def contexts(self, result: Any) -> list[Context]:
        """Return the contexts in a return value, if a selector names them."""
        return [] if self.find_contexts is None else _CONTEXT_READER.read_all(self.find_contexts(result))

    def chunk(self, chunk: Any) -> str | None:
        """Return the text of one chunk of a stream."""
        return text_or_none(chunk if self.find_chunk is None else self.find_chunk(chunk))

    def joined(self, pieces: list[str]) -> str:
        """Join the texts of the chunks into an answer."""
        return as_text(self.join(pieces))


class QuestionArgument:
    """Finds the question in the arguments: a parameter with a conventional name, otherwise the first str argument."""

    NAMES = ("question", "query", "prompt", "message", "input", "user_input")

    def __init__(self, signature: inspect.Signature | None) -> None:
        names = () if signature is None else tuple(signature.parameters)
        self._names = names
        self._skip = 1 if names[:1] in (("self",), ("cls",)) else 0
        self._candidates = tuple(
            (name, _KEYWORD_ONLY if parameter.kind is parameter.KEYWORD_ONLY else names.index(name), parameter.default)
            for name in self.NAMES
            if signature is not None
            and (parameter := signature.parameters.get(name)) is not None
            and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        )

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        # issubclass() on the type, because isinstance() would call the value's own code, which may fail.
        for name, position, default in self._candidates:
            value = args[position] if position < len(args) else kwargs.get(name, default)
            if issubclass(type(value), str):
                return str.__str__(value)
        for value in args[self._skip :]:
            if issubclass(type(value), str):
                return str.__str__(value)
        if not kwargs:
            return None
        ordered = [name for name in self._names if name in kwargs]
        for name in (*ordered, *kwargs):
            if issubclass(type(kwargs[name]), str):
                return str.__str__(kwargs[name])
        return None


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name, qualified by its class but not by an enclosing function."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def read_history(value: Any) -> tuple[Message, ...]:
    """Read earlier messages: pairs of role and text, mappings or objects with ``role`` and ``content``, or texts.

    Messages without text, such as those of an assistant that only calls a tool, are omitted.
    """
    messages = []
    for item in items_of(value):
        if isinstance(item, Message):
            messages.append(item)
        elif isinstance(item, str):
            messages.append(Message("user", item))
        elif isinstance(item, tuple | list) and len(item) == 2:
            messages.append(Message(as_text(item[0]), as_text(item[1])))
        elif (text := first_present(("content", "text"))(item)) is not None:
            role = first_present(("role", "type"))(item)
            messages.append(Message(as_text(role or "user"), as_text(text)))
    return tuple(messages)


def text_or_none(value: Any) -> str | None:
    """Convert the value that a selector found to text. None stays None."""
    return None if value is None else as_text(value)
