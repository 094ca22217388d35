"""The worst answers, for each what it answers in place of the question asked, and whether people agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from germane.exchange import Exchange
from germane.insights.explanation import finite
from germane.score import LOWEST, Score
from germane.storage import Disagreement, RouteMean, Scored, ServiceSummary, Store

WORST: Final = 10
REFUSALS: Final = 3
"""As many of the worst answers may be refusals where there are others."""
LABELS: Final = 200
"""As many of people's newest labels are compared with scores: all of thousands would take too long for a page."""
NONCOMMITTAL: Final = "noncommittal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """One of the worst answers."""

    exchange: Exchange
    score: Score
    reads_like: str | None
    """The written question that is least like the one asked; of scorers that write none why the score is what it is;
    None of a refusal, which has no such questions."""


def worst_answers(store: Store, mean: RouteMean | ServiceSummary, since: datetime, until: datetime) -> list[Worst]:
    """Return the lowest, of which no more than a few are refusals: all of those have 0, and would be the whole list.

    Args:
        store: The database.
        mean: Of whose scores: service, scorer and fingerprint, and the route where it is that of one.
        since: The window is since <= started_at < until.
        until: Its end.
    """

    def lowest(label: str | None) -> list[Scored]:
        return store.worst(
            scorer=mean.scorer,
            service=mean.service,
            route=mean.route if isinstance(mean, RouteMean) else None,
            fingerprint=mean.fingerprint,
            label=label,
            since=since,
            until=until,
            limit=WORST,
        )

    found = lowest(None)
    refusals = [one for one in found if one.score.label == NONCOMMITTAL]
    if len(refusals) > REFUSALS:
        others = [one for one in found if one.score.label != NONCOMMITTAL]
        others = max(others, lowest(LOWEST) if len(found) == WORST else [], key=len)
        shown = max(REFUSALS, WORST - len(others))
        found = sorted([*refusals[:shown], *others], key=lambda one: one.score.value or 0.0)[:WORST]
    return worst_of(found)


def disagreement_of(
    store: Store, mean: RouteMean | ServiceSummary, since: datetime, until: datetime
) -> Disagreement | None:
    """Return how often people disagree with these scores; None where nobody has labelled an answer of the window."""
    found = store.disagreements(
        scorer=mean.scorer,
        service=mean.service,
        route=mean.route if isinstance(mean, RouteMean) else None,
        fingerprint=mean.fingerprint,
        since=since,
        until=until,
        newest=LABELS,
    )
    return found[0] if found else None


def worst_of(found: Sequence[Scored]) -> list[Worst]:
    """Return answers ready to be shown, in their order."""
    return [Worst(exchange=one.exchange, score=one.score, reads_like=reads_like(one.score)) for one in found]


def reads_like(score: Score) -> str | None:
    """Return the written question that is least like the one asked, else the score's explanation."""
    if score.label == NONCOMMITTAL:
        return None
    written = [
        (similarity, one)
        for one in _questions(score.details)
        if (similarity := finite(one.get("similarity"))) is not None
    ]
    _, farthest = min(written, key=lambda pair: pair[0], default=(0.0, None))
    return score.explanation if farthest is None else str(farthest.get("text", ""))


def _questions(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    written = details.get("questions")
    return [one for one in written if isinstance(one, Mapping)] if isinstance(written, list) else []
