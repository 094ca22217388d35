"""Annotations that the application records from any thread or process: feedback, scores and markers."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any

from germane.annotation import Feedback, Marker, RecordedScore
from germane.arguments import explain_unknown_arguments
from germane.errors import UsageError
from germane.exchange import Exchange, new_exchange_id, sampling_key_for
from germane.registry import BUILTIN_SCORER_NAMES
from germane.tracer.connection import current_connection
from germane.tracer.contexts import MAX_CONTEXTS, ContextReader
from germane.tracer.guard import NOT_RECORDED, guarded, log_once
from germane.tracer.privacy import Privacy
from germane.tracer.text import NAME_LIMIT, as_text, clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from germane.annotation import Annotation
    from germane.tracer.connection import Connection

_logger = logging.getLogger("germane.tracer")

MAX_DETAILS_LENGTH = 16_384
"""Maximum length of a score's details or a marker's attributes, in characters of JSON."""
MAX_NESTING = 8
"""Maximum nesting depth of details and attributes."""


@explain_unknown_arguments
def feedback(exchange_id: str | None, score: float, comment: str | None = None, user: str | None = None) -> None:
    """Record a person's label for an answer.

    The label is written in the background. The call never blocks and never raises: invalid labels are logged once and
    dropped. The exchange may have been captured by another process, or not be stored yet. The comment is redacted,
    truncated to ``max_text_length``, and dropped if ``capture`` is ``none``.

    Args:
        exchange_id: The id from :func:`germane.current_exchange`, which your front end sends back. If it is None, the
            exchange was not recorded, and nothing is stored.
        score: A number from 0 (bad) to 1 (good).
        comment: The person's comment.
        user: The person's id. If the same person labels an answer twice, the later label counts.

    Raises:
        UsageError: An argument is invalid. Raised inside ``germane.testing.strict()`` only.
    """

    def make(connection: Connection) -> Feedback:
        return Feedback(
            id=new_exchange_id(),
            exchange_id=_identity(exchange_id),
            score=_number("score", score, minimum=0.0),
            comment=_screened(connection, "comment", comment),
            user=None if user is None else clean(as_text(user), NAME_LIMIT),
            created_at=datetime.now(UTC),
        )

    _send("feedback", make, has_exchange=exchange_id is not None)


@explain_unknown_arguments
def record_score(
    exchange_id: str | None,
    name: str,
    value: float,
    *,
    label: str | None = None,
    explanation: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record a score that was computed elsewhere. Trends, reports and rules use it like germane's own scores.

    The score is written in the background, and waits up to ten minutes for the exchange to be stored. A later score for
    the same exchange and with the same name replaces it.

    Args:
        exchange_id: The id from :func:`germane.current_exchange`. If it is None, nothing is stored.
        name: Name of the score. If it is the name of a built-in scorer, germane does not run that scorer on the
            exchange. The name must not be that of a user-defined scorer in this process.
        value: A number from -1 to 1; higher is better.
        label: A one-word summary, such as a band.
        explanation: The reason for the value, in plain language. It is redacted and truncated like the comment in
            :func:`feedback`.
        details: JSON-serializable data of at most 16,384 characters.

    Raises:
        UsageError: An argument is invalid. Raised inside ``germane.testing.strict()`` only.
    """

    def make(connection: Connection) -> RecordedScore:
        score = _recorded_score(connection, _identity(exchange_id), name, value)
        return replace(
            score,
            label=None if label is None else clean(as_text(label), NAME_LIMIT),
            explanation=_screened(connection, "explanation", explanation),
            details=_copied("details", details, lambda text: _screened(connection, "details", text)),
        )

    _send("record_score", make, has_exchange=exchange_id is not None)


