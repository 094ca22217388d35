"""The part of a store that reads back: exchanges and their scores, counts, what waits and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from germane.calibration import Calibration
from germane.exchange import Exchange
from germane.score import Score
from germane.storage.answers import calibrations, readers
from germane.storage.answers.lowest_scores import Chosen
from germane.storage.answers.readers import Counts, Scored
from germane.storage.db.component import Part
from germane.storage.queue import backlog, feedback, health
from germane.storage.queue import health as manner
from germane.storage.queue import health as pulse
from germane.storage.queue.backlog import Backlog, Outstanding
from germane.storage.queue.feedback import Labelled
from germane.storage.queue.health import Manner, Pulse, Trouble
from germane.storage.quota import traffic_forecast as traffic
from germane.storage.quota.traffic_forecast import Traffic, Usage


class Reports(Part):
    """What people and pages ask of a database. Nothing here writes."""

    def exchanges(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[Exchange]:
        """Return exchanges, newest first."""
        with self._database.read() as connection:
            return readers.exchanges(connection, since, until, route, limit)

    def feedback(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[Labelled]:
        """Return people's labels given since <= created_at < until, with their exchanges, newest first.

        A label whose exchange is not here (yet) is left out.
        """
        with self._database.read() as connection:
            return feedback.labelled(connection, since, until, route, limit)

    def exchanges_of(self, ids: Sequence[str]) -> dict[str, Exchange]:
        """Return exchanges by their ids; one that is not here is left out."""
        with self._database.read() as connection:
            return readers.exchanges_of(connection, ids)

    def scores_of(self, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
        """Return the scores of exchanges, by exchange; one that has none is left out."""
        with self._database.read() as connection:
            return readers.scores_of(connection, exchange_ids)

    def calibrations(self) -> list[Calibration]:
        """Return the newest floor of each embedder and scorer."""
        with self._database.read() as connection:
            return calibrations.newest(connection)

    def worst(
        self,
        *,
        scorer: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        fingerprint: str | None = None,
        service: str | None = None,
        label: str | None = None,
        low: bool = False,
        limit: int = 10,
    ) -> list[Scored]:
        """Return the lowest scores with their exchanges, lowest first, of equal ones the newest first.

        ``low`` leaves out what does not lie in the lowest band.
        """
        chosen = Chosen(
            since=since, until=until, scorer=scorer, service=service, route=route, fingerprint=fingerprint, label=label,
            low=low,
        )  # fmt: skip
        with self._database.read() as connection:
            return readers.worst(connection, chosen, limit)

    def traffic(self, *, since: datetime) -> Traffic:
        """Return how many exchanges began since then."""
        with self._database.read() as connection:
            return traffic.traffic(connection, since)

    def sample(self, *, since: datetime, limit: int) -> list[Exchange]:
        """Return a uniform sample of the exchanges that began since then, oldest first; always the same one."""
        with self._database.read() as connection:
            return traffic.sample(connection, since, limit)

    def usage(self, *, since: datetime) -> list[Usage]:
        """Return what scores took of answers given since then, by scorer: those of which a judge's server told."""
        with self._database.read() as connection:
            return traffic.usage(connection, since)

    def troubles(self) -> list[Trouble]:
        """Return what tasks wait for that were tried in vain, the most common first."""
        with self._database.read() as connection:
            return health.troubles(connection)

    def outstanding(self) -> Outstanding:
        """Return what is still to be decided on and to be scored."""
        with self._database.read() as connection:
            return backlog.outstanding(connection, self._moment(connection))

    def backlog(self, *, lately: timedelta) -> Backlog:
        """Return what waits to be scored and for how long; a process that told of itself ``lately`` scores."""
        with self._database.read() as connection:
            return backlog.backlog(connection, self._moment(connection), lately)

    def pulse(self) -> Pulse:
        """Return how scoring does at this moment: cheap enough for every page."""
        with self._database.read() as connection:
            return pulse.pulse(connection, self._moment(connection))

    def manner(self, *, newest: int = 1000) -> Manner:
        """Return how the newest exchanges were sampled, and whether their text was kept."""
        with self._database.read() as connection:
            return manner.manner(connection, newest)

    def counts(self, *, at_most: int | None = None) -> Counts:
        """Return how much there is of everything.

        Args:
            at_most: Of exchanges, scores and tasks that are closed no more than so many are counted: all of ten million
                take seconds. What waits is counted in full.
        """
        with self._database.read() as connection:
            return readers.counts(connection, at_most)
