"""Who is notified of drops on routes: silences, maintenance windows, channel filters and severities together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from germane.alert import SEVERITIES, Alert, AlertChange, AlertEvent, Silence, alert_key
from germane.alerting.notifier import Notifier
from germane.settings import MaintenanceWindow, SlackSettings

NOW = datetime(2026, 3, 6, 3, tzinfo=UTC)
ROUTES = ("docs-api", "docs-web", "support")
FALLEN = st.tuples(st.sampled_from(ROUTES), st.sampled_from(["warning", "critical"]))
PATTERNS = st.sampled_from(["docs-*", "docs-web", "support", "*", "none"])


def drop(route: str | None, severity: str) -> Alert:
    """Return a firing drop."""
    labels = {"service": "shop", "scorer": "relevancy"} | ({} if route is None else {"route": route})
    return Alert(
        id=f"{route}",
        key=alert_key("drop", labels),
        rule="drop",
        type="drop",
        labels=labels,
        state="firing",
        severity=severity,  # type: ignore[arg-type]
        starts_at=NOW,
        fired_at=NOW,
        evaluated_at=NOW,
    )


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.sampled_from(ROUTES), st.sampled_from(["warning", "critical"])), unique_by=lambda each: each[0]
    ),
    st.lists(PATTERNS, max_size=2),
    st.lists(st.tuples(PATTERNS, st.booleans()), max_size=2),
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.tuples(st.lists(PATTERNS, max_size=2), st.sampled_from(SEVERITIES)),
        max_size=3,
    ),
)
def test_channels_receive_exactly_the_alerts_that_they_should(
    fallen: list[tuple[str, str]],
    silenced: list[str],
    windows: list[tuple[str, bool]],
    channels: dict[str, tuple[list[str], str]],
) -> None:
    """A channel is notified about a route unless a silence, a maintenance window or its filters exclude it."""
    alerts = [drop(route, severity) for route, severity in fallen]
    ids = count()
    events = [
        AlertEvent(id=f"e{alert.id}", alert_id=alert.id, at=NOW, type="fired", after="firing") for alert in alerts
    ]
    changes = [AlertChange(alert=alert, event=event, notify=True) for alert, event in zip(alerts, events, strict=True)]
    hour = timedelta(hours=1)
    quiet = [
        *(Silence(id=name, matchers={"route": name}, starts_at=NOW - hour, ends_at=NOW + hour) for name in silenced),
        *(
            MaintenanceWindow.model_validate({"start": "02:00", "end": "04:00" if now else "02:30", "routes": [name]})
            for name, now in windows
        ),
    ]
    filters = {
        name: SlackSettings.model_validate(
            {"type": "slack", "url": "env:SLACK", "routes": routes, "severity": severity}
        ).matches
        for name, (routes, severity) in channels.items()
    }

    _, notifications = Notifier(filters, quiet, NOW, lambda: f"n{next(ids)}").notify(changes, alerts)

    def is_quiet(route: str) -> bool:
        return any(fnmatchcase(route, name) for name in [*silenced, *(name for name, now in windows if now)])

    expected = {
        (name, route)
        for name, (routes, least) in channels.items()
        for route, severity in fallen
        if not is_quiet(route)
        and (not routes or any(fnmatchcase(route, pattern) for pattern in routes))
        and SEVERITIES.index(severity) >= SEVERITIES.index(least)  # type: ignore[arg-type]
    }
    assert {(each.channel, alert.route) for each in notifications for alert in each.alerts} == expected
    assert len(notifications) == len({each.channel for each in notifications})