@explain_unknown_arguments
def record_exchange(
    question: str,
    answer: str,
    *,
    contexts: Iterable[Any] = (),
    scores: Mapping[str, float] | None = None,
    route: str = "recorded",
) -> str | None:
    """Record an exchange that no decorated handler answered, with scores that were computed elsewhere.

    The exchange is sampled and scored like a captured one, except by the scorers whose names are in ``scores``. It has
    no span. The call returns immediately and never raises; if an argument is invalid, nothing is stored, and the reason
    is logged once. The texts are redacted and truncated like captured ones.

    Args:
        question: The question.
        answer: The answer.
        contexts: The texts that the answer is based on, or objects from a retriever that contain these texts.
        scores: Values from -1 to 1 by name; higher is better. Names of built-in scorers are allowed, because recorded
            scores have their own fingerprint, ``external``, and are never averaged with germane's scores.
        route: The route under which trends group the exchange.

    Returns:
        The id of the exchange, for :func:`feedback` and :func:`record_score`, or None if it is not stored.

    Raises:
        UsageError: An argument is invalid. Raised inside ``germane.testing.strict()`` only.
    """
    connection = current_connection()
    if connection is None or connection.annotate is None:
        log_once("germane.record_exchange() was called, but germane is not running: the call has no effect")
        return None

    def write(connection: Connection, annotate: Callable[[Annotation], object]) -> str:
        exchange_id, started_at, privacy = new_exchange_id(), datetime.now(UTC), Privacy(connection)
        for what, text in {"question": question, "answer": answer}.items():
            if not isinstance(text, str):
                raise UsageError(f"{what} must be a string, not {type(text).__name__}")
        if scores is not None and not isinstance(scores, Mapping):
            raise UsageError(f"scores must be a mapping of names to numbers, not {type(scores).__name__}")
        recorded = [_recorded_score(connection, exchange_id, *item) for item in (scores or {}).items()]
        reader, name, sampling_key = ContextReader(), _name("route", route), sampling_key_for(exchange_id)
        texts = [contexts] if isinstance(contexts, str) else contexts
        read = [reader.read(item) for item in islice(texts, MAX_CONTEXTS)]
        started = int(started_at.timestamp() * 1e9)
        probability = connection.admit(connection.service, name, started, sampling_key)
        if probability is None:
            return ""  # over the exchange limit, so not counted as rejected
        exchange = replace(
            Exchange.from_texts(privacy.screen("question", question, []), privacy.screen("answer", answer, [])),
            id=exchange_id,
            service=connection.service,
            route=clean(name, NAME_LIMIT),
            contexts=tuple(privacy.screen_contexts(read, [])),
            started_at=started_at,
            sampling_key=sampling_key,
            capture_probability=probability,
            traced=False,
        )
        connection.sink(exchange)
        for score in recorded:
            annotate(score)
        return exchange_id

    written = guarded("germane.record_exchange()", write, connection, connection.annotate, message=NOT_RECORDED)
    if written is None:
        connection.rejected_calls["record_exchange"] += 1
    return written or None


@explain_unknown_arguments
def mark(name: str, *, attributes: Mapping[str, Any] | None = None) -> None:
    """Record a marker at the current time, for example for a deployment, a new index or a model change.

    Scores before and after the marker can be compared. The marker is written in the background, for the configured
    service. If several server processes call this function at startup, each writes a marker, and the newest marker with
    the same name counts.

    Args:
        name: Name of the marker, such as ``"index v42"``.
        attributes: JSON-serializable data of at most 16,384 characters, such as a version.

    Raises:
        UsageError: An argument is invalid. Raised inside ``germane.testing.strict()`` only.
    """

    def make(connection: Connection) -> Marker:
        return Marker(
            id=new_exchange_id(),
            name=clean(_name("marker", name).strip(), NAME_LIMIT),
            service=connection.service,
            at=datetime.now(UTC),
            attributes=_copied("attributes", attributes, as_text),
        )

    _send("mark", make)


def log_rejected_calls(connection: Connection | None) -> None:
    """Log the number of rejected calls per function, at shutdown. The first was logged when it occurred."""
    for what, count in connection.rejected_calls.items() if connection is not None else ():
        if count > 1:
            _logger.warning("germane.%s() was called %d times with invalid arguments, which were dropped", what, count)


