"""Questions, answers and conversations in the values that frameworks record for their inputs and outputs.

A value is text or decoded JSON. The functions know the names that frameworks use, not the frameworks: a new
framework that calls its parts ``query`` and ``result`` needs no change here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from germane.recognizers.messages import (
    ChatMessage,
    final_answer,
    last_question,
    read_message,
    read_messages,
)
from germane.recognizers.text import MAX_DEPTH, is_text

QUESTION_KEYS: Final = (
    *("question", "query", "query_str", "user_question", "user_query", "user_input", "user_message", "user_prompt"),
    *("prompt", "message", "user_msg", "new_message", "input", "input_str", "text_input", "str_or_query_bundle"),
    *("query_bundle", "task"),
)
"""Names of a question, from the most to the least specific."""
_QUESTION_SUFFIXES: Final = ("question", "query")
_MESSAGES_KEYS: Final = ("messages", "chat_messages", "conversation", "contents")
INPUT_WRAPPERS: Final = (
    *("inputs", "data", "kwargs", "kwds", "args", "body", "request", "payload", "state", "params", "event"),
)
_ANSWER_KEYS: Final = (
    *("answer", "final_answer", "replies", "answers", "response", "reply"),
    *("final_response", "output_text", "final_output", "final_result"),
    *("output", "outputs", "result", "completion", "generation", "generations", "generated_text"),
    *("choices", "candidates", "message", "messages", "update", "combined_chunk_content", "raw"),
)
"""Names of an answer, from the most to the least specific."""
_ROLE_PREFIX: Final = "assistant: "
"""Beginning of LlamaIndex's messages that were converted to text."""
_CONTENT_KEYS: Final = ("content", "text", "data", "parts", "blocks")
"""Names of the text inside an answer. They mean something else outside of one."""
_PARTS_KEYS: Final = frozenset({"content", "parts", "blocks"})
"""Names of the parts of a message's content."""
_ALTERNATIVES: Final = frozenset({"replies", "answers", "generations", "choices", "candidates"})
"""Names of lists of alternative answers, of which the first is used."""
_STRONG_QUESTION_KEYS: Final = (*QUESTION_KEYS[:8], "q")
_STRONG_ANSWER_KEYS: Final = _ANSWER_KEYS[:10]
_HISTORY_KEYS: Final = ("chat_history", "history", "conversation_history", "message_history", "memory")
IGNORED_KEYS: Final = frozenset(
    {*_HISTORY_KEYS, "metadata", "meta", "config", "context", "contexts", "documents", "source_documents", "sources"}
    | {"source_nodes", "tools", "tags", "signature", "demos", "lm", "lm_kwargs", "usage", "additional_kwargs"}
)


class QuestionValue(NamedTuple):
    """A question with the conversation that it was found in."""

    text: str
    messages: tuple[ChatMessage, ...] = ()
    """The conversation that contains the question; empty if the question was found alone."""
    history: tuple[ChatMessage, ...] = ()
    """The messages before the question."""


def find_question(value: Any) -> QuestionValue | None:
    """Find the question in a recorded input. Return None if there is none."""
    return next(find_questions(value), None)


def names_question(value: Any) -> bool:
    """Return whether a recorded input has a value whose name says that it is the question."""
    return isinstance(value, dict) and any(name in value for name in _STRONG_QUESTION_KEYS)


def names_answer(value: Any) -> bool:
    """Return whether a recorded output has a value whose name says that it is the answer."""
    return isinstance(value, dict) and any(name in value for name in _STRONG_ANSWER_KEYS)


def is_component_output(value: Any) -> bool:
    """Return whether a recorded output maps the names of components to their outputs."""
    return isinstance(value, dict) and not any(name in value for name in _ANSWER_KEYS)


def find_questions(value: Any, depth: int = 0, *, is_named: bool = True) -> Iterator[QuestionValue]:
    """Yield the texts in a recorded input that may be the question, from the most to the least likely.

    ``is_named`` is whether the value's key or position identifies it as the question.
    """
    if isinstance(value, str):
        if is_named and is_text(value):
            yield QuestionValue(value.strip())
        return
    if depth > MAX_DEPTH or not isinstance(value, (dict, list)):
        return
    messages = read_messages(value)
    if messages is not None:
        index = last_question(messages)
        if index is not None:
            yield QuestionValue(messages[index].text.strip(), tuple(messages), tuple(messages[:index]))
            return
    if isinstance(value, dict):
        yield from _questions_in_object(value, depth)


