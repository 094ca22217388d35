"""Recurring maintenance windows, during which no notifications are sent."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from germane.alert import Alert
from germane.settings.rules import Name
from germane.settings.types import Names, NestedSettings, Timezone, matches_patterns, parse_timezone

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _without_zone(value: time) -> time:
    if value.tzinfo is not None:
        raise ValueError("must be a time of day without a timezone, such as 02:00; set the timezone with `timezone`")
    return value


TimeOfDay = Annotated[time, AfterValidator(_without_zone)]


class MaintenanceWindow(NestedSettings):
    """A recurring period in which matching alerts send no notifications. It does not affect the state of alerts."""

    name: Name = "maintenance"
    """Name of the window."""
    days: tuple[Weekday, ...] = Field(default=WEEKDAYS, min_length=1)
    """The days on which the window starts, such as `["sat", "sun"]`. By default, every day."""
    start: TimeOfDay
    """Time of day at which the window starts, such as `02:00`."""
    end: TimeOfDay
    """Time of day at which the window ends. If `end` is not after `start`, the window ends on the next day."""
    timezone: Timezone = "UTC"
    """The timezone for `days`, `start` and `end`, such as `Europe/Berlin`."""
    services: Names = ()
    """Service patterns. By default, all services."""
    routes: Names = ()
    """Route patterns. By default, all alerts, including those that are not about a single route."""
    rules: Names = ()
    """Rule name patterns. By default, all rules."""

    def covers(self, alert: Alert, at: datetime) -> bool:
        """Return whether the window applies to an alert at a given time. A missing label matches no pattern."""
        pairs = ((self.services, alert.service), (self.routes, alert.route), (self.rules, alert.rule))
        return all(matches_patterns(patterns, value) for patterns, value in pairs) and self.is_active(at)

    def is_active(self, at: datetime) -> bool:
        """Return whether the window is active at a given time."""
        local = at.astimezone(parse_timezone(self.timezone))
        clock = local.time()
        if self.start < self.end:
            return self._starts_on(local) and self.start <= clock < self.end
        since_yesterday = clock < self.end and self._starts_on(local - timedelta(days=1))
        return since_yesterday or (clock >= self.start and self._starts_on(local))

    def _starts_on(self, day: datetime) -> bool:
        return WEEKDAYS[day.weekday()] in self.days
