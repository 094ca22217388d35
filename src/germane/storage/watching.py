"""The part of a store in which alerts stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from germane.alert import Alert, AlertState, Event, Severity, Silence
from germane.storage import alerts, flow, narrowing
from germane.storage.alerts import Advance, Overtaken
from germane.storage.flow import Failing, Flow
from germane.storage.means import RouteMean
from germane.storage.part import Part


class Watching(Part):
    """Alerts, what happened to them, and silences. One process at a time moves them: the one that holds the office."""

    def advance(self, step: Advance) -> bool:
        """Write detectors, alerts, events and notifications in one transaction.

        Returns:
            False, and nothing is written, when another process holds the office by now, or somebody has changed
            meanwhile what the step goes by: read anew, and look again.
        """
        try:
            with self._database.write() as connection:
                alerts.advance(connection, step, self._moment(connection))
        except Overtaken:
            return False
        return True

    def open_alerts(self) -> list[Alert]:
        """Return the alerts that are not over, the oldest first."""
        with self._database.read() as connection:
            return alerts.open_alerts(connection)

    def alerts(
        self,
        *,
        since: datetime | None = None,
        state: AlertState | None = None,
        rule: str | None = None,
        severity: Severity | None = None,
        service: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[Alert]:
        """Return alerts that began since then, the newest first.

        Args:
            since: When they began, or later.
            state: Only such.
            rule: Only of this name.
            severity: Only such.
            service: Only of this one.
            after: Beginning and id of the last one of the page before.
            limit: How many at most.
        """
        chosen = alerts.ChosenAlerts(
            since=since, state=state, rule=rule, severity=severity, service=service, after=after
        )
        with self._database.read() as connection:
            return alerts.alerts(connection, chosen, limit)

    def alert(self, alert_id: str) -> Alert | None:
        """Return one alert; None where there is none of that id."""
        with self._database.read() as connection:
            return alerts.alert(connection, alert_id)

    def alert_events(self, alert_id: str) -> list[Event]:
        """Return what happened to an alert, the first first."""
        with self._database.read() as connection:
            return alerts.events(connection, alert_id)

    def silences(self) -> list[Silence]:
        """Return the silences that last or are still to come, the one that ends first first."""
        with self._database.read() as connection:
            return alerts.silences(connection, self._moment(connection))

    def add_silence(self, silence: Silence) -> None:
        """Have nobody told of alerts that match, from ``starts_at`` to ``ends_at``."""
        with self._database.write() as connection:
            alerts.add_silence(connection, silence)

    def end_silence(self, silence_id: str) -> bool:
        """End a silence now; False where there is none that lasts."""
        with self._database.write() as connection:
            return alerts.end_silence(connection, silence_id, self._moment(connection))

    def means_with(
        self,
        attributes: Mapping[str, str],
        *,
        scorer: str,
        since: datetime | None,
        until: datetime | None = None,
        route: str | None = None,
        service: str | None = None,
    ) -> list[RouteMean]:
        """Return one mean per service, route and fingerprint of the answers whose attributes fit all patterns.

        It reads each score of the window.
        """
        with self._database.read() as connection:
            equal = {"scorer": scorer, "route": route, "service": service}
            return narrowing.means_with(connection, attributes, since, until, **equal)

    def flows(
        self, *, since: datetime, until: datetime | None = None, takes: Callable[[str], bool] = lambda _: True
    ) -> list[Flow]:
        """Return whether scores keep coming for answers since then, by service and scorer; ``takes`` chooses routes.

        With ``until`` whether they did then.
        """
        with self._database.read() as connection:
            return flow.flows(connection, since, takes, until)

    def usual_wait(
        self, service: str, scorer: str, *, since: datetime, until: datetime | None = None
    ) -> timedelta | None:
        """Return the time that it takes from one score to the next but once in a hundred times; None if unknown."""
        with self._database.read() as connection:
            return flow.usual_wait(connection, service, scorer, since, until)

    def failing(self) -> list[Failing]:
        """Return what tasks wait for that were tried in vain and are to be tried again."""
        with self._database.read() as connection:
            return flow.failing(connection)