def _send(what: str, make: Callable[[Connection], Annotation], *, has_exchange: bool = True) -> None:
    """Create an annotation and pass it to the sink, or log why it is rejected or has no effect."""
    connection = current_connection()
    if connection is not None and not has_exchange:
        log_once(f"germane.{what}() was called without an exchange: the call has no effect")
    elif connection is None or connection.annotate is None:
        log_once(f"germane.{what}() was called, but germane is not running: the call has no effect")
    elif (annotation := guarded(f"germane.{what}()", make, connection, message=NOT_RECORDED)) is None:
        connection.rejected_calls[what] += 1
    else:
        guarded(f"germane.{what}()", connection.annotate, annotation, message=NOT_RECORDED)


def _recorded_score(connection: Connection, exchange_id: str, name: Any, value: Any) -> RecordedScore:
    free_name = _name("score", name)
    if free_name in connection.scorers and free_name not in BUILTIN_SCORER_NAMES:
        raise UsageError(f"{free_name:.100} is a scorer in this process: choose another name for the score")
    return RecordedScore(
        exchange_id=exchange_id,
        name=clean(free_name, NAME_LIMIT),
        value=_number(f"the score {free_name:.100}", value, minimum=-1.0),
        recorded_at=datetime.now(UTC),
    )


def _identity(exchange_id: Any) -> str:
    if not isinstance(exchange_id, str) or not exchange_id:
        raise UsageError("exchange_id must be the id of an exchange, such as germane.current_exchange().id")
    return clean(exchange_id, NAME_LIMIT)


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"the name of the {what} must be a non-empty string")
    return name


def _number(what: str, value: Any, *, minimum: float) -> float:
    """Convert a value to a number in [minimum, 1]. Accepts NumPy numbers, and True or False for thumbs up or down."""
    if not isinstance(value, Real) and not hasattr(value, "__float__"):
        raise UsageError(f"{what} must be a number, not {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number) or not minimum <= number <= 1:
        raise UsageError(f"{what} must be between {minimum:g} and 1, where higher is better")
    return number


def _screened(connection: Connection, what: str, text: Any) -> str | None:
    return None if text is None else Privacy(connection).screen(what, as_text(text), [])


def _copied(what: str, details: Any, screen: Callable[[Any], str | None]) -> dict[str, Any]:
    """Copy details to plain JSON values immediately, because the caller may change them later.

    Texts are redacted, but keys are not. Copying stops once the result is too long, because the caller is waiting.
    """
    if details is None:
        return {}
    if not isinstance(details, Mapping):
        raise UsageError(f"{what} must be a mapping, not {type(details).__name__}")
    remaining = MAX_DETAILS_LENGTH

    def count(characters: int) -> None:
        nonlocal remaining
        remaining -= characters
        if remaining < 0:
            raise UsageError(f"{what} must be at most {MAX_DETAILS_LENGTH} characters of JSON")

    def copy(value: Any, depth: int) -> Any:
        if depth < 0:
            raise UsageError(f"{what} must be nested at most {MAX_NESTING} levels deep")
        count(1)
        if isinstance(value, Mapping):
            copied = {}
            for key, item in value.items():
                name = clean(str(key), NAME_LIMIT)
                count(len(name))
                copied[name] = copy(item, depth - 1)
            return copied
        if isinstance(value, list | tuple):
            return [copy(item, depth - 1) for item in value]
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, Real) or hasattr(value, "__float__"):
            return float(value) if math.isfinite(value) else None
        text = screen(value)
        count(len(text or ""))
        return text

    plain: dict[str, Any] = copy(details, MAX_NESTING)
    # So far, only names and texts were counted. Now count the exact length, with quotes, numbers and escapes.
    remaining = MAX_DETAILS_LENGTH
    count(len(json.dumps(plain, ensure_ascii=False)))
    return plain
