"""Prompt templates in ``prompts/``: text files with a version, followed by messages."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from germane.exchange import Message

_MESSAGE = re.compile(r"^--- (system|user|assistant)\n", re.MULTILINE)
_SECTION = re.compile(r"\{#(\w+)\}(.*?)\{/\1\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_DELIMITER_KEY = secrets.token_bytes(16)


@dataclass(frozen=True)
class Prompt:
    """Messages with placeholders."""

    version: str
    messages: tuple[Message, ...]
    text: str
    """The unchanged file, which is part of the fingerprint."""

    def fill(self, **values: str) -> list[Message]:
        """Replace each ``{name}``, and drop ``{#name}...{/name}`` if the value is empty.

        Placeholders inside values are not replaced.
        """

        def fill_text(text: str) -> str:
            kept = _SECTION.sub(lambda section: section[2] if values.get(section[1]) else "", text)
            return _PLACEHOLDER.sub(lambda placeholder: values.get(placeholder[1], placeholder[0]), kept)

        return [Message(message.role, fill_text(message.content)) for message in self.messages]


@cache
def load_prompt(name: str) -> Prompt:
    """Load ``prompts/<name>.txt``."""
    text = (files("germane.scorers.prompting") / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    head, *parts = _MESSAGE.split(text)
    messages = tuple(Message(role, content.strip("\n")) for role, content in zip(parts[::2], parts[1::2], strict=True))
    return Prompt(version=head.removeprefix("version:").strip(), messages=messages, text=text)


def delimiter_for(*texts: str) -> str:
    """Return eight hexadecimal digits that the authors of the texts cannot predict.

    Equal texts get equal delimiters within one process, so that equal requests can be coalesced.
    """
    digest = hashlib.blake2b(key=_DELIMITER_KEY, digest_size=4)
    for text in texts:
        digest.update(len(text).to_bytes(8))
        digest.update(text.encode("utf-8", "replace"))
    return digest.hexdigest()
