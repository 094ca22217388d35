"""Chat messages in the formats of all known providers and frameworks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from germane.recognizers.text import MAX_DEPTH, is_hidden, is_representation

Role = Literal["user", "assistant", "system", "tool"]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("user", "human", "humanmessage", "humanmessagechunk", "gen_ai.user.message"), "user"),
    **dict.fromkeys(("assistant", "ai", "aimessage", "aimessagechunk", "model", "bot", "chatbot"), "assistant"),
    **dict.fromkeys(("gen_ai.assistant.message", "gen_ai.choice"), "assistant"),
    **dict.fromkeys(("system", "developer", "systemmessage", "gen_ai.system.message"), "system"),
    **dict.fromkeys(("tool", "function", "toolmessage", "functionmessage", "gen_ai.tool.message"), "tool"),
    **dict.fromkeys(("function_call_output", "tool_result"), "tool"),
}
_CONTENT_KEYS = ("content", "parts", "contents", "blocks", "_content", "text")
_TOOL_CONTENT_KEYS = (*_CONTENT_KEYS, "result", "response", "output")
_TEXT_TYPES = {"", "text", "output_text", "input_text", "content", "string"}
_CALL_TYPES = {"tool_call", "tool-call", "tool_use", "function_call", "functioncall", "server_tool_use"}
_CALL_KEYS = {"function_call", "functionCall", "toolUse"}
_CALL_ID_KEYS = ("tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "id")
_TOOL_NAME_KEYS = ("name", "tool_name", "toolName", "function.name")
_RESULT_TYPES = {"tool_call_response", "tool-result", "tool_result", "function_call_output", "function_response"}
_TOOL_RESULT_KEYS = {"function_response", "functionResponse", "toolResult"}
SEARCH_NAME = re.compile(r"search|retrieve|retrieval|docs|document|knowledge", re.IGNORECASE)
"""Names of tools and functions that search documents."""
_OPENING = frozenset("\"'#*@&%/\\\u00a1\u00bf\u2022\u00b7\u00a7\u2020\u2021")
"""Punctuation that may begin a text."""
PART_KEYS = frozenset({"type", "text", *_CALL_KEYS, *_TOOL_RESULT_KEYS})
"""Names of which each part of a message's content has one."""


class ToolUse(NamedTuple):
    """A tool call in a message, or its result."""

    call_id: str | None
    name: str | None
    result: Any = None

    @classmethod
    def read(cls, *values: Any) -> ToolUse:
        """Read a tool call or its result, whose fields may be in one of several nested objects."""
        fields = {key: inner for value in values if isinstance(value, Mapping) for key, inner in value.items()}
        call_id = next((fields[key] for key in _CALL_ID_KEYS if isinstance(fields.get(key), str)), None)
        name = next((fields[key] for key in _TOOL_NAME_KEYS if isinstance(fields.get(key), str)), None)
        return cls(call_id, name, next((fields[key] for key in _TOOL_CONTENT_KEYS if fields.get(key)), None))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message with its text. Parts other than text, such as images and reasoning, are omitted."""

    role: Role
    text: str
    tool_calls: tuple[ToolUse, ...] = ()
    tool_results: tuple[ToolUse, ...] = ()

    @property
    def is_question(self) -> bool:
        """Whether the message is a user's text."""
        return self.role == "user" and bool(self.text.strip())

    @property
    def is_answer(self) -> bool:
        """Whether the message is an assistant's answer rather than a step before a tool call."""
        is_step = self.tool_calls and not self.tool_results
        return self.role == "assistant" and bool(self.text.strip()) and not is_step


def read_messages(value: Any, depth: int = 0) -> list[ChatMessage] | None:
    """Read a list of messages, or a single message. Return None if the value is neither."""
    if depth > MAX_DEPTH:
        return None
    if (message := read_message(value)) is not None:
        return [message]
    if not isinstance(value, list) or not value:
        return None
    if len(value) == 1 and isinstance(value[0], list):  # LangChain's list of prompts
        return read_messages(value[0], depth + 1)
    messages = [message for item in value if (message := read_message(item)) is not None]
    return messages or None


def read_message(value: Any) -> ChatMessage | None:
    """Read one message. Return None if the value has no role."""
    if isinstance(value, (list, tuple)):  # LangChain accepts pairs of role and content
        is_pair = len(value) == 2 and all(isinstance(item, str) for item in value)
        role = role_of(value[0]) if is_pair else None
        return None if role is None else ChatMessage(role, value[1])
    if not isinstance(value, dict):
        return None
    nested = value.get("message")
    if isinstance(nested, dict):  # a choice
        return _build(role_of(nested.get("role"), value.get("event.name"), "assistant"), nested)
    kind = value.get("type")
    for key in ("data", "kwargs"):  # LangChain's dumps
        inner = value.get(key)
        if isinstance(inner, dict) and "content" in inner:
            names = value.get("id")
            constructor = names[-1] if isinstance(names, list) and names else None
            return _build(role_of(constructor, inner.get("type"), kind), inner)
    is_call = isinstance(kind, str) and kind.lower() in _CALL_TYPES
    names = value.get("role"), value.get("_role"), value.get("event.name")
    return _build(role_of(*names, "assistant" if is_call else kind), value)


