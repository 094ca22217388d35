"""What may be done with captured text: how it is redacted and cut, and where it may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.errors import UsageError
from germane.exchange import Context, Turn
from germane.tracer.guard import attempt
from germane.tracer.text import NAME_LIMIT, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from germane.tracer.connection import Capture, Connection, Redact

QUIET_ROUTES: set[str] = set()
"""Routes of handlers that were told to keep their text off spans; explanations of their scores stay off too."""
_STRICTNESS = ("span+store", "store", "none")


class Privacy:
    """The rules for one handler: its own where it has them, else those of the connection."""

    __slots__ = ("capture", "connection", "redacts")

    def __init__(self, connection: Connection, redact: Redact | None = None, capture: Capture | None = None) -> None:
        self.connection = connection
        self.capture: Capture = capture or connection.capture
        chosen = redact or connection.redact
        self.redacts: tuple[Redact, ...] = () if chosen is None else (chosen,)

    def within(self, outer: Privacy) -> Privacy:
        """Return these rules, narrowed to what the enclosing handler allows, and redacted as it says too."""
        narrowed = Privacy(self.connection, capture=max(self.capture, outer.capture, key=_STRICTNESS.index))
        narrowed.redacts = tuple(dict.fromkeys((*self.redacts, *outer.redacts)))
        return narrowed

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
        for redact in self.redacts:
            text = attempt(f"redaction of the {what}", _redacted, redact, text, problems=problems)
            if text is None:
                return None
        return clean(text, self.connection.text_limit)

    def screen_contexts(self, contexts: Iterable[Context], problems: list[str]) -> list[Context]:
        """Screen the texts of contexts; those that may not be kept are left out."""
        screened = ((self.screen("contexts", context.text, problems), context) for context in contexts)
        return [Context(text, _name(context.id), context.score) for text, context in screened if text is not None]

    def screen_turns(self, turns: Sequence[Turn], problems: list[str]) -> tuple[Turn, ...]:
        """Screen the texts of earlier turns; those that may not be kept are left out."""
        if not turns:
            return ()
        screened = ((turn.role, self.screen("history", turn.text, problems)) for turn in turns)
        return tuple(Turn(clean(role, NAME_LIMIT), text) for role, text in screened if text is not None)


def _redacted(redact: Redact, text: str) -> str:
    redacted = redact(text)
    if not isinstance(redacted, str):
        raise UsageError(f"redact= must return text, not {type(redacted).__name__}")
    return str.__str__(redacted)


def _name(text: str | None) -> str | None:
    return None if text is None else clean(text, NAME_LIMIT)