def _questions_in_object(value: Mapping[Any, Any], depth: int) -> Iterator[QuestionValue]:
    """Yield the questions that the names in an object point to, from the most to the least specific name."""
    for key in (*QUESTION_KEYS, "q"):
        inner = value.get(key)
        for part in (inner, inner.get("text") if isinstance(inner, dict) else None):  # next to an id or files
            for found in find_questions(part, depth + 1):
                yield found if found.history else found._replace(history=_history_in(value))
    for key in _MESSAGES_KEYS:
        if key in value:
            yield from find_questions(value[key], depth + 1, is_named=False)
    for key, inner in value.items():
        if isinstance(key, str) and key.lower().endswith(_QUESTION_SUFFIXES) and isinstance(inner, str):
            for found in find_questions(inner, depth + 1):
                yield found._replace(history=_history_in(value))
    for key in INPUT_WRAPPERS:
        inner = value.get(key)
        if key == "args" and isinstance(inner, list):  # the positional arguments of a traced function
            arguments = (next(find_questions(item, depth + 1), None) for item in inner)
            inner = next((found.text for found in arguments if found is not None), None)
        if inner is not None:
            yield from find_questions(inner, depth + 1)
    yield from _questions_in_components(value, depth)


def _questions_in_components(value: Mapping[str, Any], depth: int) -> Iterator[QuestionValue]:
    """Yield the questions in the inputs of named components, such as ``{"retriever": {"query": "..."}}``."""
    for key, component in value.items():
        if key in IGNORED_KEYS or not isinstance(component, dict):
            continue
        for name in _STRONG_QUESTION_KEYS:
            if isinstance(component.get(name), str) and is_text(component[name]):
                yield QuestionValue(component[name].strip(), history=_history_in(component))
        if depth < MAX_DEPTH and "messages" in component:
            yield from find_questions(component["messages"], depth + 1, is_named=False)


def _history_in(value: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    for key in _HISTORY_KEYS:
        if key in value and (messages := read_messages(value[key])) is not None:
            return tuple(messages)
    return ()


def find_answer(value: Any, depth: int = 0, *, is_named: bool = True) -> str | None:
    """Find the answer in a recorded output. Return None if there is none."""
    if isinstance(value, str):
        text = value.strip().removeprefix(_ROLE_PREFIX).strip() if depth == 0 else value.strip()
        return text if is_named and is_text(text) else None
    if depth > MAX_DEPTH or not isinstance(value, (dict, list)):
        return None
    messages = read_messages(value)
    if messages is not None:
        return final_answer(messages)
    if isinstance(value, dict):
        return _answer_in_object(value, depth, (*_ANSWER_KEYS, *_CONTENT_KEYS) if depth and is_named else _ANSWER_KEYS)
    # A list of texts may be anything, such as chunks; a single object is usually the update of a graph's node.
    is_single = len(value) == 1 and not isinstance(value[0], str)
    return find_answer(value[0], depth + 1, is_named=False) if is_single else None


def _answer_in_object(value: Mapping[str, Any], depth: int, names: Iterable[str]) -> str | None:
    """Return the answer under one of the names, in the message of a response, or in a component's output."""
    if (found := _answer_named(value, depth, names)) is not None:
        return found
    if isinstance(value.get("content"), dict) and (messages := read_messages(value["content"])) is not None:
        return final_answer(messages)
    components = (inner for key, inner in value.items() if key not in IGNORED_KEYS and isinstance(inner, dict))
    answers = (_answer_named(component, depth, _STRONG_ANSWER_KEYS) for component in components)
    return next((answer for answer in answers if answer is not None), None)


def _answer_named(value: Mapping[str, Any], depth: int, names: Iterable[str]) -> str | None:
    for name in names:
        if name not in value:
            continue
        inner = value[name]
        if name in _ALTERNATIVES and isinstance(inner, list):
            inner = _first_alternative(inner)
        if name in _PARTS_KEYS and isinstance(inner, list) and len(inner) > 1 and all(map(_is_part, inner)):
            inner = {"role": "assistant", "content": inner}
        if (found := find_answer(inner, depth + 1)) is not None:
            return found
    return None


def _is_part(value: Any) -> bool:
    """Return whether a value is a part of a message's content, unlike a record with a text."""
    return isinstance(value, dict) and ("type" in value or "thought" in value or list(value) == ["text"])


def _first_alternative(alternatives: list[Any]) -> Any:
    first = alternatives[0] if alternatives else None
    while isinstance(first, list):
        first = first[0] if first else None
    message = read_message(first)
    return first if message is None else [first]
