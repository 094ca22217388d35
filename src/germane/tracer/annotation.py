"""What an application says, from any thread or process: feedback of an exchange, a score of its own, a mark in time."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from numbers import Real
from typing import TYPE_CHECKING, Any

from germane.annotation import Feedback, Mark, Recorded
from germane.errors import UsageError
from germane.exchange import new_exchange_id
from germane.registry import BUILT_IN
from germane.tracer.connection import current
from germane.tracer.guard import NOT_KEPT, attempt, say_once
from germane.tracer.privacy import Privacy
from germane.tracer.text import NAME_LIMIT, as_text, clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from germane.annotation import Annotation
    from germane.tracer.connection import Connection

_logger = logging.getLogger("germane.tracer")

DETAILS_LIMIT = 16_384
"""Characters of details, or of a mark's attributes, as JSON."""
DEPTH = 8
"""How deep details may be nested."""


def feedback(exchange_id: str | None, score: float, comment: str | None = None, user: str | None = None) -> None:
    """Keep a person's label of an answer: ``score`` is 0 (bad) to 1 (good).

    It is written in the background. It never waits, and never raises into the caller: what cannot be kept is said once
    in the log. The exchange may have been captured by another process, or be written later. The comment goes through
    ``redact``, is cut to ``text_limit``, and is dropped where ``capture`` is ``none``.

    Args:
        exchange_id: From :func:`germane.current_exchange`, handed to the front end and back. None, the id of what is
            not recorded, keeps nothing.
        score: 0 to 1.
        comment: What the person wrote.
        user: Who it was. Where a person labels one answer twice, the later label counts.

    Raises:
        UsageError: an argument is of a wrong kind; inside ``germane.testing.strict()`` only.
    """
    _send("feedback", exchange_id, _feedback, score, comment, user)


