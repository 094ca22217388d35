"""What the list of answers shows: a page of them, how many there are, and what else could be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from germane.dashboard.asked import Asked
from germane.dashboard.desk import Desk
from germane.dashboard.headline import scorer_on_show
from germane.storage import Answer, Estimate, Overall, Place, Total

PAGE: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Answers, and what is to be said of them."""

    answers: Sequence[Answer]
    after: Place | None
    looked_back_to: datetime | None
    total: Total
    mean: Estimate | None
    """Of all that the filter takes; None where one would mislead."""
    scorer: str | None
    """Whose scores are shown."""
    scorers: Sequence[str]
    routes: Sequence[str]
    services: Sequence[str]

    @property
    def said(self) -> str:
        """Return how many there are, as far as that was counted."""
        if not self.total.count and not self.total.more:
            return "none"
        if self.total.more:
            return f"more than {self.total.count:,}" if self.total.count else "not counted"
        return f"{self.total.count:,}"


def find(desk: Desk, asked: Asked, *, limit: int = PAGE) -> Found:
    """Look for answers."""
    overall = desk.store.overall(since=asked.view.since, until=asked.view.until)
    scorer = scorer_on_show(overall.services, asked.view.scorer)
    asked = asked.of(scorer)
    page = desk.store.answers(asked.chosen, sort=asked.sort, after=asked.after, limit=limit)
    return Found(
        answers=page.answers,
        after=page.after,
        looked_back_to=page.looked_back_to,
        total=desk.store.count_answers(asked.chosen),
        mean=_mean(desk, asked, overall, scorer),
        scorer=scorer,
        scorers=_names(line.scorer for line in overall.coverage),
        routes=_names(line.route for line in overall.coverage),
        services=_names(line.service for line in overall.coverage),
    )


def _names(found: Iterable[str]) -> list[str]:
    return sorted({name for name in found if name})


def _mean(desk: Desk, asked: Asked, overall: Overall, scorer: str | None) -> Estimate | None:
    """Return the mean of all that is asked for: of one group and fingerprint, and picked by no score."""
    chosen = asked.chosen
    if scorer is None or chosen.by_value:
        return None
    found = _lines(desk, asked, overall, scorer)
    return found[0] if len(found) == 1 else None


def _lines(desk: Desk, asked: Asked, overall: Overall, scorer: str) -> Sequence[Estimate]:
    chosen = asked.chosen
    names = {name: value for name in ("model", "prompt_version") if (value := getattr(chosen, name))}
    if len(names) > 1:
        return []
    if names:
        ((by, label),) = names.items()
        window = {"since": asked.view.since, "until": asked.view.until}
        means = desk.store.means(
            scorer=scorer, route=chosen.route, service=chosen.service, by=by, histograms=False, **window
        )
        return [line for line in means if line.label == label and _is_it(asked, line.fingerprint, newest=line.newest)]
    if chosen.route is None:
        groups = [line for line in overall.services if line.scorer == scorer]
        return [
            line
            for line in groups
            if chosen.service in {None, line.service} and _is_it(asked, line.fingerprint, newest=line.newest)
        ]
    return [
        line
        for line in overall.routes
        if (line.scorer, line.route) == (scorer, chosen.route)
        and chosen.service in {None, line.service}
        and _is_it(asked, line.fingerprint, newest=line.newest)
    ]


def _is_it(asked: Asked, fingerprint: str, *, newest: bool) -> bool:
    wanted = asked.chosen.fingerprint
    return newest if wanted is None else fingerprint == wanted
