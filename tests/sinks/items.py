"""Exchanges with scores and labels, as they are passed to sinks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from germane.storage.answers.store_sinks import SinkItem, SinkLabel, SinkScore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_score(**given: Any) -> SinkScore:
    """Return a score by a judge."""
    values: dict[str, Any] = {
        "scorer": "answer_relevancy",
        "fingerprint": "f1",
        "value": 0.75,
        "label": "mostly_relevant",
        "explanation": "It answers most of the question.",
        "judge": "larch-2",
        "scored_at": NOON,
    }
    return SinkScore(**values | given)


def a_label(**given: Any) -> SinkLabel:
    """Return a label by Ada."""
    values: dict[str, Any] = {"id": "l1", "score": 1.0, "comment": "Right.", "user": "ada", "created_at": NOON}
    return SinkLabel(**values | given)


def an_item(number: int = 1, *scores: SinkScore, labels: tuple[SinkLabel, ...] = ()) -> SinkItem:
    """Return an exchange with one score, or with the given scores and labels."""
    return SinkItem(
        exchange_id=f"x{number}",
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        service="shop",
        route="docs",
        scores=scores if scores or labels else (a_score(),),
        labels=labels,
    )
