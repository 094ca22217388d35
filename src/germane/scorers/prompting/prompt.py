"""Prompt templates in ``prompts/``, and preparation of an exchange's texts for the judge.

A template is a text file with a version, followed by messages. Texts are sanitized and truncated, and repetitions of
the question are removed from the answer.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from germane.exchange import Exchange, Message
from germane.scorers.base.text import is_blank, strip_control_characters, truncate_utf8

_MESSAGE = re.compile(r"^--- (system|user|assistant)\n", re.MULTILINE)
_SECTION = re.compile(r"\{#(\w+)\}(.*?)\{/\1\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_DELIMITER_KEY = secrets.token_bytes(16)
MAX_ANSWER_BYTES = 16_000
"""Maximum size of the answer. No tokenizer produces more tokens than bytes."""
MAX_QUESTION_BYTES = 4_000
MAX_CONTEXTS_BYTES = 32_000
"""Maximum total size of all contexts. Contexts have equal shares. Space that short contexts do not use goes to the
others."""
MAX_MESSAGES = 4
"""Maximum number of earlier messages shown to the judge; the latest are kept."""
MAX_MESSAGE_BYTES = 1_000
MIN_ECHO_WORDS = 3
"""Minimum length of a question to remove from the answer. The words of shorter questions may belong to the answer."""
_PREFIX_WORDS = 8
_WORD = re.compile(r"\w+")
_CLOSING = re.compile(r"[^\w\n]*[?!.:;\uff1f\u3002\u061f][^\w\n]*")


@dataclass(frozen=True)
class Prompt:
    """A prompt template: messages with placeholders."""

    version: str
    messages: tuple[Message, ...]
    text: str
    """The content of the file, which is part of the fingerprint."""

    def fill(self, **values: str) -> list[Message]:
        """Return the messages, with their placeholders replaced.

        Each ``{name}`` is replaced, and each ``{#name}...{/name}`` with an empty value is removed.

        Placeholders inside values are not replaced.
        """

        def fill_text(text: str) -> str:
            kept = _SECTION.sub(lambda section: section[2] if values.get(section[1]) else "", text)
            return _PLACEHOLDER.sub(lambda placeholder: values.get(placeholder[1], placeholder[0]), kept)

        return [Message(message.role, fill_text(message.content)) for message in self.messages]


@cache
def load_prompt(name: str) -> Prompt:
    """Load the prompt in ``prompts/<name>.txt``."""
    text = (files("germane.scorers.prompting") / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    head, *parts = _MESSAGE.split(text)
    messages = tuple(Message(role, content.strip("\n")) for role, content in zip(parts[::2], parts[1::2], strict=True))
    return Prompt(version=head.removeprefix("version:").strip(), messages=messages, text=text)


def delimiter_for(*texts: str) -> str:
    """Return a delimiter of eight hexadecimal digits that the authors of the texts cannot predict.

    Within a process, identical texts get the same delimiter, so that identical requests can be coalesced.
    """
    digest = hashlib.blake2b(key=_DELIMITER_KEY, digest_size=4)
    for text in texts:
        digest.update(len(text).to_bytes(8))
        digest.update(text.encode("utf-8", "replace"))
    return digest.hexdigest()


@dataclass(frozen=True)
class PromptInputs:
    """The texts of an exchange that a prompt may include."""

    question: str
    answer: str
    contexts: tuple[str, ...] = ()
    """The non-blank contexts, in order."""
    history: str = ""
    """The latest of the earlier messages, one per line; empty if there are none."""
    truncated: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Truncated texts by name, each with the number of characters ``shown`` and the total number (``of``)."""
    question_echo_removed: bool = False
    """Whether repetitions of the question were removed from the answer."""

    @property
    def is_only_question_echo(self) -> bool:
        """Whether the answer only repeats the question."""
        return self.question_echo_removed and not any(character.isalnum() for character in self.answer)

    def template_values(self, **more: str) -> dict[str, str]:
        """Return the values for a prompt: question, answer, history, an unpredictable delimiter, and ``more``."""
        values = {"question": self.question, "answer": self.answer, "history": self.history, **more}
        return {**values, "fence": delimiter_for(*values.values())}

    def details(self, *truncated: Mapping[str, Mapping[str, int]]) -> dict[str, object]:
        """Return the changes made to the texts, to store in a score's details.

        ``truncated`` adds further truncations.
        """
        cut = {name: dict(sizes) for each in (*truncated, self.truncated) for name, sizes in each.items()}
        details: dict[str, object] = {"cut": cut} if cut else {}
        return {**details, "copies_removed": True} if self.question_echo_removed else details


def build_prompt_inputs(
    exchange: Exchange,
    *,
    remove_echo: bool = True,
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    include_contexts: bool = True,
) -> PromptInputs:
    """Return the sanitized and truncated texts. ``remove_echo`` removes repetitions of the question from the answer."""
    question = strip_control_characters(exchange.question or "")
    original_answer = strip_control_characters(exchange.answer or "")
    answer = remove_question_echo(original_answer, question) if remove_echo else original_answer
    contexts = [
        strip_control_characters(context.text)
        for context in exchange.contexts
        if include_contexts and not is_blank(context.text)
    ]
    shown_contexts = _truncate_together(contexts, MAX_CONTEXTS_BYTES)
    texts = {
        "question": (truncate_utf8(question, MAX_QUESTION_BYTES), question),
        "answer": (truncate_utf8(answer, max_answer_bytes), answer),
        **{f"context {n}": pair for n, pair in enumerate(zip(shown_contexts, contexts, strict=True))},
    }
    messages = [message for message in exchange.history if not is_blank(message.content)][-MAX_MESSAGES:]
    return PromptInputs(
        question=texts["question"][0],
        answer=texts["answer"][0],
        contexts=tuple(shown_contexts),
        history="\n".join(
            f"{strip_control_characters(message.role)}: "
            + truncate_utf8(" ".join(strip_control_characters(message.content).split()), MAX_MESSAGE_BYTES)
            for message in messages
        ),
        truncated={
            name: {"shown": len(shown), "of": len(whole)} for name, (shown, whole) in texts.items() if shown != whole
        },
        question_echo_removed=answer != original_answer,
    )


def remove_question_echo(answer: str, question: str) -> str:
    """Return the answer with every repetition of the question, including its closing punctuation, replaced by a space.

    A repetition contains all words of the question in order; case and punctuation may differ. Paraphrases are kept. The
    running time is proportional to the sum of the lengths of the texts, not to their product.
    """
    question_words = [word.casefold() for word in _WORD.findall(question)]
    if len(question_words) < MIN_ECHO_WORDS:
        return answer
    # A cheap check that avoids splitting most long answers into words.
    folded = answer.casefold()
    if not all(word in folded for word in question_words[:_PREFIX_WORDS]):
        return answer
    answer_words = list(_WORD.finditer(answer))
    pieces, start = [], 0
    for first in _find_sequence([match[0].casefold() for match in answer_words], question_words):
        pieces.append(answer[start : answer_words[first].start()])
        start = answer_words[first + len(question_words) - 1].end()
        if closing := _CLOSING.match(answer, start):
            start = closing.end()
    return " ".join([*pieces, answer[start:]]) if pieces else answer


def _find_sequence(words: list[str], sequence: list[str]) -> list[int]:
    """Return the indexes at which ``sequence`` occurs in ``words``, found by ``str.find`` in texts with a word per
    line.
    """
    text, target = "".join(f"{word}\n" for word in words), "".join(f"{word}\n" for word in sequence)

    def find(start: int) -> int:
        """Return the position of ``target`` at the start of a line, or -1."""
        if text.startswith(target, start):
            return start
        position = text.find("\n" + target, start)
        return position + 1 if position >= 0 else -1

    index, start, indexes = 0, 0, []
    while (position := find(start)) >= 0:
        index += text.count("\n", start, position)
        indexes.append(index)
        index, start = index + len(sequence), position + len(target)
    return indexes


def _truncate_together(texts: list[str], max_bytes: int) -> list[str]:
    """Return the texts, truncated to a common limit. Short texts are kept in full."""
    remaining, truncated = max_bytes, [""] * len(texts)
    shortest_first = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for unassigned, index in zip(range(len(texts), 0, -1), shortest_first, strict=True):
        truncated[index] = truncate_utf8(texts[index], remaining // unassigned)
        remaining -= len(truncated[index].encode("utf-8", "replace"))
    return truncated
