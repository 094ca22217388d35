"""What is usual: the levels of the baseline in force, which alerts and the command line go by as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

from germane.baseline import Baseline, RouteBaseline
from germane.storage import BaselineVersion, Overall, RouteSummary, ServiceSummary
from germane.storage.stats.estimate import Interval, Sums, interval_of

_WHOLE: Final = ""
"""The scope of a baseline of all answers."""
_Summary = TypeVar("_Summary", RouteSummary, ServiceSummary)


def baseline_of(
    versions: Iterable[BaselineVersion], service: str, scorer: str, fingerprint: str
) -> BaselineVersion | None:
    """Return the baseline in force for all answers of a service, by one fingerprint; None while it is learned."""
    key = (service, scorer, fingerprint, _WHOLE)
    return next((one for one in versions if one.status == "active" and one.baseline and one.key == key), None)


def level_of(known: Baseline, route: str | None) -> tuple[float, int] | None:
    """Return mean and n of a route, or of the service as a whole; None of a route that has no level of its own."""
    of_route = known if route is None else known.routes.get(route)
    pooled = route in known.pooled
    return None if of_route is None or pooled else (of_route.mean, of_route.n)


def frozen(found: Overall, known: Baseline) -> Overall:
    """Return what was read of the time of a baseline, at the levels that it has kept.

    What was read differs from them a little: scores come late, are made anew, and of many the detector takes a sample.
    Where it differs for sure they are of other scores: values under 0 count as 0 in a baseline. How many exchanges a
    route had is put as the scores that its level is made of.
    """
    zeros = sum(one.n - one.committed for one in known.routes.values())
    services = [_at(one, known, zeros) if one.fingerprint == known.fingerprint else one for one in found.services]
    return replace(found, services=services, routes=[_route(one, known) for one in found.routes])


def _route(read: RouteSummary, known: Baseline) -> RouteSummary:
    kept = None if read.route in known.pooled else known.routes.get(read.route)
    # The level of the whole is that of its routes by scores: so they are weighed where they are put together.
    weight = max(1, round(read.n * known.keep)) if kept is None else kept.n
    weighed = replace(read, coverage=replace(read.coverage, seen=weight))
    if kept is None or read.fingerprint != known.fingerprint:
        return weighed
    return _at(weighed, kept, kept.n - kept.committed)


def _at(read: _Summary, kept: Baseline | RouteBaseline, zeros: int) -> _Summary:
    if kept.n < 2 or read.interval is None:
        return read
    interval = interval_of(_sums(kept, zeros), kept.mean)
    if not _meet(interval, read.interval):
        return read
    return replace(read, n=kept.n, mean=kept.mean, deviation=kept.deviation, interval=interval, correlation=None)


def _sums(kept: Baseline | RouteBaseline, zeros: int) -> Sums:
    """Return the sums over scores that all weigh the same."""
    n, total = kept.n, kept.n * kept.mean
    squares = (n - 1) * kept.deviation**2 + n * kept.mean**2
    return Sums(
        n=n,
        n_zero=zeros,
        w=n,
        w_zero=zeros,
        ww=n,
        ww_zero=zeros,
        wy=total,
        wyy=squares,
        wwy=total,
        wwyy=squares,
        w_low=0,
        w_noncommittal=0,
    )


def _meet(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
