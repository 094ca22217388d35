"""The part of a store that compares two stretches of time, and keeps the marks between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from germane.annotation import Mark
from germane.errors import UsageError
from germane.storage import marks, pairing
from germane.storage.comparison import Comparisons, Window
from germane.storage.means import RouteSummary
from germane.storage.trends import Trends


class Comparing(Trends):
    """Before and after: the numbers of both sides are those that :meth:`summary` gives."""

    def add_marks(self, given: Sequence[Mark]) -> None:
        """Write marks; one whose id is here already is ignored."""
        with self._writing() as connection:
            marks.add(connection, given)

    def marks(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        service: str | None = None,
        name: str | None = None,
        limit: int | None = 100,
    ) -> list[Mark]:
        """Return marks of since <= at < until, newest first; all of them where ``limit`` is None."""
        with self._database.read() as connection:
            return marks.marks(connection, since, until, limit, service=service, name=name)

    def compare(
        self,
        *,
        since: datetime | Mark,
        until: datetime | None = None,
        before: Window | None = None,
        service: str | None = None,
        route: str | None = None,
        scorer: str | None = None,
        min_drop: float = 0.0,
    ) -> Comparisons:
        """Compare the answers given since a moment with those of a stretch before it.

        Args:
            since: A moment, or a mark's.
            until: The end; by default now.
            before: From and to; by default the stretch before ``since`` that is as long as the one behind it.
            service: Only this one.
            route: Only this one; then no service is compared as a whole.
            scorer: Only this one.
            min_drop: A drop is none unless it is larger than this for sure; from 0 to 2.

        Raises:
            UsageError: a moment has no time zone, or a stretch has no length, or ``min_drop`` is below 0.
        """
        start = since.at if isinstance(since, Mark) else since
        after = _window((start, until or self._now()))
        earlier = _window(before or (start - (after[1] - after[0]), start))
        if not 0 <= min_drop <= 2:
            raise UsageError(f"min_drop = {min_drop} is not from 0 to 2")
        names = {"service": service, "route": route, "scorer": scorer}
        old, new = (
            _chosen(self.summary(since=one[0], until=one[1], histograms=False), names) for one in (earlier, after)
        )
        return pairing.comparisons(old, new, (earlier, after), min_drop=min_drop, whole=route is None)

    def _now(self) -> datetime:
        with self._database.read() as connection:
            return self._moment(connection)


def _chosen(found: Iterable[RouteSummary], names: dict[str, str | None]) -> list[RouteSummary]:
    return [one for one in found if all(value in {None, getattr(one, name)} for name, value in names.items())]


def _window(given: Window) -> Window:
    """Return a stretch in UTC.

    Raises:
        UsageError: a moment has no time zone, or the end is not after the beginning.
    """
    for moment in given:
        if moment.tzinfo is None:
            raise UsageError(f"{moment} has no time zone")
    start, end = (moment.astimezone(UTC) for moment in given)
    if end <= start:
        raise UsageError(f"nothing lies between {start:%Y-%m-%d %H:%M:%S} and {end:%Y-%m-%d %H:%M:%S} UTC")
    return start, end