def record(
    exchange_id: str | None,
    name: str,
    value: float,
    *,
    label: str | None = None,
    explanation: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Keep a score that was made elsewhere: it stands in trends, reports and rules beside germane's own.

    It is written in the background, as feedback is; once the exchange is in the database, for which it waits ten
    minutes. A second record of the same exchange and name replaces the first.

    Args:
        exchange_id: From :func:`germane.current_exchange`; with None nothing is kept.
        name: What the score is called; not the name of a scorer of germane's or of this process.
        value: -1 to 1, higher is better.
        label: One word for it, such as a band.
        explanation: Why it is so, for people; treated as a comment of :func:`feedback` is.
        details: What it was made from: plain JSON, at most 16 kB.

    Raises:
        UsageError: an argument is of a wrong kind; inside ``germane.testing.strict()`` only.
    """
    _send("record", exchange_id, _recorded, name, value, label, explanation, details)


def _send(what: str, exchange_id: str | None, make: Callable[..., Annotation], *given: Any) -> None:
    if exchange_id is None and current() is not None:
        say_once(f"germane.{what}() was called without an exchange: nothing is kept")
    else:
        _hand(what, make, exchange_id, *given)


def _hand(what: str, make: Callable[..., Annotation], *given: Any) -> None:
    connection = current()
    if connection is None or connection.annotate is None:
        say_once(f"germane.{what}() was called where germane does not run: nothing is kept")
    elif (made := attempt(f"germane.{what}()", make, connection, *given, said=NOT_KEPT)) is None:
        connection.refused[what] += 1
    else:
        attempt(f"germane.{what}()", connection.annotate, made, said=NOT_KEPT)


def mark(name: str, *, attributes: Mapping[str, Any] | None = None) -> None:
    """Keep this moment under a name: a deploy, a new index, another model. Comparisons go by it.

    It is written in the background, as feedback is, with the service of the settings. Server processes that all call it
    as they start write a mark each; the newest one of a name counts.

    Args:
        name: Such as ``"index v42"``.
        attributes: What else is to be known of it: plain JSON, at most 16 kB.

    Raises:
        UsageError: an argument is of a wrong kind; inside ``germane.testing.strict()`` only.
    """
    _hand("mark", _mark, name, attributes)


def tell_refused(connection: Connection | None) -> None:
    """Say at the end how often it happened; that it did was said the first time."""
    for what, count in connection.refused.items() if connection is not None else ():
        if count > 1:
            _logger.warning("germane.%s() was called %d times in a way in which nothing can be kept", what, count)


def _feedback(connection: Connection, exchange_id: Any, score: Any, comment: Any, user: Any) -> Feedback:
    return Feedback(
        id=new_exchange_id(),
        exchange_id=_identity(exchange_id),
        score=_number("score", score, least=0.0),
        comment=_screened(connection, "comment", comment),
        user=None if user is None else clean(as_text(user), NAME_LIMIT),
        created_at=datetime.now(UTC),
    )


def _recorded(
    connection: Connection, exchange_id: Any, name: Any, value: Any, label: Any, explanation: Any, details: Any
) -> Recorded:
    return Recorded(
        exchange_id=_identity(exchange_id),
        name=_free_name(connection, name),
        value=_number("value", value, least=-1.0),
        label=None if label is None else clean(as_text(label), NAME_LIMIT),
        explanation=_screened(connection, "explanation", explanation),
        details={} if details is None else _details(connection, details),
        recorded_at=datetime.now(UTC),
    )


def _mark(connection: Connection, name: Any, attributes: Any) -> Mark:
    if not isinstance(name, str) or not name.strip():
        raise UsageError("name must be text: what the mark is called")
    return Mark(
        id=new_exchange_id(),
        name=clean(name.strip(), NAME_LIMIT),
        service=connection.service,
        at=datetime.now(UTC),
        attributes={} if attributes is None else _copied("attributes", attributes, as_text),
    )


def _identity(exchange_id: Any) -> str:
    if not isinstance(exchange_id, str) or not exchange_id:
        raise UsageError("exchange_id must be the id of an exchange: germane.current_exchange().id")
    return clean(exchange_id, NAME_LIMIT)


def _free_name(connection: Connection, name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UsageError("name must be text: what the score is called")
    if name in BUILT_IN or name in connection.scorers:
        raise UsageError(f"{name:.100} is the name of a scorer: call the score something else")
    return clean(name, NAME_LIMIT)


def _number(what: str, value: Any, *, least: float) -> float:
    """Return a number in its range; of numpy's kinds, too, and a thumb up or down as True or False."""
    if not isinstance(value, Real) and not hasattr(value, "__float__"):
        raise UsageError(f"{what} must be a number, not {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number) or not least <= number <= 1:
        raise UsageError(f"{what} must be from {least:g} to 1, higher is better")
    return number


def _screened(connection: Connection, what: str, text: Any) -> str | None:
    return None if text is None else Privacy(connection).screen(what, as_text(text), [])


def _details(connection: Connection, details: Any) -> dict[str, Any]:
    return _copied("details", details, lambda text: _screened(connection, "details", text))


def _copied(what: str, given: Any, screen: Callable[[Any], str | None]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be a mapping, not {type(given).__name__}")
    plain: dict[str, Any] = _Copy(what, screen).of(given)
    if len(json.dumps(plain, ensure_ascii=False)) > DETAILS_LIMIT:
        raise _too_long(what)
    return plain


def _too_long(what: str) -> UsageError:
    return UsageError(f"{what} must be at most {DETAILS_LIMIT} characters of JSON")


class _Copy:
    """Makes of details what JSON can hold, now: the caller may change them later.

    Texts are screened, keys are not. It counts what JSON needs at least, and stops at the limit: the caller waits.
    """

    def __init__(self, what: str, screen: Callable[[Any], str | None]) -> None:
        self._what = what
        self._screen = screen
        self._left = DETAILS_LIMIT

    def of(self, value: Any, depth: int = DEPTH) -> Any:
        """Return the copy."""
        if depth < 0:
            raise UsageError(f"{self._what} must be nested less than {DEPTH} deep")
        self._count(1)
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth - 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item, depth - 1) for item in value]
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, Real) or hasattr(value, "__float__"):
            return float(value) if math.isfinite(value) else None
        text = self._screen(value)
        self._count(len(text or ""))
        return text

    def _key(self, key: Any) -> str:
        name = clean(str(key), NAME_LIMIT)
        self._count(len(name))
        return name

    def _count(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _too_long(self._what)
