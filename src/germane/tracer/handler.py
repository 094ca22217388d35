"""What a decorator was told about one function: how to read a call of it. Compiled once, used at every call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.exchange import Context, Turn
from germane.tracer import conventions
from germane.tracer.contexts import ContextReader, first_of
from germane.tracer.selectors import Call, Selector, argument_reader, chunk_reader, reader, signature_of
from germane.tracer.text import NAME_LIMIT, as_text, clean, items_of

if TYPE_CHECKING:
    from germane.tracer.connection import Capture, Redact


_CONTEXTS = ContextReader()


class Handler:
    """An observed function: its route, and how to read question, answer and the rest of a call."""

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
        if capture not in {None, "span+store", "store", "none"}:
            raise UsageError(f"capture={capture!r}: must be 'span+store', 'store' or 'none'")
        _expect("route", route, isinstance(route, str), "a name")
        _expect("attributes", attributes, isinstance(attributes, Mapping), "a mapping of names to selectors")
        _expect("join", join, callable(join), "a function of the chunks' texts")
        _expect("redact", redact, callable(redact), "a function of a text")
        self.function = function
        self.signature = signature_of(function)
        self.route = clean(route or name_of(function), NAME_LIMIT)
        self.redact = redact
        self.capture = capture
        self.first_text = FirstText(self.signature)
        self.find_question = None if question is None else argument_reader(question)
        self.find_answer = None if answer is None else reader(answer)
        self.find_contexts = None if contexts is None else reader(contexts)
        self.find_history = None if history is None else argument_reader(history)
        self.find_attributes = {str(name): argument_reader(value) for name, value in (attributes or {}).items()}
        self.find_chunk = None if chunk is None else chunk_reader(chunk)
        self.reads_frames = chunk is None or isinstance(chunk, str)
        """Whether a stream of text that looks like server-sent events is read as such, though nobody said it is."""
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
        """Whether more is read of a call than its first text."""
        return bool(self.find_question or self.find_attributes or self.find_history)

    def question(self, call: Call) -> str | None:
        """Read the question of a call."""
        if self.find_question is None:
            return self.first_text(call.args, call.kwargs)
        return text_or_none(self.find_question(call))

    def answer(self, result: Any) -> str | None:
        """Read the answer in what the handler returned."""
        return text_or_none(result if self.find_answer is None else self.find_answer(result))

    def contexts(self, result: Any) -> list[Context]:
        """Read the contexts in what the handler returned, where a selector says they are."""
        return [] if self.find_contexts is None else _CONTEXTS.all(self.find_contexts(result))

    def chunk(self, chunk: Any) -> str | None:
        """Read the text of one chunk of a stream."""
        return text_or_none(chunk if self.find_chunk is None else self.find_chunk(chunk))

    def joined(self, pieces: list[str]) -> str:
        """Join the texts of the chunks to an answer."""
        return as_text(self.join(pieces))


class FirstText:
    """Finds the first str argument, in the order of the signature."""

    def __init__(self, signature: inspect.Signature | None) -> None:
        names = () if signature is None else tuple(signature.parameters)
        self._names = names
        self._skip = 1 if names[:1] in (("self",), ("cls",)) else 0

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        for value in args[self._skip :]:
            if issubclass(type(value), str):  # isinstance() would ask the value itself, and that may go wrong
                return str.__str__(value)
        if not kwargs:
            return None
        ordered = [name for name in self._names if name in kwargs]
        for name in (*ordered, *kwargs):
            if issubclass(type(kwargs[name]), str):
                return str.__str__(kwargs[name])
        return None


def name_of(function: Callable[..., Any]) -> str:
    """Return the name a function is known by: qualified by its class, not by the function it was made in."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def read_turns(value: Any) -> tuple[Turn, ...]:
    """Read earlier messages: pairs of role and text, mappings or objects with ``role`` and ``content``, or texts.

    One without text, such as an assistant's that only calls a tool, is left out.
    """
    return tuple(turn for item in items_of(value) if (turn := _read_turn(item)) is not None)


def _expect(option: str, given: object, fits: bool, expected: str) -> None:  # noqa: FBT001 - said where it is found out
    if given is not None and not fits:
        raise UsageError(f"{option}={given!r:.100}: must be {expected}")


def text_or_none(value: Any) -> str | None:
    """Return what a selector found as text; None stays None."""
    return None if value is None else as_text(value)


def _read_turn(item: Any) -> Turn | None:
    if isinstance(item, Turn):
        return item
    if isinstance(item, str):
        return Turn("user", item)
    if isinstance(item, tuple | list) and len(item) == 2:
        return Turn(as_text(item[0]), as_text(item[1]))
    role, text = first_of(("role", "type"))(item), first_of(("content", "text"))(item)
    return None if text is None else Turn(as_text(role or "user"), as_text(text))
