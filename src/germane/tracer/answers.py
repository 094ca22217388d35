"""Text extraction from answers and chunks, which may be plain text or objects from common libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from germane.errors import UsageError
from germane.tracer.known_types import decided_per_type, defines, library_classes
from germane.tracer.responses import is_response
from germane.tracer.shapes import STRUCTURED, Piece, answer_in, describe, is_event, is_structured, json_value, piece_in
from germane.tracer.text import as_text

TextReader = Callable[[Any], Any]


def answer_text(value: Any) -> str | None:
    """Return the text of an answer, or None if the answer is None.

    Raises:
        UsageError: The value is not text, and has no part that is known to be the answer.
    """
    if type(value) is str:
        return value if value[:1] not in STRUCTURED or json_value(value) is None else _answer_in(value)
    if value is None:
        return None
    if issubclass(type(value), bytes | bytearray | memoryview):
        return response_text(value)
    if issubclass(type(value), tuple) and value and is_response(type(value[0])):  # with a status or headers
        return answer_text(value[0])
    return _text(value, _text_readers(type(value))[0])


def chunk_piece(chunk: Any, event: str = "") -> Piece | None:
    """Return the text of a stream's chunk, or None if the chunk contains no text of the answer.

    Args:
        chunk: The chunk.
        event: Name of the event whose data the chunk is, if any.

    Raises:
        UsageError: The chunk is not text.
    """
    if chunk is None:
        return None
    kind = type(chunk)
    if kind is str:
        value = json_value(chunk) if chunk[:1] in STRUCTURED else None
        return piece_in(value, event) if is_event(value) else Piece(chunk, event)
    read = _text_readers(kind)[1]
    if read is _event_data:
        return chunk_piece(chunk.data, event or str(getattr(chunk, "event", None) or ""))
    if read is None and is_structured(kind):
        return piece_in(chunk, event)
    text = _text(chunk, read)
    return None if text is None else Piece(text, event)


def response_text(body: Any) -> str | None:
    """Return the answer text of a complete body, which may be JSON."""
    text = as_text(body)
    if text[:1] == '"' and type(value := json_value(f"[{text}]")) is list and len(value) == 1:
        return str(value[0])
    return (text if text[:1] not in STRUCTURED or json_value(text) is None else _answer_in(text)) or None


def _answer_in(value: Any) -> str:
    answer = answer_in(value)
    if answer is None:
        raise UsageError(f"found no answer in {describe(value)}; select it with answer=")
    return answer


def _text(value: Any, read: TextReader | None) -> str | None:
    if read is not None:
        text = read(value)
        return None if text is None else as_text(text)
    kind = type(value)
    if is_structured(kind):
        return _answer_in(value)
    try:
        return as_text(value)
    except UsageError as error:
        if (defines(kind, "__iter__") or defines(kind, "__aiter__")) and not defines(kind, "__len__"):
            raise UsageError(f"{error}; if it is a stream, pass its class with stream=") from None
        raise


def _message_text(content: Any) -> str | None:
    """Return the text of a message's content, which is a string or a list of strings and typed blocks."""
    if content is None or isinstance(content, str):
        return content
    parts = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else getattr(part, "text", None)
        parts.append(part if isinstance(part, str) else text)
    return "".join(part for part in parts if isinstance(part, str)) or None


def _first_choice(value: Any) -> Any:
    return value.choices[0] if value.choices else None


def _choice_text(value: Any, part: Literal["message", "delta"] = "message") -> str | None:
    choice = _first_choice(value)
    return None if choice is None else _message_text(getattr(choice, part).content)


_delta_text = partial(_choice_text, part="delta")


def _werkzeug_text(response: Any) -> str | None:
    if response.is_streamed or response.direct_passthrough:
        return None
    return response_text(b"".join(part.encode() if isinstance(part, str) else part for part in response.response))


def _event_data(event: Any) -> Any:
    return event.data


_ANSWERS: dict[tuple[str, str], TextReader] = {
    ("anthropic", "Message"): lambda message: _message_text(message.content),
    ("django", "FileResponse"): lambda _response: None,
    ("django", "HttpResponse"): lambda response: response_text(response.content),
    ("langchain_core", "BaseMessage"): lambda message: _message_text(message.content),
    ("litellm", "ModelResponse"): _choice_text,
    ("llama_index", "AgentChatResponse"): lambda response: response.response,
    ("llama_index", "ChatResponse"): lambda response: _message_text(response.message.content),
    ("llama_index", "CompletionResponse"): lambda response: response.text,
    ("llama_index", "Response"): lambda response: response.response,
    ("openai", "ChatCompletion"): _choice_text,
    ("openai", "ChatCompletionMessage"): lambda message: message.content,
    ("openai", "Completion"): lambda completion: getattr(_first_choice(completion), "text", None),
    ("openai", "Response"): lambda response: response.output_text,
    ("quart", "Response"): lambda response: response_text(response.response.data),
    ("starlette", "FileResponse"): lambda _response: None,
    ("starlette", "Response"): lambda response: response_text(response.body),
    ("werkzeug", "Response"): _werkzeug_text,
}
_CHUNKS: dict[tuple[str, str], TextReader] = {
    ("anthropic", "RawContentBlockDeltaEvent"): lambda event: getattr(event.delta, "text", None),
    ("anthropic", "BaseModel"): lambda _event: None,
    ("langchain_core", "BaseMessage"): lambda message: _message_text(message.content),
    ("litellm", "ModelResponseStream"): _delta_text,
    ("litellm", "ModelResponse"): _delta_text,
    ("llama_index", "ChatResponse"): lambda response: response.delta,
    ("llama_index", "CompletionResponse"): lambda response: response.delta,
    ("openai", "ChatCompletionChunk"): _delta_text,
    ("openai", "Completion"): lambda completion: getattr(_first_choice(completion), "text", None),
    ("openai", "ContentDeltaEvent"): lambda event: event.delta,
    ("openai", "ResponseTextDeltaEvent"): lambda event: event.delta,
    ("openai", "BaseModel"): lambda _event: None,
    ("sse_starlette", "ServerSentEvent"): _event_data,
}
"""Text readers for the chunks and events of streams, by package and class. Base classes come last and match events
without text."""


@decided_per_type
def _text_readers(kind: type) -> tuple[TextReader | None, TextReader | None]:
    """Return the functions that read an answer and a chunk of a type. They are None if the type is not known."""
    classes = library_classes(kind)
    answer, chunk = (
        next((read for name, read in readers.items() if name in classes), None) for readers in (_ANSWERS, _CHUNKS)
    )
    return answer, chunk or answer
