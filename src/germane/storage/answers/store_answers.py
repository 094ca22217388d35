"""Reading exchanges and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from germane.exchange import Exchange
from germane.score import Score
from germane.storage.answers import detail, readers, search
from germane.storage.answers.detail import AnswerDetail
from germane.storage.answers.filter import AnswerCursor, AnswerFilter, AnswerPage, AnswerSort, MatchCount
from germane.storage.answers.lowest_scores import ScoreFilter
from germane.storage.answers.readers import RowCounts, ScoredExchange
from germane.storage.answers.search import AnswerNeighbors
from germane.storage.db.component import StoreComponent
from germane.storage.quota import traffic_forecast


class AnswerReader(StoreComponent):
    """Exchanges and their scores. ``germane.Store(url).answers``; a window is since <= started_at < until."""

    def list_exchanges(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        route: str | None = None,
        limit: int = 100,
    ) -> list[Exchange]:
        """Return exchanges, newest first."""
        with self._database.read() as connection:
            return readers.list_exchanges(connection, since, until, route, limit)

    def get_exchanges(self, ids: Sequence[str]) -> dict[str, Exchange]:
        """Return exchanges by id. Unknown ids are omitted."""
        with self._database.read() as connection:
            return readers.load_exchanges(connection, ids)

    def get_scores(self, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
        """Return the scores of exchanges by exchange id. Exchanges without a score are omitted."""
        with self._database.read() as connection:
            return readers.load_scores(connection, exchange_ids)

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
    ) -> list[ScoredExchange]:
        """Return the lowest scores with their exchanges, lowest first; equal scores newest first.

        Args:
            scorer: Only scores of this scorer.
            since: Start of the window.
            until: End of the window.
            route: Only answers of this route.
            fingerprint: Only scores with this fingerprint.
            service: Only answers of this service.
            label: Only scores with this label, such as ``noncommittal``.
            low: Only scores in the lowest band.
            limit: Maximum number of scores.
        """
        chosen = ScoreFilter(
            since=since, until=until, scorer=scorer, service=service, route=route, fingerprint=fingerprint, label=label,
            low=low,
        )  # fmt: skip
        with self._database.read() as connection:
            return readers.load_lowest_scores(connection, chosen, limit)

    def counts(self, *, at_most: int | None = None) -> RowCounts:
        """Return the number of exchanges, tasks by state, and scores.

        Args:
            at_most: Stop counting exchanges, scores and closed tasks at this number: counting ten million rows takes
                seconds. Open tasks are always counted in full.
        """
        with self._database.read() as connection:
            return readers.count_rows(connection, at_most)


class AnswerStore(AnswerReader):
    """Adds the searches of the dashboard and the command line."""

    def search(
        self, chosen: AnswerFilter, *, sort: AnswerSort = "lowest", after: AnswerCursor | None = None, limit: int = 50
    ) -> AnswerPage:
        """Return one page of answers. Answers without a score are always sorted by time.

        Args:
            chosen: The filter.
            sort: With ``lowest``, all answers of the window are considered unless the filter is rare. A rare filter and
                any other order consider only the newest answers of the window; the page states how far back.
            after: Where the previous page ended.
            limit: Maximum number of answers.
        """
        with self._database.read(snapshot=True) as connection:
            return search.load_page(connection, chosen, sort, after, limit)

    def count_matches(self, chosen: AnswerFilter) -> MatchCount:
        """Return the number of answers that match a filter, counted up to 1,000."""
        with self._database.read() as connection:
            return search.count_matches(connection, chosen)

    def find_neighbors(self, chosen: AnswerFilter, exchange_id: str, *, sort: AnswerSort = "lowest") -> AnswerNeighbors:
        """Return the exchanges before and after an exchange among the first 500 matches."""
        with self._database.read() as connection:
            return search.find_neighbors(connection, chosen, exchange_id, sort)

    def load_detail(self, exchange_id: str) -> AnswerDetail | None:
        """Return one exchange with its scores, tasks and labels; None if the id is unknown."""
        with self._database.read(snapshot=True) as connection:
            return detail.load_detail(connection, exchange_id)

    def sample_exchanges(self, *, since: datetime, limit: int) -> list[Exchange]:
        """Return a uniform sample of the exchanges since then, oldest first. Repeated calls return the same sample."""
        with self._database.read() as connection:
            return traffic_forecast.sample_exchanges(connection, since, limit)
