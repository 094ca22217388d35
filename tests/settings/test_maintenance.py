"""Recurring maintenance windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
from tests.alerting.channels.conftest import an_alert
from tests.cases import each

from germane.settings.maintenance import MaintenanceWindow

TIMES = st.times().map(lambda value: value.replace(microsecond=0))


@each(
    ("moment", "is_active"),
    [
        ("2026-03-06T21:59", False),  # a Friday
        ("2026-03-06T22:00", True),
        ("2026-03-07T01:59", True),
        ("2026-03-07T02:00", False),
        ("2026-03-07T22:30", False),  # not on Saturdays
        ("2026-03-29T22:30", False),
    ],
)
def test_a_maintenance_window_can_end_on_the_next_day(moment: str, is_active: bool) -> None:
    """The configured days are those on which the window starts."""
    window = MaintenanceWindow.model_validate({"days": ["fri"], "start": "22:00", "end": "02:00"})
    assert window.is_active(datetime.fromisoformat(moment).replace(tzinfo=UTC)) is is_active


@given(TIMES, TIMES, st.integers(0, 10_000))
def test_every_minute_is_inside_exactly_one_of_two_complementary_windows(
    start: object, end: object, minutes: int
) -> None:
    """This holds in any timezone, including when clocks change."""
    if start == end:
        return
    zone = "Europe/Berlin"
    at = datetime(2026, 3, 26, tzinfo=ZoneInfo(zone)).astimezone(UTC) + timedelta(minutes=minutes)
    one = MaintenanceWindow.model_validate({"start": start, "end": end, "timezone": zone})
    other = MaintenanceWindow.model_validate({"start": end, "end": start, "timezone": zone})
    assert one.is_active(at) is not other.is_active(at)


def test_a_maintenance_window_covers_matching_alerts() -> None:
    """Alerts without a route do not match any route pattern."""
    noon = datetime(2026, 3, 6, 12, tzinfo=UTC)
    window = MaintenanceWindow.model_validate({"start": "00:00", "end": "00:00", "routes": ["docs-*"]})

    assert window.covers(an_alert(labels={"service": "shop", "route": "docs-api"}), noon)
    assert not window.covers(an_alert(labels={"service": "shop", "route": "support"}), noon)
    assert not window.covers(an_alert(labels={"service": "shop"}), noon)
