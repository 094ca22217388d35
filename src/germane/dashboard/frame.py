"""What stands around every page."""

from __future__ import annotations

from dataclasses import dataclass

from germane.dashboard.desk import Desk
from germane.dashboard.health import Health, health_of
from germane.dashboard.situation import TOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The little that every page shows of the whole."""

    open_alerts: int
    health: Health


def frame_of(desk: Desk, health: Health | None = None) -> Frame:
    """Return it by a few short readings, which are fewer where it is known already how scoring does."""
    told = sum(alert.state in TOLD for alert in desk.store.open_alerts())
    return Frame(open_alerts=told, health=health or health_of(desk))
