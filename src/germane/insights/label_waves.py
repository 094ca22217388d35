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
    service: str | None = None,
    route: str | None = None,
) -> LabelWave:
    """Draw a wave from the answers of a window. The scorer defaults to the one that pages show.

    Raises:
        UsageError: The count is out of range, or no answer can be drawn.
    """
    services = store.trends.window_summary(since=since, until=until).services
    chosen = choose_scorer((group for group in services if service in {None, group.service}), scorer)
    population = LabelPopulation(since=since, until=until, scorer=chosen or RELEVANCY, service=service, route=route)
    return store.draws.draw(population, count)
