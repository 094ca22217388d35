"""Recipients of route drops, with silences, maintenance windows, channel filters and severities combined."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.alerting.drop.conftest import HOLDER, Simulation
from tests.conftest import migrated_file

from germane.alert import SEVERITIES, Alert, AlertChange, AlertEvent, Severity, Silence, alert_key
from germane.alerting.evaluator import AlertEvaluator
from germane.alerting.notifier import Notifier
from germane.settings import Settings, SlackSettings
from germane.settings.maintenance import MaintenanceWindow
from germane.storage import TrackingStore

NOW = datetime(2026, 3, 6, 3, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
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
def test_each_channel_receives_exactly_the_alerts_that_its_filters_accept(
    fallen: list[tuple[str, str]],
    silenced: list[str],
    windows: list[tuple[str, bool]],
    channels: dict[str, tuple[list[str], str]],
) -> None:
    """A channel is notified of a route unless a silence, a maintenance window or its filters exclude the route."""
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


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, datetime]]:
    """Databases whose next evaluation finds a drop: on one route, on two of three, on all, and on a new route."""
    folder = tmp_path_factory.mktemp("dropped")
    usual = migrated_file(folder)
    simulation = Simulation(f"sqlite:///{usual}")
    watcher = simulation.new_watcher()
    simulation.add_scores(simulation.values(1), hours=0.01, route="support")
    simulation.evaluate(watcher)
    simulation.pass_days(14, per_day=40, routes=ROUTES)
    simulation.evaluate(watcher)
    simulation.store.close()
    databases = {}
    scenarios: dict[str, dict[str, float]] = {
        "support": {"support": 0.3},
        "docs": {"docs-api": 0.35, "docs-web": 0.35},
        "all": dict.fromkeys(ROUTES, 0.4),
        "new": {"docs-new": 0.1},
    }
    for name, means in scenarios.items():
        path = Path(shutil.copy(usual, folder / f"{name}.db"))
        changed = Simulation(f"sqlite:///{path}", seed=7)
        changed.now = simulation.now
        for _ in range(12):
            for route in (*ROUTES, *(means.keys() - set(ROUTES))):
                changed.add_scores(changed.values(10, mean=means.get(route, 0.8)), hours=1, route=route)
        changed.store.close()
        databases[name] = (path, changed.now)
    return databases


EXPECTED: dict[str, set[str | None]] = {
    "support": {"support"}, "docs": {"docs-api", "docs-web"}, "all": {None}, "new": {"docs-new"}
}  # fmt: skip


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    scenario=st.sampled_from(sorted(EXPECTED)),
    silenced=st.lists(PATTERNS, max_size=2),
    windows=st.lists(st.tuples(PATTERNS, st.booleans()), max_size=2),
    channels=st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.tuples(
            st.lists(PATTERNS, max_size=2), st.sampled_from(SEVERITIES), st.sampled_from([(), ("drop",), ("x",)])
        ),
        max_size=3,
    ),
)
def test_an_evaluation_notifies_exactly_the_channels_whose_filters_accept_the_alert(
    dropped: dict[str, tuple[Path, datetime]],
    tmp_path_factory: pytest.TempPathFactory,
    scenario: str,
    silenced: list[str],
    windows: list[tuple[str, bool]],
    channels: dict[str, tuple[list[str], Severity, tuple[str, ...]]],
) -> None:
    """The test covers the path from stored scores to stored notifications, with alerts from the detector.

    An alert for the whole service has no route: no pattern for routes silences it, and no channel's route filter
    excludes it.
    """
    original, now = dropped[scenario]
    path = shutil.copy(original, tmp_path_factory.mktemp("example") / "germane.db")
    store = TrackingStore(f"sqlite:///{path}", clock=lambda: now)
    midnight = now.replace(hour=0, minute=0)
    quiet = [
        {"start": f"{now - HOUR:%H:%M}", "end": f"{now + HOUR if active else now - HOUR / 2:%H:%M}", "routes": [name]}
        for name, active in windows
    ]
    configured = Settings.model_validate(
        {
            "service": "shop",
            "maintenance": quiet,
            "channels": {
                name: {"type": "slack", "url": "env:SLACK", "routes": routes, "severity": least, "rules": rules}
                for name, (routes, least, rules) in channels.items()
            },
        }
    )
    for number, name in enumerate(silenced):
        store.alerts.add_silence(
            Silence(id=str(number), matchers={"route": name}, starts_at=midnight - DAY, ends_at=now + DAY)
        )
    evaluator = AlertEvaluator(
        store,
        configured,
        holder=HOLDER,
        scorers=["relevancy"],
        channels={name: channel.matches for name, channel in configured.channels.items()},
        clock=lambda: now,
    )
    evaluator.evaluate()
    alerts = [alert for alert in store.alerts.list_open() if alert.type == "drop"]
    sent = [record.notification for record in store.notifications.search(limit=100)]
    store.close()

    def is_quiet(route: str | None) -> bool:
        patterns = [*silenced, *(name for name, active in windows if active)]
        return route is not None and any(fnmatchcase(route, pattern) for pattern in patterns)

    assert {alert.route for alert in alerts} == EXPECTED[scenario]
    assert {(each.channel, alert.route) for each in sent for alert in each.alerts} == {
        (name, alert.route)
        for name, (routes, least, rules) in channels.items()
        for alert in alerts
        if not is_quiet(alert.route)
        and (not routes or alert.route is None or any(fnmatchcase(alert.route, pattern) for pattern in routes))
        and (not rules or "drop" in rules)
        and SEVERITIES.index(alert.severity) >= SEVERITIES.index(least)
    }
