"""Read-only access to a tracking database, for applications, notebooks and scripts."""

from __future__ import annotations

from typing import Self

from germane.storage.alerting.alerts import AlertReader
from germane.storage.answers.store_answers import AnswerReader
from germane.storage.answers.store_labels import LabelReader
from germane.storage.db import migrate
from germane.storage.db.component import StoreContext
from germane.storage.db.engine import Database
from germane.storage.trends.store_trends import TrendReader


class Store:
    """Read-only access to a tracking database. Thread-safe.

    Example::

        with germane.Store("sqlite:///germane.db") as store:
            for scored in store.answers.worst(limit=3):
                print(scored.score.value, scored.exchange.question)

    Methods raise :class:`~germane.errors.DatabaseUnreachable` if the database is not working, and
    :class:`~germane.errors.DatabaseNotMigrated` if its tables are missing, or older or newer than this version of
    germane expects.

    Args:
        url: SQLAlchemy URL of an SQLite or PostgreSQL database.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database.
    """

    answers: AnswerReader
    """Exchanges and their scores."""
    trends: TrendReader
    """Means and coverage over time and by group, comparisons and markers."""
    alerts: AlertReader
    """Open and past alerts."""
    labels: LabelReader
    """Human labels and calibrations."""

    def __init__(self, url: str = "sqlite:///germane.db") -> None:
        self._database = Database(url)
        context = StoreContext(self._database)
        self.answers = AnswerReader(context)
        self.trends = TrendReader(context)
        self.alerts = AlertReader(context)
        self.labels = LabelReader(context)

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The database URL without the password, for display."""
        return self._database.name

    def check(self) -> None:
        """Check that the database is reachable and that its tables match this version of germane."""
        migrate.check(self._database)

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        self._database.close()
