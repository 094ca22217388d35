"""Comparison of the summaries for two windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC

from germane.errors import UsageError
from germane.statistics import (
    SIGNIFICANCE_LEVEL,
    Comparison,
    Comparisons,
    Estimate,
    TimeWindow,
    mark_significant_drops,
    standardize,
)
from germane.storage.trends.summaries import RouteSummary

Whole = tuple[str, str, str]
"""Service, scorer and fingerprint."""


def compare_summaries(
    before: Iterable[RouteSummary],
    after: Iterable[RouteSummary],
    windows: tuple[TimeWindow, TimeWindow],
    *,
    min_drop: float = 0.0,
    whole: bool = True,
    level: float = SIGNIFICANCE_LEVEL,
) -> Comparisons:
    """Compare two summaries.

    Drops are reported only if they are significantly larger than ``min_drop`` at the significance ``level``. With
    ``whole``, services are also compared as a whole.
    """
    old = list(before)
    lines = routes(old, after)
    service_lines = services(lines, old) if whole else []
    marked = mark_significant_drops([*service_lines, *lines], min_drop, level)
    return Comparisons(
        before=windows[0],
        after=windows[1],
        min_drop=min_drop,
        services=marked[: len(service_lines)],
        routes=marked[len(service_lines) :],
    )


def routes(before: Iterable[RouteSummary], after: Iterable[RouteSummary]) -> list[Comparison]:
    """Return one comparison per service, route, scorer and fingerprint with scores in either window."""
    old, new = (
        {(summary.service, summary.route, summary.scorer, summary.fingerprint): summary for summary in window}
        for window in (before, after)
    )
    # (service, route, scorer) keys with scores in both windows, with any fingerprint.
    both = {line[:3] for line in old} & {line[:3] for line in new}
    compared = []
    for line in sorted(old.keys() | new.keys()):
        service, route, scorer, fingerprint = line
        changed = line[:3] in both and (line not in old or line not in new)
        comparison = Comparison(
            service=service,
            route=route,
            scorer=scorer,
            fingerprint=fingerprint,
            before=old.get(line),
            after=new.get(line),
            finding="judge_changed" if changed else "not_enough_data",
        )
        compared.append(comparison.measured())
    return compared


def services(lines: Sequence[Comparison], before: Sequence[RouteSummary]) -> list[Comparison]:
    """Return one comparison per service, scorer and fingerprint with at least two routes in both windows.

    For this purpose, a route needs only two scores per window, so that routes with little traffic also count, in
    proportion to their traffic.
    """
    seen = {(summary.service, summary.route, summary.scorer): summary.coverage.seen or summary.n for summary in before}
    groups: dict[Whole, list[tuple[int, Estimate, Estimate]]] = {}
    for line in lines:
        if line.before is not None and line.before.interval and line.after is not None and line.after.interval:
            traffic = seen[line.service, line.route or "", line.scorer]
            group = groups.setdefault((line.service, line.scorer, line.fingerprint), [])
            group.append((traffic, line.before, line.after))
    compared = []
    for (service, scorer, fingerprint), parts in groups.items():
        if len(parts) < 2:
            continue
        counts, earlier, later = zip(*parts, strict=True)
        traffic = sum(counts)
        shares = [count / traffic for count in counts]
        everything = sum(count for (name, _, by), count in seen.items() if (name, by) == (service, scorer))
        comparison = Comparison(
            service=service,
            route=None,
            scorer=scorer,
            fingerprint=fingerprint,
            before=standardize(earlier, shares),
            after=standardize(later, shares),
            finding="not_enough_data",
            share=traffic / everything,
        )
        compared.append(comparison.measured())
    return compared


def checked_window(given: TimeWindow) -> TimeWindow:
    """Validate a window, and return it in UTC.

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
