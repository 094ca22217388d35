"""Scores and labels in one form, for backends that store both in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from germane.sinks.sink import HUMAN_LABEL
from germane.storage import SinkItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """A score or a label."""

    name: str
    key: str
    """The fingerprint of the score, or the person who gave the label. With the name, it identifies the assessment of a
    span."""
    annotator: Literal["LLM", "CODE", "HUMAN"]
    value: float
    label: str | None = None
    explanation: str | None
    metadata: Mapping[str, str]
    superseded: tuple[str, ...] = ()
    """Keys of older assessments, which this one replaces."""


def assessments(item: SinkItem) -> Iterator[Assessment]:
    """Yield the scores and the labels of an exchange."""
    shared = {"exchange_id": item.exchange_id, "service": item.service, "route": item.route}
    for score in item.scores:
        at = {"scored_at": score.scored_at.isoformat(), "fingerprint": score.fingerprint}
        yield Assessment(
            name=score.scorer,
            key=score.fingerprint,
            annotator="CODE" if score.judge is None else "LLM",
            value=score.value,
            label=score.label,
            explanation=score.explanation,
            metadata={**shared, **at, **_present("judge", score.judge)},
            superseded=score.superseded,
        )
    for label in item.labels:
        yield Assessment(
            name=HUMAN_LABEL,
            key=label.user or label.id,
            annotator="HUMAN",
            value=label.score,
            explanation=label.comment,
            metadata={**shared, "labeled_at": label.created_at.isoformat(), **_present("user", label.user)},
        )


def _present(name: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {name: value}
