"""The boundary between a scorer and all that counts on scores: whatever a scorer does, a score comes out."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.scorers.base.protocols import Scorer
from germane.scorers.base.text import is_blank, shorten

NOISE = 1e-6
"""How far rounding may carry a value past the edge of its range."""

_FIELDS: Mapping[str, type] = {
    "scorer": str, "fingerprint": str, "value": Real, "reason": Reason, "label": str, "explanation": str,
    "details": Mapping, "judge": str, "embedder": str,
    "input_tokens": Integral, "output_tokens": Integral, "cost": Real,
}  # fmt: skip
_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "value": float, "input_tokens": int, "output_tokens": int, "cost": float,
}  # fmt: skip


def utc_now() -> datetime:
    """Return the time, in UTC with its zone."""
    return datetime.now(UTC)


async def run(scorer: Scorer, exchange: Exchange, *, clock: Callable[[], datetime] = utc_now) -> Score:
    """Return what the scorer says of the exchange: a finite value inside its range, or the reason why there is none.

    Never raises, except that a cancelled task stays cancelled. A server that asked to be left alone for some seconds
    is named in ``details["retry_after"]``; see :func:`may_succeed_later`.
    """
    started = time.perf_counter()
    score = await _score(scorer, exchange)
    return dataclasses.replace(score, latency=time.perf_counter() - started, scored_at=clock())


def may_succeed_later(score: Score) -> bool:
    """Return whether the same request may well get a value later: the server was away, slow or busy."""
    return score.reason is not None and (score.reason.transient or "retry_after" in score.details)


def is_rejected(score: Score) -> bool:
    """Return whether a judge's or an embedder's server refuses key, model or quota: until somebody acts, all fail."""
    return score.reason is Reason.JUDGE_REJECTED or (score.reason is not None and bool(score.details.get("rejected")))


def lacks_input(scorer: Scorer, exchange: Exchange) -> bool:
    """Return whether the exchange lacks what the scorer needs. Of a scorer that cannot say what, :func:`run` tells."""
    try:
        return bool(_absent(scorer, exchange))
    except Exception:  # noqa: BLE001 - anybody's code, as below
        return False


async def _score(scorer: Scorer, exchange: Exchange) -> Score:
    try:
        if absent := [name.removesuffix("s") for name in _absent(scorer, exchange)]:
            return _without_value(scorer, Reason.MISSING_INPUT, f"there is no {' and no '.join(absent)}")
        return _checked(scorer, await scorer.score(exchange))
    except ScoringError as error:
        return dataclasses.replace(_without_value(scorer, error.reason, str(error)), details=_details_of(error))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _without_value(scorer, Reason.SCORER_ERROR, "CancelledError: it was cancelled from within")
    # A scorer may be anybody's code: whatever it raises is a failed score, or one bad row would end the loop.
    except Exception as error:  # noqa: BLE001
        return _without_value(scorer, Reason.SCORER_ERROR, f"{type(error).__name__}: {error}")


def _details_of(error: ScoringError) -> dict[str, object]:
    """Return what a score must tell of a failure besides its reason."""
    waits: dict[str, object] = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return {**waits, "rejected": True} if error.rejected else waits


def _checked(scorer: Scorer, result: Score | float) -> Score:
    if isinstance(result, Score):
        if flaw := _flaw_of(result):
            return _without_value(scorer, Reason.SCORER_ERROR, f"it returned a score {flaw}")
        named = _named(scorer, _with_plain_numbers(result))
        return named if named.value is None else _inside(scorer, named, named.value)
    if isinstance(result, Real) and not isinstance(result, bool):  # a number of numpy's is one, too
        kept = Score(scorer=scorer.name, fingerprint=scorer.fingerprint, value=0.0)
        return _inside(scorer, kept, float(result))
    return _without_value(scorer, Reason.SCORER_ERROR, f"it returned {type(result).__name__}, not a score")


def _flaw_of(score: Score) -> str | None:
    """Return what is wrong with a score that somebody else's code has made; no type checker may have seen it."""
    for name, kind in _FIELDS.items():
        given = getattr(score, name)
        if given is not None and not isinstance(given, kind):
            return f"whose {name} is a {type(given).__name__}"
    return None if score.cost is None or math.isfinite(score.cost) else f"whose cost is {score.cost}"


def _with_plain_numbers(score: Score) -> Score:
    """Return the score with numbers of Python's own kinds: databases know no others."""
    given = {name: getattr(score, name) for name in _NUMBERS}
    changed = {name: _NUMBERS[name](n) for name, n in given.items() if n is not None and type(n) is not _NUMBERS[name]}
    return dataclasses.replace(score, **changed) if changed else score


def _named(scorer: Scorer, score: Score) -> Score:
    if score.scorer and score.fingerprint:
        return score
    return dataclasses.replace(
        score, scorer=score.scorer or scorer.name, fingerprint=score.fingerprint or scorer.fingerprint
    )


def _inside(scorer: Scorer, score: Score, value: float) -> Score:
    least, greatest = scorer.range
    if not math.isfinite(value) or not least - NOISE <= value <= greatest + NOISE:
        explanation = f"{value} is not a value from {least} to {greatest}"
        return dataclasses.replace(score, value=None, label=None, reason=Reason.OUT_OF_RANGE, explanation=explanation)
    return dataclasses.replace(score, value=min(max(value, least), greatest))


def _without_value(scorer: Scorer, reason: Reason, explanation: str) -> Score:
    return Score(
        scorer=scorer.name, fingerprint=scorer.fingerprint, reason=reason, explanation=shorten(explanation, 500)
    )


def _absent(scorer: Scorer, exchange: Exchange) -> list[str]:
    return sorted(name for name in scorer.requires if not _is_present(exchange, name))


def _is_present(exchange: Exchange, name: str) -> bool:
    if name == "contexts":
        return any(not is_blank(context.text) for context in exchange.contexts)
    text = {"question": exchange.question, "answer": exchange.answer}[name]
    return text is not None and not is_blank(text)
