"""An observed function and its options, compiled into functions that extract the data of an exchange from a call."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

from germane.errors import UsageError
from germane.exchange import Capture, Context, Message
from germane.language import asks
from germane.recognizers import QuestionValue
from germane.tracer import conventions
from germane.tracer.answers import answer_text, chunk_piece, read_text
from germane.tracer.contexts import ContextReader, first_present
from germane.tracer.events import Piece
from germane.tracer.guard import log_once
from germane.tracer.pieces import join_pieces
from germane.tracer.privacy import Privacy
from germane.tracer.questions import ASKS, candidates, is_secret, is_text, question_in
from germane.tracer.selectors import (
    Call,
    Selector,
    argument_reader,
    chunk_reader,
    is_async,
    signature_of,
    unwrap_partial,
    value_reader,
)
from germane.tracer.shapes import describe
from germane.tracer.text import NAME_LIMIT, as_text, clean, items_of

if TYPE_CHECKING:
    from germane.exchange import Redact
    from germane.tracer.connection import Connection

_CONTEXT_READER = ContextReader()
_VARIABLE = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
_MAX_ARGUMENTS = 100
"""Maximum number of positional arguments, and of extra keyword arguments, in which the question is looked up."""
_TEMPLATE = re.compile(r"\{\w*\}")
_MAX_LINE = 200
"""Maximum number of characters of a text that is not examined further."""
_KEYWORD_ONLY = sys.maxsize
"""Placeholder position for parameters that cannot be passed positionally."""


class Handler:
    """An observed function: its route, and functions that extract the data of an exchange from a call."""

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
        stream: type | tuple[type, ...] | None = None,
        chunk: Selector | None = None,
        join: Callable[[list[str]], str] | None = None,
        redact: Redact | None = None,
        capture: Capture | None = None,
    ) -> None:
        classes = stream if isinstance(stream, tuple) else (stream,)
        for option, value, is_valid, expected in (
            ("stream", stream, all(map(_is_iterable, classes)), "an iterable class, or a tuple of them"),
            ("capture", capture, capture in get_args(Capture), "'span+store', 'store' or 'none'"),
            ("route", route, isinstance(route, str), "a name"),
            ("attributes", attributes, isinstance(attributes, Mapping), "a mapping of names to selectors"),
            ("join", join, _is_synchronous(join), "a synchronous function that takes the texts of the chunks"),
            ("redact", redact, _is_synchronous(redact), "a synchronous function that takes a text"),
        ):
            if value is not None and not is_valid:
                raise UsageError(f"{option} must be {expected}, not {value!r:.100}")
        self.function = function
        self.signature = signature_of(function)
        self.route = clean(route or name_of(function), NAME_LIMIT)
        self.redact = redact
        self.capture = capture
        self.question_argument = QuestionArgument(self.signature, f"question of {self.route}")
        self.find_question = None if question is None else argument_reader(question)
        self.find_answer = None if answer is None else value_reader(answer)
        self.find_contexts = None if contexts is None else value_reader(contexts)
        self.find_history = None if history is None else argument_reader(history)
        self.find_attributes = {str(name): argument_reader(value) for name, value in (attributes or {}).items()}
        self.streams = () if stream is None else stream
        """Classes whose instances are streams."""
        self.find_chunk = None if chunk is None else chunk_reader(chunk)
        self.detects_sse = chunk is None or isinstance(chunk, str)
        """Whether a text stream that looks like server-sent events is parsed as server-sent events."""
        self.join = join or join_pieces
        self.on_question = f"question of {self.route}"
        self.on_answer = f"answer of {self.route}"
        self.on_chunk = f"chunk of {self.route}"
        self.needs_call = bool(self.find_question or self.find_attributes or self.find_history)
        """Whether a selector reads the arguments, in addition to the default search for the question."""
        self._privacy: Privacy | None = None
        self.span_name = f"{conventions.INVOKE_WORKFLOW} {self.route}"
        self.span_attributes = {
            conventions.SPAN_KIND: conventions.CHAIN,
            conventions.OPERATION_NAME: conventions.INVOKE_WORKFLOW,
            conventions.WORKFLOW_NAME: self.route,
        }

    def privacy(self, connection: Connection) -> Privacy:
        """Return the handler's privacy settings. They are cached until the tracer is connected again."""
        privacy = self._privacy
        if privacy is None or privacy.connection is not connection:
            privacy = self._privacy = Privacy(connection, self.redact, self.capture)
        return privacy

    def question(self, call: Call) -> str | None:
        """Extract the question from a call's arguments with the selector."""
        return None if self.find_question is None else text_or_none(self.find_question(call))

    def answer(self, result: Any) -> str | None:
        """Extract the answer from a return value."""
        if self.find_answer is None:
            return answer_text(result)
        selected = self.find_answer(result)  # text is taken as it is, even if it is JSON
        return as_text(selected) if issubclass(type(selected), str | bytes) else answer_text(selected)

    def contexts(self, result: Any) -> list[Context]:
        """Extract the contexts from a return value, if a selector is configured."""
        return [] if self.find_contexts is None else _CONTEXT_READER.read_all(self.find_contexts(result))

    def piece(self, chunk: Any, event: str = "") -> Piece | None:
        """Extract the text from one chunk of a stream, or from the data of an event."""
        if self.find_chunk is None:
            return chunk_piece(chunk, event)
        selected = self.find_chunk(chunk)
        return Piece(as_text(selected)) if issubclass(type(selected), str | bytes) else chunk_piece(selected)

    def joined(self, pieces: list[str]) -> str | None:
        """Join the texts of a stream's chunks into an answer."""
        text = as_text(self.join(pieces))
        return text if self.find_chunk is not None else read_text(text, may_be_sse=False)