def role_of(*names: Any) -> Role | None:
    """Return the standard role for the first known of a provider's or framework's role names, if any."""
    for name in names:
        if isinstance(name, str) and (role := _ROLES.get(name.lower())) is not None:
            return role
    return None


def _build(role: Role | None, value: Mapping[str, Any]) -> ChatMessage | None:
    if role is None:
        return None
    content = _Content()
    for key in _TOOL_CONTENT_KEYS if role == "tool" else _CONTENT_KEYS:
        if key in value:
            content.add(value[key])
            if any(map(str.strip, content.texts)):
                break
    calls = value.get("tool_calls") or value.get("function_call") or ()
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        content.calls.append(ToolUse.read(call, call.get("function") if isinstance(call, Mapping) else None))
    if str(value.get("type") or "").lower() in _CALL_TYPES:
        content.calls.append(ToolUse.read(value))
    if role == "tool" and not content.results:
        content.results.append(ToolUse.read(value))
    text = "\n".join(content.texts) if role == "tool" else join_parts(content.texts)
    is_empty = is_hidden(text) or not text.strip()
    return ChatMessage(role, "" if is_empty else text, tuple(content.calls), tuple(content.results))


def join_parts(texts: Sequence[str]) -> str:
    """Join the parts of a message's content, which are parts of one text if one continues another."""
    is_one = any(before[-1].isspace() or continues(after) for before, after in pairwise(texts))
    return ("" if is_one else "\n").join(texts)


def continues(text: str) -> bool:
    """Return whether a text begins like the rest of another: with a blank, or punctuation that ends something."""
    return text[0].isspace() or (unicodedata.category(text[0]) in {"Po", "Pe", "Pf"} and text[0] not in _OPENING)


class _Content:
    """The texts, tool calls and results of tools in the content of a message."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[ToolUse] = []
        self.results: list[ToolUse] = []

    def add(self, content: Any, depth: int = 0) -> None:
        if isinstance(content, str):
            if content:
                self.texts.append(content)
        elif isinstance(content, list) and depth <= MAX_DEPTH:
            for part in content:
                if not (isinstance(part, str) and is_representation(part)):
                    self.add(part, depth + 1)
        elif isinstance(content, dict) and depth <= MAX_DEPTH and content.get("thought") is not True:
            self._add_part(content, depth)  # anything but Gemini's reasoning

    def _add_part(self, part: Mapping[str, Any], depth: int) -> None:
        kind = part.get("type", part.get("block_type", part.get("kind")))
        kind = kind.lower() if isinstance(kind, str) else ""
        if kind in _CALL_TYPES or not _CALL_KEYS.isdisjoint(part):
            self.calls.append(ToolUse.read(part, *(part.get(key) for key in _CALL_KEYS)))
        elif kind in _RESULT_TYPES or not _TOOL_RESULT_KEYS.isdisjoint(part):
            self.results.append(ToolUse.read(part, *(part.get(key) for key in _TOOL_RESULT_KEYS)))
        elif kind in _TEXT_TYPES:
            for key in ("text", "content", "message_content", "parts", "value"):
                if key in part:
                    self.add(part[key], depth + 1)
                    return


def last_question(messages: Sequence[ChatMessage]) -> int | None:
    """Return the index of the last user message with text, if any."""
    return next((index for index in range(len(messages) - 1, -1, -1) if messages[index].is_question), None)


def final_answer(messages: Sequence[ChatMessage]) -> str | None:
    """Return the text of the assistant's last message, unless it belongs to an earlier turn or precedes a tool call."""
    for message in reversed(messages):
        if message.is_answer:
            return message.text.strip()
        is_empty = message.role == "assistant" and not message.tool_calls and not message.text
        if message.role != "system" and not is_empty:
            return None
    return None


def user_texts(messages: Iterable[ChatMessage]) -> list[str]:
    """Return the texts of the user's messages."""
    return [message.text for message in messages if message.is_question]


def search_results(messages: Iterable[ChatMessage]) -> list[Any]:
    """Return the results of the tools whose names say that they search documents, or whose names are unknown."""
    names, found = dict[str | None, str | None](), list[Any]()
    for message in messages:
        names |= {call.call_id: call.name for call in message.tool_calls}
        for used in message.tool_results:
            name = used.name or names.get(used.call_id)
            if used.result is not None and (name is None or SEARCH_NAME.search(name)):
                found.append(used.result)
    return found
