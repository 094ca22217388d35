"""What is normal for scores: the mean of the baseline that is gone by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane.cli.core.output import harmless

if TYPE_CHECKING:
    from germane.storage import BaselineVersion, Store


def usual_mean(
    store: Store, scorer: str | None, fingerprint: str, *, service: str | None, route: str | None
) -> float | None:
    """Return it, of a route or of the service as a whole; None where there is none, or more than one."""
    from germane.insights.baseline_level import level_of

    found = [
        one.baseline
        for one in store.baselines()
        if one.status == "active" and one.baseline is not None and not one.key.scope
        if (one.key.scorer, one.key.fingerprint) == (scorer, fingerprint)
        if service in {None, one.key.service}
    ]
    if len(found) != 1:
        return None
    level = level_of(found[0], route)
    return None if level is None else level[0]


LEAST = 30
"""Scores that it takes at least."""


def line(version: BaselineVersion, now: datetime) -> str:
    """Say until when a baseline is being learned; where that is over, nobody has looked since."""
    what = "new routes of " if version.reason == "route_joined" else ""
    about = f"{what}{harmless(version.key.scorer, 40)} of {harmless(version.key.service, 40)}"
    until = f"{version.until:%Y-%m-%d %H:%M} UTC"
    if version.until <= now:
        return f"learning until {until}, and nobody has looked since: {about}; drops are noticed once something watches"
    return f"learning until {until}: {about}; drops are noticed from then on, if {LEAST} scores have come"


def as_dicts(versions: Sequence[BaselineVersion]) -> list[dict[str, Any]]:
    """Return what is being learned ready for JSON."""
    return [{**one.key._asdict(), "reason": one.reason, "since": one.since, "until": one.until} for one in versions]