def _is_iterable(kind: Any) -> bool:
    return isinstance(kind, type) and (hasattr(kind, "__iter__") or hasattr(kind, "__aiter__"))


def _is_synchronous(function: Any) -> bool:
    return callable(function) and not is_async(function)


class QuestionArgument:
    """Finds the question in the arguments: a text with a conventional name, a structured argument that contains the
    question, or else the text that most likely is one.

    If the function accepts ``**kwargs``, extra keyword arguments count as parameters. Enum members are not questions.
    """

    NAMES = ("question", "query", "prompt", "message", "input", "user_input")

    def __init__(self, signature: inspect.Signature | None, what: str = "question") -> None:
        parameters = {} if signature is None else dict(signature.parameters)
        is_open = signature is None or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        self._what = what
        self._names = tuple(parameters)
        self._skip = 1 if self._names[:1] in (("self",), ("cls",)) else 0
        self._variable = {name for name, parameter in parameters.items() if parameter.kind in _VARIABLE}
        declared = {name: parameters[name] for name in self.NAMES if name in parameters.keys() - self._variable}
        self._declared = [
            (name, _KEYWORD_ONLY if one.kind is one.KEYWORD_ONLY else self._names.index(name), one.default)
            for name, one in declared.items()
        ]
        """Name, position and default of the parameters with a conventional name."""
        self.is_typed = not declared.keys().isdisjoint(("question", "query"))
        """Whether a parameter's name says that its text is only the question."""
        self._is_alone = len(declared) == 1 and (self._names[self._skip :] == ("prompt",) or "prompt" not in declared)
        """Whether a text with the only conventional name is the question. A prompt may be an instruction."""
        self._extra = [(name, _KEYWORD_ONLY, None) for name in self.NAMES if is_open and name not in declared]
        """The same of the conventional names that can occur only among extra keyword arguments."""

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Return the question of a call."""
        found = self.find(args, kwargs)
        return self.first_text(args, kwargs) if found is None else found.text

    def plain(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Return the only argument with a conventional name if it is a short line of text, as in most calls."""
        if not self._is_alone:
            return None
        name, position, default = self._declared[0]
        value = args[position] if position < len(args) else kwargs.get(name, default)
        is_line = type(value) is str and len(value) < _MAX_LINE and "\n" not in value and "<" not in value
        return value if is_line and value[:1].isalnum() and " " in value and not is_secret(value) else None

    def find(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> QuestionValue | None:
        """Find the question by its name, or in messages, a state, a request body or another structured argument.

        If another text asks, a prompt that does not ask, or is a template, is an instruction.
        """
        arguments = dict(self.arguments(args, kwargs))
        prompt: Any = arguments.get("prompt")
        if is_text(prompt) and (_TEMPLATE.search(prompt) or not asks(prompt)):
            others = candidates((name, value) for name, value in arguments.items() if name != "prompt")
            if others and others[0][0] >= ASKS:
                return QuestionValue(others[0][2])
        for parameters in (self._declared, self._extra):
            if (text := self._first_of(_values(parameters, args, kwargs))) is not None:
                return QuestionValue(text)
        return question_in(arguments)

    def first_text(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Return the text that most likely is the question, unless another argument is a batch of questions."""
        arguments = list(self.arguments(args, kwargs))
        texts = [] if any(_is_batch(name, value) for name, value in arguments) else candidates(arguments)
        return self._first_of([(name, text) for _, name, text in texts], self._named(args, kwargs))

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the name and value of each argument, in the order of the parameters."""
        for position in range(self._skip, min(len(args), _MAX_ARGUMENTS)):
            name = self._names[position] if position < len(self._names) else ""
            yield f"argument {position + 1}" if not name or name in self._variable else name, args[position]
        declared = [name for name in self._names if name in kwargs]
        for name in (*declared, *islice((name for name in kwargs if name not in declared), _MAX_ARGUMENTS)):
            yield name, kwargs[name]

    def describe(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Say why a call has no question."""
        named = next((name for name, value in self._named(args, kwargs) if value is not None), None)
        if named is not None:
            return f"{named!r} is not a text that can be a question; select the text with question="
        arguments = [(name, value) for name, value in self.arguments(args, kwargs) if value is not None]
        batch = next((name for name, value in arguments if _is_batch(name, value)), None)
        if batch is not None:
            return f"{batch!r} is a batch: observe the function that answers one question"
        found = ", ".join(f"{name} ({describe(value)})" for name, value in arguments) or "a call without arguments"
        return f"found none in {found}; select it with question= or germane.set_question()"

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        return _values([*self._declared, *self._extra], args, kwargs)

    def _first_of(self, arguments: Iterable[tuple[str, Any]], others: Iterable[tuple[str, Any]] = ()) -> str | None:
        """Return the first argument that is text. Log once if there are others that may be the question."""
        texts = [argument for argument in arguments if is_text(argument[1]) and not is_secret(argument[1])]
        if not texts:
            return None
        taken, text = texts[0]
        names = dict.fromkeys(name for name, value in (*texts[1:], *others) if value is not None and name != taken)
        if names:
            choice = f"the {self._what} is {taken!r}, not {', '.join(names)}"
            log_once(f"{choice}: select another one with question= or query=", key=f"choice of the {self._what}")
        return str.__str__(text)


def _values(
    parameters: Iterable[tuple[str, int, Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    return [
        (name, args[position] if position < len(args) else kwargs.get(name, default))
        for name, position, default in parameters
    ]


def _is_batch(name: str, value: Any) -> bool:
    """Return whether an argument is a list of texts with the plural of a conventional name."""
    names = QuestionArgument.NAMES
    is_plural = name not in names and any(name.startswith(singular[:-1]) for singular in names)
    return is_plural and issubclass(type(value), list | tuple) and type(next(iter(value), None)) is str


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name, qualified by its class but not by an enclosing function."""
    function = unwrap_partial(function)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def read_history(value: Any) -> tuple[Message, ...]:
    """Convert earlier messages: pairs of role and text, mappings or objects with ``role`` and ``content``, or texts.

    Messages without text, such as assistant messages that only contain tool calls, are omitted.

    Raises:
        UsageError: A value has neither a role nor text, such as a coroutine that was not awaited.
    """
    messages = []
    for item in items_of(value):
        kind = type(item)  # isinstance() would evaluate a lazy object
        if kind is Message:
            messages.append(item)
        elif issubclass(kind, str):
            messages.append(Message("user", item))
        elif issubclass(kind, tuple | list) and len(item) == 2:
            messages.append(Message(as_text(item[0]), as_text(item[1])))
        elif (text := first_present(("content", "text"))(item)) is not None:
            role = first_present(("role", "type"))(item)
            messages.append(Message(as_text(role or "user"), as_text(text)))
        elif item is not None and first_present(("role", "type"))(item) is None:
            raise UsageError(f"{kind.__name__} is not a message: it has neither a role nor text")
    return tuple(messages)


def history_of(found: QuestionValue) -> tuple[Message, ...]:
    """Return the messages of the user and the assistant before a question."""
    return tuple(
        Message(message.role, message.text)
        for message in found.history
        if message.role in {"user", "assistant"} and message.text
    )


def text_or_none(value: Any) -> str | None:
    """Convert a selected value to text. Return None if the value is None."""
    return None if value is None else as_text(value)
