"""The part of a store that compares two stretches of time, and keeps the marks between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from germane.annotation import Mark
from germane.errors import UsageError
from germane.storage.stats.models import RouteSummary
from germane.storage.stats.two_sample import (
    Comparison,
    Comparisons,
    Finding,
    Pair,
    Window,
    difference,
    effect,
    finding_of,
    judged,
    standardised,
)
from germane.storage.trends import markers as marks
from germane.storage.trends.store_trends import Trends

Measured = tuple[str, str, str]
"""Service, route and scorer."""
Line = tuple[str, str, str, str]
"""The same, and the fingerprint."""
Whole = tuple[str, str, str]
"""Service, scorer and fingerprint."""


def comparisons(
    before: Iterable[RouteSummary],
    after: Iterable[RouteSummary],
    windows: tuple[Window, Window],
    *,
    min_drop: float = 0.0,
    whole: bool = True,
) -> Comparisons:
    """Return what two summaries say beside each other.

    Args:
        before: Of the earlier stretch of time.
        after: Of the later one.
        windows: Both stretches.
        min_drop: A drop is none unless it is larger than this for sure.
        whole: Whether services are compared as a whole, too.
    """
    old = list(before)
    lines = routes(old, after)
    of_services = services(lines, old) if whole else []
    found = judged([*of_services, *lines], min_drop)
    return Comparisons(
        before=windows[0],
        after=windows[1],
        min_drop=min_drop,
        services=found[: len(of_services)],
        routes=found[len(of_services) :],
    )


def routes(before: Iterable[RouteSummary], after: Iterable[RouteSummary]) -> list[Comparison]:
    """Return one line per service, route, scorer and fingerprint that has scores in either stretch."""
    old, new = _by_line(before), _by_line(after)
    both = {line[:3] for line in old} & {line[:3] for line in new}
    lines = sorted(old.keys() | new.keys())
    return [_route(line, old.get(line), new.get(line), measured=line[:3] in both) for line in lines]


def _by_line(found: Iterable[RouteSummary]) -> dict[Line, RouteSummary]:
    return {(one.service, one.route, one.scorer, one.fingerprint): one for one in found}


def _route(line: Line, before: RouteSummary | None, after: RouteSummary | None, *, measured: bool) -> Comparison:
    """Return one line; ``measured`` is whether both stretches have scores of the route, of whatever fingerprint."""
    service, route, scorer, fingerprint = line
    changed = measured and (before is None or after is None)
    finding: Finding = "judge_changed" if changed else "not_enough_data"
    found = Comparison(
        service=service,
        route=route,
        scorer=scorer,
        fingerprint=fingerprint,
        before=before,
        after=after,
        finding=finding,
    )
    return _measured(found)


def _measured(line: Comparison) -> Comparison:
    """Return the line with the difference, where there is enough on both sides."""
    if line.before is None or line.after is None or not (pair := Pair(line.before, line.after)).enough:
        return line
    apart, interval = difference(pair)
    return replace(line, finding=finding_of(interval), difference=apart, interval=interval, effect=effect(pair))


def services(lines: Sequence[Comparison], before: Sequence[RouteSummary]) -> list[Comparison]:
    """Return one line per service, scorer and fingerprint of which two routes or more have scores in both stretches.

    Each side needs an interval, for which two scores do: the long tail of routes counts by what it is worth.
    """
    seen = {(one.service, one.route, one.scorer): one.coverage.seen or one.n for one in before}
    groups: dict[Whole, list[tuple[int, Pair]]] = {}
    for line in lines:
        if line.before is not None and line.after is not None and (pair := Pair(line.before, line.after)).has_intervals:
            traffic = seen[line.service, line.route or "", line.scorer]
            groups.setdefault((line.service, line.scorer, line.fingerprint), []).append((traffic, pair))
    return [_service(key, parts, _all(key, seen)) for key, parts in groups.items() if len(parts) > 1]


def _all(key: Whole, seen: Mapping[Measured, int]) -> int:
    return sum(count for (service, _, scorer), count in seen.items() if (service, scorer) == key[:2])


def _service(key: Whole, parts: Sequence[tuple[int, Pair]], everything: int) -> Comparison:
    service, scorer, fingerprint = key
    traffic = sum(count for count, _ in parts)
    shares = [count / traffic for count, _ in parts]
    found = Comparison(
        service=service,
        route=None,
        scorer=scorer,
        fingerprint=fingerprint,
        before=standardised([pair.before for _, pair in parts], shares),
        after=standardised([pair.after for _, pair in parts], shares),
        finding="not_enough_data",
        share=traffic / everything,
    )
    return _measured(found)


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
        return comparisons(old, new, (earlier, after), min_drop=min_drop, whole=route is None)

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
