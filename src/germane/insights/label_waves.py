"""Waves of drawn answers, for the scorer that pages show."""

from __future__ import annotations

from datetime import datetime

from germane.insights.context import RELEVANCY, choose_scorer
from germane.storage import LabelPopulation, LabelWave, TrackingStore


def draw_wave(
    store: TrackingStore,
    count: int,
    since: datetime,
    until: datetime,
    *,
    scorer: str | None = None,
    wave: str | None = None,
    **names: str | None,
) -> LabelWave:
    """Draw a wave of a window, service and route. The scorer defaults to the one that pages show.

    A wave that already has the id ``wave`` is returned instead.

    Raises:
        UsageError: The count is out of range, or no answer can be drawn.
    """
    services = store.trends.window_summary(since=since, until=until, service=names.get("service")).services
    chosen = choose_scorer(services, scorer) or RELEVANCY
    return store.draws.draw(LabelPopulation(since=since, until=until, scorer=chosen, **names), count, wave=wave)
