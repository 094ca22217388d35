"""Answers as plain JSON and as cells of CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.sanitize import cell
from germane.score import Score
from germane.storage import Answer, Sheet, Work

SCHEMA_VERSION: Final = 1
COLUMNS: Final = (
    "exchange_id", "trace_id", "service", "route", "started_at", "duration", "model", "prompt_version", "status",
    "question", "answer", "scorer", "fingerprint", "state", "reason", "error", "value", "label", "explanation",
    "judge", "embedder", "input_tokens", "output_tokens", "cost", "scored_at", "labels",
)  # fmt: skip


def answer_as_dict(sheet: Sheet) -> dict[str, Any]:
    """Return all that is known of one exchange, as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "exchange": _exchange(sheet.exchange),
        "sampling": {"reason": sheet.sampling_reason, "probability": sheet.sampling_probability},
        "erased_at": _moment(sheet.erased_at),
        "proxy": sheet.proxy,
        "scores": [_score(one) for one in sheet.scores],
        "tasks": [_work(one) for one in sheet.works],
        "feedback": [_label(one) for one in sheet.feedback],
    }


def row_of(found: Answer) -> dict[str, Any]:
    """Return one answer of a list, by the names of ``COLUMNS``."""
    exchange, score, work = found.exchange, found.score, found.work
    names = ("trace_id", "service", "route", "duration", "model", "prompt_version", "status", "question", "answer")
    made = {name: getattr(score, name, None) for name in _OF_SCORE}
    return {
        "exchange_id": exchange.id,
        **{name: getattr(exchange, name) for name in names},
        "started_at": _moment(exchange.started_at),
        **made,
        "scorer": score.scorer if score else work.scorer if work else None,
        "fingerprint": score.fingerprint if score else work.fingerprint if work else None,
        "state": "scored" if score else work.state if work else "undecided",
        "reason": work.reason.value if work and work.reason and not score else None,
        "error": work.error if work and not score else None,
        "scored_at": _moment(score.scored_at) if score else None,
        "labels": [one.score for one in found.feedback],
    }


_OF_SCORE: Final = (
    "value", "label", "explanation", "judge", "embedder", "input_tokens", "output_tokens", "cost",
)  # fmt: skip


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """Return a row as cells, none of which a spreadsheet takes for a formula."""
    for name in COLUMNS:
        value = row[name]
        if isinstance(value, list):
            value = " ".join(f"{one:g}" for one in value)
        yield "" if value is None else cell(value) if isinstance(value, str) else repr(value)


def _exchange(found: Exchange) -> dict[str, Any]:
    names = ("id", "trace_id", "span_id", "service", "route", "question", "answer", "model", "prompt_version")
    more = ("session", "user", "status", "error", "duration")
    return {
        **{name: getattr(found, name) for name in (*names, *more)},
        "contexts": [{"text": one.text, "id": one.id, "score": one.score} for one in found.contexts],
        "history": [{"role": one.role, "text": one.text} for one in found.history],
        "attributes": dict(found.attributes),
        "started_at": _moment(found.started_at),
    }


def _score(found: Score) -> dict[str, Any]:
    names = ("scorer", "fingerprint", *_OF_SCORE, "latency")
    made = {name: getattr(found, name) for name in names}
    return {**made, "details": dict(found.details), "scored_at": _moment(found.scored_at)}


def _work(found: Work) -> dict[str, Any]:
    names = ("scorer", "fingerprint", "state", "error", "tries", "again")
    reason = found.reason.value if found.reason else None
    return {**{name: getattr(found, name) for name in names}, "reason": reason, "not_before": _moment(found.not_before)}


def _label(found: Feedback) -> dict[str, Any]:
    return {
        "score": found.score,
        "comment": found.comment,
        "user": found.user,
        "created_at": _moment(found.created_at),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
