"""Privacy settings for captured text: redaction, truncation, and the places where it may be recorded."""

from __future__ import annotations

from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Final

from germane.errors import UsageError
from germane.exchange import Context, Message
from germane.tracer.guard import guarded, log_once
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from germane.exchange import Capture, Redact
    from germane.tracer.connection import Connection

REDACTED_ROUTES: set[str] = set()
"""Routes whose text must not appear on spans. Score explanations are omitted too, because they may quote the text."""
_STRICTNESS = ("span+store", "store", "none")


MAX_REDACTION_SECONDS: Final = 0.005
"""Maximum duration of a redaction without a warning. Redaction delays the handler's caller."""


class Privacy:
    """The privacy settings for one handler.

    The handler's redaction replaces that of the connection. The stricter of the two ``capture`` values applies, so with
    ``capture="none"`` for the process, no handler records text.
    """

    __slots__ = ("capture", "connection", "redacts", "shows_input", "shows_output")

    def __init__(self, connection: Connection, redact: Redact | None = None, capture: Capture | None = None) -> None:
        self.connection = connection
        self.capture: Capture = max(capture or connection.capture, connection.capture, key=_STRICTNESS.index)
        redact = redact or connection.redact
        self.redacts: tuple[Redact, ...] = () if redact is None else (redact,)
        self.shows_input = self.capture == "span+store" and connection.shows_input
        """Whether questions and queries may be recorded on spans."""
        self.shows_output = self.capture == "span+store" and connection.shows_output
        """Whether answers and contexts may be recorded on spans."""

    def within(self, outer: Privacy) -> Privacy:
        """Return these settings, restricted by the enclosing handler's. The redactions of both handlers are applied."""
        restricted = Privacy(self.connection, capture=max(self.capture, outer.capture, key=_STRICTNESS.index))
        restricted.redacts = tuple(dict.fromkeys((*self.redacts, *outer.redacts)))
        return restricted

    def screen(self, what: str, text: str | None, problems: list[str]) -> str | None:
        """Return the text redacted, truncated and cleaned, or None if it must not be stored or redaction failed."""
        if text is None or self.capture == "none":
            return None
        for redact in self.redacts:
            text = guarded(f"redaction of the {what}", _redacted, redact, text, problems=problems)
            if text is None:
                return None
        return clean(text, self.connection.max_text_length)

    def screen_contexts(self, contexts: Iterable[Context], problems: list[str]) -> list[Context]:
        """Return the contexts with screened texts, without those that must not be stored."""
        screened = ((self.screen("contexts", context.text, problems), context) for context in contexts)
        return [
            Context(text, None if context.id is None else clean(context.id, NAME_LIMIT), context.score)
            for text, context in screened
            if text is not None
        ]

    def screen_history(self, history: Sequence[Message], problems: list[str]) -> tuple[Message, ...]:
        """Return earlier messages with screened texts, without those that must not be stored."""
        screened = ((message.role, self.screen("history", message.content, problems)) for message in history)
        return tuple(Message(clean(role, NAME_LIMIT), text) for role, text in screened if text is not None)


def _redacted(redact: Redact, text: str) -> str:
    began = perf_counter()
    redacted: object = redact(text)
    if perf_counter() - began > MAX_REDACTION_SECONDS:
        name = getattr(redact, "__qualname__", type(redact).__name__)
        log_once(
            f"redact={name:.100} took more than {1000 * MAX_REDACTION_SECONDS:.0f} ms for one text, which delays the "
            "handler's caller: simplify its regular expressions, or lower max_text_length"
        )
    if not isinstance(redacted, str):
        if isinstance(redacted, CoroutineType):
            redacted.close()  # otherwise, Python would warn that it was never awaited
        raise UsageError(f"redact= must return text, not {type(redacted).__name__}")
    return str.__str__(redacted)
