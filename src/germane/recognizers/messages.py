"""Chat messages in the formats of all known providers and frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from germane.recognizers.text import MAX_DEPTH, is_hidden, is_representation

Role = Literal["user", "assistant", "system", "tool"]

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "gen_ai.user.message": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.choice": "assistant",
    "system": "system",
    "developer": "system",
    "systemmessage": "system",
    "gen_ai.system.message": "system",
    "tool": "tool",
    "function": "tool",
    "toolmessage": "tool",
    "functionmessage": "tool",
    "function_call_output": "tool",
    "tool_result": "tool",
    "gen_ai.tool.message": "tool",
}
_TEXT_TYPES = {"", "text", "output_text", "input_text", "content", "string"}
_CALL_TYPES = {"tool_call", "tool-call", "tool_use", "function_call", "functioncall", "server_tool_use"}
_RESULT_TYPES = {"tool_call_response", "tool-result", "tool_result", "function_call_output", "function_response"}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message with its text. Parts other than text, such as images and reasoning, are omitted."""

    role: Role
    text: str
    calls_tool: bool = False
    """Whether the message contains a tool call."""
    has_tool_result: bool = False
    tool_name: str | None = None
    """Name of the tool whose result this is, if known."""

    @property
    def is_final(self) -> bool:
        """Whether an assistant's message is an answer rather than a step before a tool call."""
        return bool(self.text) and (not self.calls_tool or self.has_tool_result)


def read_messages(value: Any, depth: int = 0) -> list[ChatMessage] | None:
    """Read a list of messages, or a single message. Return None if the value is neither."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        message = read_message(value)
        return None if message is None else [message]
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
        role = role_of(nested.get("role")) or role_of(value.get("event.name")) or "assistant"
        return _build(role, nested)
    kind = value.get("type")
    for key in ("data", "kwargs"):  # LangChain's dumps
        inner = value.get(key)
        if isinstance(inner, dict) and "content" in inner:
            names = value.get("id")
            constructor = names[-1] if isinstance(names, list) and names else None
            role = role_of(constructor) or role_of(inner.get("type")) or role_of(kind)
            return None if role is None else _build(role, inner)
    role = role_of(value.get("role")) or role_of(value.get("_role")) or role_of(value.get("event.name"))
    if role is None and isinstance(kind, str):
        is_call = kind.lower() in _CALL_TYPES
        role = "assistant" if is_call else role_of(kind)
    return None if role is None else _build(role, value)


def role_of(name: Any) -> Role | None:
    """Return the standard role for a provider's or framework's role name, or None if the name is unknown."""
    return _ROLES.get(name.lower()) if isinstance(name, str) else None


def _build(role: Role, value: Mapping[str, Any]) -> ChatMessage:
    texts: list[str] = []
    kinds: set[str] = set()
    for key in ("content", "parts", "contents", "blocks", "_content", "text", "result", "response", "output"):
        if key in {"result", "response", "output"} and role != "tool":
            continue
        if key in value:
            _collect(value[key], texts, kinds, 0)
            if texts:
                break
    own_kind = str(value.get("type") or "").lower()
    calls = bool(value.get("tool_calls") or value.get("function_call") or own_kind in _CALL_TYPES or "call" in kinds)
    has_result = role == "tool" or "result" in kinds
    name = value.get("name") or value.get("tool_name")
    if role == "user" and has_result and not texts:
        role = "tool"
    text = "\n".join(texts)
    return ChatMessage(
        role, "" if is_hidden(text) else text, calls, has_result, name if isinstance(name, str) else None
    )


def _collect(content: Any, texts: list[str], kinds: set[str], depth: int) -> None:
    """Append the texts in a message's content to ``texts``, and add the kinds of its other parts to ``kinds``."""
    if isinstance(content, str):
        if content.strip():
            texts.append(content)
    elif depth > MAX_DEPTH:
        return
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str) and is_representation(part):
                continue
            _collect(part, texts, kinds, depth + 1)
    elif isinstance(content, dict) and content.get("thought") is not True:  # Gemini's reasoning
        kind = content.get("type", content.get("block_type", content.get("kind")))
        kind = kind.lower() if isinstance(kind, str) else ""
        if kind in _CALL_TYPES or "function_call" in content or "functionCall" in content or "toolUse" in content:
            kinds.add("call")
        elif kind in _RESULT_TYPES or "function_response" in content or "toolResult" in content:
            kinds.add("result")
        elif kind in _TEXT_TYPES:
            for key in ("text", "content", "message_content", "parts", "value"):
                if key in content:
                    _collect(content[key], texts, kinds, depth + 1)
                    return


def last_question(messages: Sequence[ChatMessage]) -> int | None:
    """Return the index of the last user message with text, if any."""
    return next((index for index in range(len(messages) - 1, -1, -1) if _is_question(messages[index])), None)


def final_answer(messages: Sequence[ChatMessage]) -> str | None:
    """Return the text of the assistant's last message, unless it belongs to an earlier turn or precedes a tool call."""
    for message in reversed(messages):
        if message.role == "assistant":
            if message.is_final:
                return message.text
            if message.calls_tool or message.text:
                return None
        elif message.role != "system":
            return None
    return None


def user_texts(messages: Iterable[ChatMessage]) -> list[str]:
    """Return the texts of the user's messages."""
    return [message.text for message in messages if _is_question(message)]


def _is_question(message: ChatMessage) -> bool:
    return message.role == "user" and bool(message.text.strip())
