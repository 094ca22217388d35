"""Privacy settings for captured text: redaction, truncation, and where it may be recorded."""

from __future__ import annotations

from types import CoroutineType
from typing import TYPE_CHECKING

from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.tracer.guard import guarded
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from germane.tracer.connection import Capture, Connection, Redact

REDACTED_ROUTES: set[str] = set()
"""Routes whose handlers keep text off spans. Explanations of their scores, which may quote it, are also kept off."""
_STRICTNESS = ("span+store", "store", "none")


class Privacy:
    """The privacy settings for one handler: its own, or else those of the connection."""

    __slots__ = ("capture", "connection", "redacts", "shows_input", "shows_output")

    def __init__(self, connection: Connection, redact: Redact | None = None, capture: Capture | None = None) -> None:
        self.connection = connection
        self.capture: Capture = capture or connection.capture
        redact = redact or connection.redact
        self.redacts: tuple[Redact, ...] = () if redact is None else (redact,)
        self.shows_input = self.capture == "span+store" and connection.shows_input
        """Whether questions and queries may be recorded on spans."""
        self.shows_output = self.capture == "span+store" and connection.shows_output
        """Whether answers and contexts may be recorded on spans."""

    def within(self, outer: Privacy) -> Privacy:
        """Return these settings, restricted to what the enclosing handler allows, with both redactions applied."""
        restricted = Privacy(self.connection, capture=max(self.capture, outer.capture, key=_STRICTNESS.index))
        restricted.redacts = tuple(dict.fromkeys((*self.redacts, *outer.redacts)))
        return restricted

    def screen(self, what: str, text: str | None, problems: list[str]) -> str | None:
        """Redact, truncate and clean a text. Return None if it must not be stored, or if redaction failed."""
        if text is None or self.capture == "none":
            return None
        for redact in self.redacts:
            text = guarded(f"redaction of the {what}", _redacted, redact, text, problems=problems)
            if text is None:
                return None
        return clean(text, self.connection.max_text_length)

    def screen_contexts(self, contexts: Iterable[Context], problems: list[str]) -> list[Context]:
        """Screen the texts of contexts, and drop contexts that must not be stored."""
        screened = ((self.screen("contexts", context.text, problems), context) for context in contexts)
        return [
            Context(text, None if context.id is None else clean(context.id, NAME_LIMIT), context.score)
            for text, context in screened
            if text is not None
        ]

    def screen_history(self, history: Sequence[Message], problems: list[str]) -> tuple[Message, ...]:
        """Screen the texts of earlier messages, and drop messages that must not be stored."""
        if not history:
            return ()
        screened = ((message.role, self.screen("history", message.content, problems)) for message in history)
        return tuple(Message(clean(role, NAME_LIMIT), text) for role, text in screened if text is not None)


def _redacted(redact: Redact, text: str) -> str:
    redacted: object = redact(text)
    if not isinstance(redacted, str):
        if isinstance(redacted, CoroutineType):
            redacted.close()  # otherwise, Python warns that it was never awaited
        raise UsageError(f"redact= must return text, not {type(redacted).__name__}")
    return str.__str__(redacted)
