"""What the doctor finds of limits and of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from germane.cli.doctor.finding import Finding
from germane.errors import SettingsError

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store

LATELY: Final = timedelta(minutes=10)
"""A limit that something waited for within it is in the way."""


@dataclass(frozen=True, slots=True)
class LimitInUse:
    """A limit, and how long the last request waited for its turn."""

    setting: str
    waited: float | None
    """Seconds that the last request waited; None before any."""
    ago: timedelta

    @property
    def is_recent(self) -> bool:
        """Whether something waited for it of late."""
        return self.waited is not None and self.ago < LATELY


def limits_in_use(store: Store, settings: Settings, now: datetime) -> list[LimitInUse]:
    """Return the limits in force."""
    from germane.monitor.pace import limits_of

    uses = {use.name: use for use in store.limit_uses()}
    found = []
    for limit in limits_of(settings):
        use, setting = uses.get(limit.name), f"{limit.name}_per_minute"
        ago = timedelta() if use is None else now - use.used_at
        found.append(LimitInUse(setting, None if use is None else use.waited, ago))
    return found


def look_at_limits(settings: Settings, limits: Sequence[LimitInUse]) -> Iterator[Finding]:
    """Tell of each limit in force how long work waits for it."""
    for use in limits:
        told = f"{getattr(settings, use.setting):g}, for all processes on this database together"
        if use.waited is None:
            yield Finding(use.setting, "ok", f"{told}; no request has asked for its turn yet")
        else:
            waited = f"the last request, {use.ago.total_seconds():.0f} s ago, waited {use.waited:.1f} s for its turn"
            yield Finding(use.setting, "ok", f"{told}; {waited}")


def look_at_budget(store: Store, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Tell what of the budget is spent. That it is used up is what it is for."""
    from germane.monitor.spending import check_price, spent_of, spent_until

    budget = settings.budget
    if budget is None:
        return
    try:
        check_price(settings)
    except SettingsError as error:
        yield Finding("budget", "fault", str(error), "set the price, or limit calls or tokens instead")
    spent = store.spent()
    told = f"today (UTC) {'; '.join(spent_of(budget, spent, now))}"
    until = spent_until(budget, spent, now)
    if until is None:
        yield Finding("budget", "ok", f"{told}; for all processes on this database together")
    else:
        message = f"{told}: it is spent until {until:%Y-%m-%d %H:%M} UTC, and what is to be scored till then is skipped"
        yield Finding("budget", "note", message, "raise it, or leave it at that")
