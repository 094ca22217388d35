"""The part of a store by which people look at single answers, and have them scored again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from germane.storage.answers import detail
from germane.storage.answers.detail import Disagreement, Sheet
from germane.storage.answers.filter import AnswerFilter, AnswerPage, Place, Sort, Total
from germane.storage.answers.search import Neighbours, neighbours, page, total
from germane.storage.db.component import Part
from germane.storage.queue import rescore as rescoring
from germane.storage.queue.rescore import Pair, Rescored
from germane.storage.quota import budget_ledger


class Reviewing(Part):
    """Answers by a filter, one answer with all that is known of it, and the wish to have some scored again."""

    def answers(
        self, chosen: AnswerFilter, *, sort: Sort = "lowest", after: Place | None = None, limit: int = 50
    ) -> AnswerPage:
        """Return the next answers after a place, in the order that is asked for; what has no score by time.

        Args:
            chosen: Which.
            sort: The lowest of all are found however many there are, unless what is asked for is rare; that, and any
                other order, is of the newest answers of the window, and the page says how far back they reach.
            after: Where the page before ended.
            limit: How many, at most.
        """
        with self._database.read(snapshot=True) as connection:
            return page(connection, chosen, sort, after, limit)

    def count_answers(self, chosen: AnswerFilter) -> Total:
        """Return how many answers fit, up to a thousand."""
        with self._database.read() as connection:
            return total(connection, chosen)

    def neighbours(self, chosen: AnswerFilter, exchange_id: str, *, sort: Sort = "lowest") -> Neighbours:
        """Return who stands before and behind an exchange in that order, of the first five hundred."""
        with self._database.read() as connection:
            return neighbours(connection, chosen, exchange_id, sort)

    def sheet(self, exchange_id: str) -> Sheet | None:
        """Return all that is known of one exchange; None where it is not here."""
        with self._database.read(snapshot=True) as connection:
            return detail.sheet(connection, exchange_id)

    def disagreements(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        scorer: str | None = None,
        route: str | None = None,
        service: str | None = None,
        fingerprint: str | None = None,
        newest: int = detail.LABELS,
    ) -> list[Disagreement]:
        """Return how often people disagree with scores, by scorer and fingerprint; the window is that of the answers.

        Of very many labels the ``newest`` count.
        """
        equal = {"scorer": scorer, "route": route, "service": service, "fingerprint": fingerprint}
        with self._database.read(snapshot=True) as connection:
            return detail.disagreements(connection, since, until, equal, newest)

    def rescore(self, asked: Sequence[Pair], scorers: Mapping[str, str], *, budgeted: bool = False) -> Rescored:
        """Have answers scored again by those who score; at most a few thousand at a time.

        A score of the same fingerprint stands until the new one takes its place, and stays if none comes about.

        Args:
            asked: Ids of exchanges, each with the name of a scorer.
            scorers: Fingerprints by name, as they are in force: another one than an answer was scored with is added.
            budgeted: Whether a budget is in force: what is scored is then counted as picked.
        """
        with self._database.write() as connection:
            now = self._moment(connection)
            found, ready = rescoring.rescore(connection, self._process, asked, scorers, now)
            if budgeted and ready:
                budget_ledger.count_picked(connection, len(ready), now)
        return found
