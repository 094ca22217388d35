"""What may be done with captured text: how it is redacted and cut, and where it may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.errors import UsageError
from germane.exchange import Context, Turn
from germane.tracer.guard import attempt
from germane.tracer.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from germane.tracer.connection import Capture, Connection, Redact

_STRICTNESS = ("span+store", "store", "none")


class Privacy:
    """The rules for one handler: its own where it has them, else those of the connection."""

    __slots__ = ("capture", "connection", "redact")

    def __init__(self, connection: Connection, redact: Redact | None = None, capture: Capture | None = None) -> None:
        self.connection = connection
        self.redact = redact or connection.redact
        self.capture: Capture = capture or connection.capture

    def within(self, outer: Privacy) -> Privacy:
        """Return these rules, narrowed to what the enclosing handler allows."""
        narrowed = max(self.capture, outer.capture, key=_STRICTNESS.index)
        return Privacy(self.connection, self.redact or outer.redact, narrowed)

    @property
    def shows_input(self) -> bool:
        """Whether questions and queries may stand on spans."""
        return self.capture == "span+store" and self.connection.shows_input

    @property
    def shows_output(self) -> bool:
        """Whether answers and contexts may stand on spans."""
        return self.capture == "span+store" and self.connection.shows_output

    def screen(self, what: str, text: str | None, problems: list[str]) -> str | None:
        """Redact, cut and clean a text; None when it may not be kept, or when redacting it failed."""
        if text is None or self.capture == "none":
            return None
        if self.redact is not None:
            text = attempt(f"redaction of the {what}", _redacted, self.redact, text, problems=problems)
        return None if text is None else clean(text, self.connection.text_limit)

    def screen_contexts(self, contexts: Iterable[Context], problems: list[str]) -> list[Context]:
        """Screen the texts of contexts; those that may not be kept are left out."""
        screened = ((self.screen("contexts", context.text, problems), context) for context in contexts)
        return [Context(text, context.id, context.score) for text, context in screened if text is not None]

    def screen_turns(self, turns: Iterable[Turn], problems: list[str]) -> tuple[Turn, ...]:
        """Screen the texts of earlier turns; those that may not be kept are left out."""
        screened = ((turn.role, self.screen("history", turn.text, problems)) for turn in turns)
        return tuple(Turn(role, text) for role, text in screened if text is not None)


def _redacted(redact: Redact, text: str) -> str:
    redacted = redact(text)
    if not isinstance(redacted, str):
        raise UsageError(f"redact= must return text, not {type(redacted).__name__}")
    return redacted
