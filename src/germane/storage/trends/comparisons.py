"""Comparison of the summaries of two windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC

from germane.errors import UsageError
from germane.storage.stats.models import RouteSummary
from germane.storage.stats.two_sample import (
    Comparison,
    ComparisonFinding,
    Comparisons,
    EstimatePair,
    TimeWindow,
    classify_interval,
    effect_size,
    mark_significant_drops,
    mean_difference,
    standardize,
)

Measured = tuple[str, str, str]
"""Service, route and scorer."""
Line = tuple[str, str, str, str]
"""Service, route, scorer and fingerprint."""
Whole = tuple[str, str, str]
"""Service, scorer and fingerprint."""


def compare_summaries(
    before: Iterable[RouteSummary],
    after: Iterable[RouteSummary],
    windows: tuple[TimeWindow, TimeWindow],
    *,
    min_drop: float = 0.0,
    whole: bool = True,
) -> Comparisons:
    """Compare two summaries.

    Args:
        before: Summary of the earlier window.
        after: Summary of the later window.
        windows: Both windows.
        min_drop: Only report drops that are significantly larger than this.
        whole: Whether to compare services as a whole, too.
    """
    old = list(before)
    lines = routes(old, after)
    of_services = services(lines, old) if whole else []
    found = mark_significant_drops([*of_services, *lines], min_drop)
    return Comparisons(
        before=windows[0],
        after=windows[1],
        min_drop=min_drop,
        services=found[: len(of_services)],
        routes=found[len(of_services) :],
    )


def routes(before: Iterable[RouteSummary], after: Iterable[RouteSummary]) -> list[Comparison]:
    """Return one comparison per service, route, scorer and fingerprint with scores in either window."""
    old, new = _by_line(before), _by_line(after)
    both = {line[:3] for line in old} & {line[:3] for line in new}
    lines = sorted(old.keys() | new.keys())
    return [_route(line, old.get(line), new.get(line), measured=line[:3] in both) for line in lines]


def _by_line(found: Iterable[RouteSummary]) -> dict[Line, RouteSummary]:
    return {(summary.service, summary.route, summary.scorer, summary.fingerprint): summary for summary in found}


def _route(line: Line, before: RouteSummary | None, after: RouteSummary | None, *, measured: bool) -> Comparison:
    """Return one comparison; ``measured`` tells whether both windows have scores of the route with any fingerprint."""
    service, route, scorer, fingerprint = line
    changed = measured and (before is None or after is None)
    finding: ComparisonFinding = "judge_changed" if changed else "not_enough_data"
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
    """Add the difference to a comparison if both windows have enough scores."""
    if line.before is None or line.after is None or not (pair := EstimatePair(line.before, line.after)).has_min_samples:
        return line
    apart, interval = mean_difference(pair)
    return replace(
        line, finding=classify_interval(interval), difference=apart, interval=interval, effect=effect_size(pair)
    )


def services(lines: Sequence[Comparison], before: Sequence[RouteSummary]) -> list[Comparison]:
    """Return one comparison per service, scorer and fingerprint with at least two routes in both windows.

    A route needs two scores per window, so that routes with little traffic are included with their weight.
    """
    seen = {(summary.service, summary.route, summary.scorer): summary.coverage.seen or summary.n for summary in before}
    groups: dict[Whole, list[tuple[int, EstimatePair]]] = {}
    for line in lines:
        if (
            line.before is not None
            and line.after is not None
            and (pair := EstimatePair(line.before, line.after)).has_intervals
        ):
            traffic = seen[line.service, line.route or "", line.scorer]
            groups.setdefault((line.service, line.scorer, line.fingerprint), []).append((traffic, pair))
    return [_service(key, parts, _all(key, seen)) for key, parts in groups.items() if len(parts) > 1]


def _all(key: Whole, seen: Mapping[Measured, int]) -> int:
    return sum(count for (service, _, scorer), count in seen.items() if (service, scorer) == key[:2])


def _service(key: Whole, parts: Sequence[tuple[int, EstimatePair]], everything: int) -> Comparison:
    service, scorer, fingerprint = key
    traffic = sum(count for count, _ in parts)
    shares = [count / traffic for count, _ in parts]
    found = Comparison(
        service=service,
        route=None,
        scorer=scorer,
        fingerprint=fingerprint,
        before=standardize([pair.before for _, pair in parts], shares),
        after=standardize([pair.after for _, pair in parts], shares),
        finding="not_enough_data",
        share=traffic / everything,
    )
    return _measured(found)


def checked_window(given: TimeWindow) -> TimeWindow:
    """Return a window in UTC.

    Raises:
        UsageError: A time has no time zone, or the window is empty.
    """
    for moment in given:
        if moment.tzinfo is None:
            raise UsageError(f"{moment} has no time zone")
    start, end = (moment.astimezone(UTC) for moment in given)
    if end <= start:
        raise UsageError(f"empty window: {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC")
    return start, end
