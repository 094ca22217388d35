"""Text extraction from answers and chunks, which may be plain text or objects from common libraries."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from germane.errors import UsageError
from germane.tracer.known_types import decided_per_type, defines, library_classes
from germane.tracer.text import as_text

TextReader = Callable[[Any], Any]
_JSON_KEYS = ("answer", "response", "text", "output", "result", "content", "message")
"""Keys under which a JSON response may contain the answer."""


def answer_text(value: Any) -> str | None:
    """Return the text of an answer, or None if the answer is None.

    Raises:
        UsageError: The value is not text.
    """
    if value is None or type(value) is str:
        return value
    return _text(value, _text_readers(type(value))[0])


def chunk_text(chunk: Any) -> str | None:
    """Return the text of a stream's chunk, or None if the chunk is None or an object of a known type without text.

    Raises:
        UsageError: The chunk is not text.
    """
    if chunk is None or type(chunk) is str:
        return chunk
    return _text(chunk, _text_readers(type(chunk))[1])


def response_text(body: Any) -> str | None:
    """Return the answer text of a complete body.

    A JSON body must be a string, or an object with exactly one string under a known key.
    """
    text = as_text(body)
    if text[:1] in {'"', "{"}:
        try:
            value = json.loads(text)
        except ValueError:
            return text
        texts = [value.get(key) for key in _JSON_KEYS] if type(value) is dict else [value]
        answers = [answer for answer in texts if isinstance(answer, str)]
        if len(answers) == 1:
            return answers[0]
    return text or None


def _text(value: Any, read: TextReader | None) -> str | None:
    if read is not None:
        text = read(value)
        return None if text is None else as_text(text)
    try:
        return as_text(value)
    except UsageError as error:
        kind = type(value)
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
    ("sse_starlette", "ServerSentEvent"): lambda event: event.data,
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
