"""Baselines as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from germane import sanitize

if TYPE_CHECKING:
    from germane.storage import BaselineVersion, TrackingStore

MIN_BASELINE_SCORES: Final = 30
"""Scores that a baseline needs."""


def find_baseline_mean(
    store: TrackingStore, scorer: str | None, fingerprint: str, *, service: str | None, route: str | None
) -> float | None:
    """Return the active baseline's mean for a route, or for the service; None if there is not exactly one baseline."""
    from germane.insights import baseline_level

    baselines = [
        version.baseline
        for version in store.baselines.list_versions()
        if version.status == "active" and version.baseline is not None and not version.key.scope
        if (version.key.scorer, version.key.fingerprint) == (scorer, fingerprint)
        if service in {None, version.key.service}
    ]
    if len(baselines) != 1:
        return None
    level = baseline_level(baselines[0], route)
    return None if level is None else level[0]


def describe_learning(version: BaselineVersion, now: datetime) -> str:
    """Describe a baseline that is still being learned."""
    new_routes = "new routes of " if version.reason == "route_joined" else ""
    what = f"{new_routes}{sanitize.line(version.key.scorer, 40)} for {sanitize.line(version.key.service, 40)}"
    until = f"{version.until:%Y-%m-%d %H:%M} UTC"
    if version.until <= now:
        return f"learning ended {until}, but no worker has evaluated {what} since; run a worker to detect drops"
    return f"learning until {until}: {what}; drop detection starts then, with at least {MIN_BASELINE_SCORES} scores"


def learning_as_dicts(versions: Sequence[BaselineVersion]) -> list[dict[str, Any]]:
    """Return baselines that are being learned for JSON."""
    return [
        {**version.key._asdict(), "reason": version.reason, "since": version.since, "until": version.until}
        for version in versions
    ]
