"""Baselines, coverage and comparisons as text and JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from germane import insights, sanitize
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, EXIT_THRESHOLD_VIOLATED
from germane.records import select
from germane.score import MIN_SAMPLES

if TYPE_CHECKING:
    from germane.annotation import Marker
    from germane.insights import LabeledWindow
    from germane.statistics import Comparison, Comparisons
    from germane.storage import BaselineVersion, Coverage, OutstandingWork, TrackingStore

MIN_BASELINE_SCORES: Final = 30
"""Minimum number of scores in a baseline."""
MIN_PROVISIONAL_SCORES: Final = 200
"""Minimum number of scores in a provisional baseline."""
NO_SCORER: Final = "no scorer assigned"
"""Shown instead of a scorer for exchanges that were dropped by processes that only capture."""
ESTIMATE_FIELDS: Final = ("n", "has_min_samples", "mean", "interval", "low_share", "noncommittal_share")
"""Attributes of estimates in JSON output."""
COMPARISON_HEADINGS: Final = ("route", "scorer", "before", "after", "difference", "95% interval", "effect", "result")


def find_baseline_mean(
    store: TrackingStore, scorer: str | None, fingerprint: str, *, service: str | None, route: str | None
) -> float | None:
    """Return the active baseline's mean for ``route``, or for the whole service if ``route`` is None.

    Returns None if no baseline, or more than one, matches the scorer, fingerprint and service.
    """
    baselines = [
        version.baseline
        for version in store.baselines.list_versions()
        if version.status == "active" and not version.is_provisional
        if version.baseline is not None and not version.key.scope
        if (version.key.scorer, version.key.fingerprint) == (scorer, fingerprint)
        if service in {None, version.key.service}
    ]
    if len(baselines) != 1:
        return None
    level = insights.baseline_level(baselines[0], route)
    return None if level is None else level[0]


def describe_learning(version: BaselineVersion, now: datetime) -> str:
    """Describe a baseline that is still being learned."""
    new_routes = "new routes of " if version.reason == "route_joined" else ""
    what = f"{sanitize.line(version.key.scorer, 40)} for {new_routes}{sanitize.line(version.key.service, 40)}"
    until = f"{version.until:%Y-%m-%d %H:%M} UTC"
    if version.until <= now:
        return f"learning ended at {until}, but no worker has evaluated {what} since; run a worker to detect drops"
    if version.reason == "route_joined":
        return (
            f"learning until {until}: {what}; drop detection then starts if there are at least "
            f"{MIN_BASELINE_SCORES} scores"
        )
    if version.provisional is None:
        return (
            f"learning until {until}: {what}; large drops are detected after one day and "
            f"{MIN_PROVISIONAL_SCORES} scores, smaller drops once learning ends"
        )
    return (
        f"learning until {until}: {what}; until then, a provisional baseline (mean {version.provisional.mean:z.2f}, "
        f"n={version.provisional.n}) detects drops of about 0.1 or more"
    )


def learning_as_dicts(versions: Sequence[BaselineVersion]) -> list[dict[str, Any]]:
    """Return baselines that are being learned as dicts for JSON output."""
    return [
        {
            **version.key._asdict(),
            **select(version, "reason", "since", "until"),
            "provisional": version.provisional is not None,
        }
        for version in versions
    ]


def describe_unscored(coverage: Coverage) -> str:
    """Describe the numbers of unscored exchanges by reason, such as "2 skipped (budget), 1 pending"."""
    parts = [
        f"{count} {state} ({reason})"
        for state, reasons in (("skipped", coverage.skipped), ("failed", coverage.failed))
        for reason, count in reasons.items()
        if count
    ]
    return ", ".join([*parts, *([f"{coverage.pending} pending"] if coverage.pending else [])])


def describe_coverage(coverage: Coverage) -> str:
    """Summarize coverage, such as "9 seen, 6 scored, 2 skipped (budget), 1 pending"."""
    return ", ".join(filter(None, (f"{coverage.seen} seen", f"{coverage.scored} scored", describe_unscored(coverage))))


def describe_missing_scores(coverages: Iterable[Coverage], backlog: OutstandingWork) -> list[str]:
    """Return a line for each route and scorer with unscored exchanges, and one for exchanges waiting to be sampled."""
    lines = [
        f"{sanitize.line(coverage.route, 40)}, {sanitize.line(coverage.scorer, 40) or NO_SCORER}: {unscored}"
        for coverage in coverages
        if (unscored := describe_unscored(coverage))
    ]
    if backlog.undecided:
        lines.append(f"exchanges not yet sampled: {backlog.undecided}")
    return [*lines, *describe_candidates(backlog)]


def describe_candidates(backlog: OutstandingWork) -> list[str]:
    """Return one line per scorer that has candidates waiting to be selected within the budget."""
    counts: Counter[str] = Counter()
    for tasks in backlog.tasks:
        counts[tasks.scorer] += tasks.candidates
    return [
        f"{sanitize.count_noun(count, 'candidate')} for {sanitize.line(scorer, 40)}: a sample within the budget is "
        "selected at the end of the interval"
        for scorer, count in counts.items()
        if count
    ]


def labeled_as_dict(window: LabeledWindow) -> dict[str, Any]:
    """Return what people say about the answers of a window as a dict for JSON output."""
    names = ("mean", "interval", "labels_only", "slope", "correlation", "judge_mean", "few_low", "few_high")
    found = window.estimate
    return {
        **select(window, "service", "route", "scorer", "fingerprint", "since", "until", "n_scores", "outdated"),
        **select(window.counts, "labeled", "cannot_tell", "skipped", "open", "erased"),
        "estimate": None if found is None else {"labels": found.n, **select(found, *names)},
        "labels_to_halve": window.labels_to_halve,
    }


def backlog_as_dict(backlog: OutstandingWork) -> dict[str, Any]:
    """Return the current backlog of all routes as a dict for JSON output."""
    tasks = [
        {
            **select(tasks, "scorer", "fingerprint", "candidates", "ready"),
            "retrying": tasks.postponed,
            "running": tasks.running,
        }
        for tasks in backlog.tasks
    ]
    return {"unsampled": backlog.undecided, "tasks": tasks}


def comparison_exit_code(comparisons: Comparisons) -> int:
    """Return 3 after a significant drop, 5 if nothing could be compared, and otherwise 0."""
    if comparisons.dropped:
        return EXIT_THRESHOLD_VIOLATED
    return 0 if comparisons.is_comparable else EXIT_NOT_ENOUGH_DATA


def comparison_title(comparisons: Comparisons, marker: Marker | None) -> str:
    """Return a title that names the two windows."""
    before, after = (
        f"{window[0]:%Y-%m-%d %H:%M} to {window[1]:%Y-%m-%d %H:%M} UTC"
        for window in (comparisons.before, comparisons.after)
    )
    marked = f" (marker {sanitize.line(marker.name, 60)!r})" if marker is not None else ""
    return f"Before: {before}; after: {after}{marked}"


def comparison_rows(comparisons: Comparisons) -> list[tuple[str, ...]]:
    """Return the table rows for :data:`COMPARISON_HEADINGS`. Names are sanitized for terminals, not for HTML."""
    rows: list[tuple[str, ...]] = []
    margin = f" beyond {comparisons.min_drop:g}" if comparisons.min_drop else ""
    for comparison in (*comparisons.services, *comparisons.routes):
        result = {
            "dropped": "dropped",
            "lower": f"lower, not significant{margin}",
            "higher": "higher",
            "unclear": "no clear change",
            "not_enough_data": f"not enough data (need {MIN_SAMPLES} in each window)",
            "judge_changed": "judge changed: not comparable",
        }[comparison.finding]
        before, after = (
            "-"
            if estimate is None
            else f"{estimate.mean:z.3f} (n={estimate.n})"
            if estimate.has_min_samples
            else f"- (n={estimate.n})"
            for estimate in (comparison.before, comparison.after)
        )
        names = _route_name(comparison, comparisons), _scorer_name(comparison, comparisons), before, after
        if comparison.difference is None or comparison.interval is None:
            rows.append((*names, "-", "-", "-", result))
            continue
        effect = "-" if comparison.effect is None else f"{comparison.effect:+z.2f} {comparison.effect_name}"
        difference, low, high = (f"{value:+z.3f}" for value in (comparison.difference, *comparison.interval))
        rows.append((*names, difference, f"{low} to {high}", effect, result))
    return rows


def comparison_tables(comparisons: Comparisons) -> Iterator[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """Yield each scorer with the headings and rows of a table. The table fits 80 columns unless a route's name is long.

    The effect size is in the sentences of :func:`describe_result` and in the other formats.
    """
    rows = comparison_rows(comparisons)
    for scorer in dict.fromkeys(row[1] for row in rows):
        shown = [
            (
                row[0].replace(", weighted by earlier traffic", ""),
                row[2].replace("n=", ""),
                row[3].replace("n=", ""),
                *row[4:6],
                re.split(r" \(|[:,]", row[7])[0],
            )
            for row in rows
            if row[1] == scorer
        ]
        yield scorer, ("route", "before (n)", "after (n)", "change", "95% interval", "result"), shown


def describe_result(comparisons: Comparisons) -> Iterator[str]:
    """Describe the significant drops, or state that there are none."""
    margin = f" of more than {comparisons.min_drop:g}" if comparisons.min_drop else ""
    for drop in comparisons.dropped:
        low, high = drop.interval or (0.0, 0.0)
        effect = "" if drop.effect_name is None else f", a {drop.effect_name} effect"
        names = f"{_route_name(drop, comparisons)}, {_scorer_name(drop, comparisons)}"
        yield f"Significant drop: {names} fell by {-(drop.difference or 0):z.3f} ({-high:z.3f} to {-low:z.3f}){effect}"
    if not comparisons.is_comparable:
        yield f"Not enough data: no route has at least {MIN_SAMPLES} scores with the same fingerprint in both windows."
    elif not comparisons.dropped:
        yield f"No significant drop{margin}."


def comparison_as_dict(comparisons: Comparisons, marker: Marker | None) -> dict[str, Any]:
    """Return a comparison as a dict for JSON output."""
    return {
        "marker": marker,
        "before": {"since": comparisons.before[0], "until": comparisons.before[1]},
        "after": {"since": comparisons.after[0], "until": comparisons.after[1]},
        "min_drop": comparisons.min_drop,
        "compared": comparisons.is_comparable,
        "dropped": bool(comparisons.dropped),
        "services": list(map(_comparison_as_dict, comparisons.services)),
        "routes": list(map(_comparison_as_dict, comparisons.routes)),
    }


def _route_name(comparison: Comparison, comparisons: Comparisons) -> str:
    """Return the route or the share of a service that was compared, with the service if there are several."""
    has_services = len({route.service for route in comparisons.routes}) > 1
    service = f" ({sanitize.line(comparison.service, 40)})" if has_services else ""
    if comparison.route is not None:
        return sanitize.line(comparison.route, 40) + service
    is_partial = comparison.share is not None and comparison.share <= 0.995
    share = f", {comparison.share:.0%} of traffic" if is_partial else ""
    return f"all routes, weighted by earlier traffic{share}{service}"


def _scorer_name(comparison: Comparison, comparisons: Comparisons) -> str:
    """Return the scorer, followed by its fingerprint if there are several."""
    fingerprints = {route.fingerprint for route in comparisons.routes if route.scorer == comparison.scorer}
    fingerprint = f" {sanitize.line(comparison.fingerprint, 40)}" if len(fingerprints) > 1 else ""
    return sanitize.line(comparison.scorer, 40) + fingerprint


def _comparison_as_dict(comparison: Comparison) -> dict[str, Any]:
    return {
        **select(comparison, "service", "route", "scorer", "fingerprint", "finding", "difference", "interval"),
        "effect_size": comparison.effect,
        **select(comparison, "effect_name", "share"),
        "before": comparison.before and select(comparison.before, *ESTIMATE_FIELDS, "deviation"),
        "after": comparison.after and select(comparison.after, *ESTIMATE_FIELDS, "deviation"),
    }
