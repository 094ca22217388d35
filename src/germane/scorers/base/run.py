"""The error boundary around scorers. Every call returns a score with a value or a reason."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers.base.protocols import Scorer
from germane.scorers.base.text import is_blank, shorten

ROUNDING_TOLERANCE = 1e-6
"""Tolerance for rounding errors: a value outside its range by at most this amount is clipped."""
_FIELD_TYPES: Mapping[str, type] = {
    "scorer": str, "fingerprint": str, "value": Real, "reason": UnscoredReason, "label": str, "explanation": str,
    "details": Mapping, "judge": str, "embedder": str,
    "input_tokens": Integral, "output_tokens": Integral, "cost": Real,
}  # fmt: skip
_NUMBER_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "value": float, "input_tokens": int, "output_tokens": int, "cost": float,
}  # fmt: skip
_INPUTS: Mapping[str, Callable[[Exchange], Sequence[str | None]]] = {
    "question": lambda exchange: [exchange.question],
    "answer": lambda exchange: [exchange.answer],
    "contexts": lambda exchange: [context.text for context in exchange.contexts],
}


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


async def run_scorer(scorer: Scorer, exchange: Exchange, *, clock: Callable[[], datetime] = utc_now) -> Score:
    """Score an exchange. The score has either a finite value in the scorer's range, or a reason.

    Never raises, except if the task is canceled. If a server requested a delay, ``details["retry_after"]`` contains it
    in seconds; see :func:`is_retryable`.
    """
    started = time.perf_counter()
    try:
        if missing := [name.removesuffix("s") for name in _missing_inputs(scorer, exchange)]:
            score = _unscored(scorer, UnscoredReason.MISSING_INPUT, f"there is no {' and no '.join(missing)}")
        else:
            score = _validated(scorer, await scorer.score(exchange))
    except ScoringError as error:
        details = {} if error.retry_after is None else {"retry_after": error.retry_after}
        details |= {"rejected": True} if error.rejected else {}
        details |= {"unanswered": True} if error.is_unanswered else {}
        score = dataclasses.replace(_unscored(scorer, error.reason, str(error)), details=details)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        score = _unscored(scorer, UnscoredReason.SCORER_ERROR, "CancelledError: the scorer canceled itself")
    # Scorers may be user code. Any exception becomes a failed score, so one bad row does not end the loop.
    except Exception as error:  # noqa: BLE001
        score = _unscored(scorer, UnscoredReason.SCORER_ERROR, f"{type(error).__name__}: {error}")
    return dataclasses.replace(score, latency=time.perf_counter() - started, scored_at=clock())


def is_retryable(score: Score) -> bool:
    """Return whether the same request may succeed later, because a server was unreachable, slow or busy."""
    return score.reason is not None and (score.reason.is_transient or "retry_after" in score.details)


def is_rejected(score: Score) -> bool:
    """Return whether the judge's or embedder's server rejects the key, model or quota, so that all requests fail."""
    return score.reason is UnscoredReason.JUDGE_REJECTED or (
        score.reason is not None and bool(score.details.get("rejected"))
    )


def is_unanswered(score: Score) -> bool:
    """Return whether no model server answered the request, for example because the URL is wrong."""
    return bool(score.details.get("unanswered"))


def lacks_input(scorer: Scorer, exchange: Exchange) -> bool:
    """Return whether the exchange lacks an input that the scorer requires.

    If the scorer's ``requires`` is invalid, return False; :func:`run_scorer` reports the error.
    """
    try:
        return bool(_missing_inputs(scorer, exchange))
    except Exception:  # noqa: BLE001 - user code, as above
        return False


def _validated(scorer: Scorer, result: Score | float) -> Score:
    if not isinstance(result, Score):
        if not isinstance(result, Real) or isinstance(result, bool):  # numpy numbers are Real, too
            return _unscored(
                scorer, UnscoredReason.SCORER_ERROR, f"the scorer returned {type(result).__name__} instead of a score"
            )
        return _in_range(scorer, Score(scorer=scorer.name, fingerprint=scorer.fingerprint, value=0.0), float(result))
    # The score may come from user code that was not type-checked.
    for name, expected in _FIELD_TYPES.items():
        field = getattr(result, name)
        if field is not None and not isinstance(field, expected):
            explanation = f"the scorer returned a score whose {name} is a {type(field).__name__}"
            return _unscored(scorer, UnscoredReason.SCORER_ERROR, explanation)
    if result.cost is not None and not math.isfinite(result.cost):
        explanation = f"the scorer returned a score whose cost is {result.cost}"
        return _unscored(scorer, UnscoredReason.SCORER_ERROR, explanation)
    # Databases accept only Python's own number types.
    changes = {
        name: convert(number)
        for name, convert in _NUMBER_TYPES.items()
        if (number := getattr(result, name)) is not None and type(number) is not convert
    }
    if not (result.scorer and result.fingerprint):
        changes |= {
            "scorer": result.scorer or scorer.name,
            "fingerprint": result.fingerprint or scorer.fingerprint,
        }
    score = dataclasses.replace(result, **changes) if changes else result
    return score if score.value is None else _in_range(scorer, score, score.value)


def _in_range(scorer: Scorer, score: Score, value: float) -> Score:
    minimum, maximum = scorer.range
    if not math.isfinite(value) or not minimum - ROUNDING_TOLERANCE <= value <= maximum + ROUNDING_TOLERANCE:
        explanation = f"{value} is outside the range from {minimum} to {maximum}"
        return dataclasses.replace(
            score, value=None, label=None, reason=UnscoredReason.OUT_OF_RANGE, explanation=explanation
        )
    clipped = min(max(value, minimum), maximum)
    return score if clipped == value == score.value else dataclasses.replace(score, value=clipped)


def _unscored(scorer: Scorer, reason: UnscoredReason, explanation: str) -> Score:
    return Score(
        scorer=scorer.name, fingerprint=scorer.fingerprint, reason=reason, explanation=shorten(explanation, 500)
    )


def _missing_inputs(scorer: Scorer, exchange: Exchange) -> list[str]:
    return sorted(
        name for name in scorer.requires if all(text is None or is_blank(text) for text in _INPUTS[name](exchange))
    )
