"""``germane trend``: how a score develops, drawn in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from germane.cli.commands.mark import as_dict as mark_as_dict
from germane.cli.core.output import as_json, database, harmless, print_json
from germane.cli.core.params import Past, Span
from germane.cli.core.store import opened
from germane.cli.core.terminal import terminal
from germane.cli.render import coverage as covered
from germane.cli.render import trend_chart
from germane.cli.render.baseline import usual_mean
from germane.cli.render.comparison import ENOUGH

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.annotation import Mark
    from germane.storage import Bucket, Store

POINTS: Final = 30
"""Stretches at most where the length of one is not given."""
MOST: Final = 1000
_OF_ALERT: Final = ("id", "rule", "service", "route", "state", "onset", "starts_at", "resolved_at", "message")
_BUCKETS: Final = tuple(timedelta(hours=hours) for hours in (1, 3, 6, 12, 24, 72, 168))


@click.command("trend")
@click.argument("scorer", required=False)
@click.option("--since", type=Past(), default="7d", show_default=True, help="Answers given since then.")
@click.option("--until", type=Past(), help="Answers given before then; by default until now.")
@click.option("--bucket", type=Span(), help="How much time one line stands for; by default as fits on a screen.")
@click.option("--service", help="Only this service.")
@click.option("--route", help="Only this route.")
@click.option(
    "--by", metavar="DIMENSION", help="A line for each route, service, model, prompt_version or attributes.NAME."
)
@database
@as_json
def command(
    scorer: str | None,
    since: datetime,
    until: datetime | None,
    bucket: timedelta | None,
    service: str | None,
    route: str | None,
    by: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Draw the means of SCORER over time. With intervals, gaps, baseline and marks."""
    with opened(database) as store:
        end = until or store.now()
        if until is not None and until <= since:
            raise click.BadParameter("it is not after --since", param_hint="--until")
        asked = _Asked(scorer, since, end, bucket or _fitting(end - since), service, route, by)
        found = _read(store, asked)
    if as_json:
        print_json(_as_dict(found))
    else:
        click.echo("\n".join(_lines(found)))


@dataclass(frozen=True, slots=True)
class _Asked:
    scorer: str | None
    since: datetime
    until: datetime
    bucket: timedelta
    service: str | None
    route: str | None
    by: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    asked: _Asked
    """With the scorer and the service that are shown."""
    buckets: list[Bucket]
    baseline: float | None
    marks: list[Mark]
    alerts: list[Alert]


def _fitting(span: timedelta) -> timedelta:
    return next((one for one in _BUCKETS if span <= one * POINTS), _BUCKETS[-1])


def _read(store: Store, asked: _Asked) -> _Found:
    if (asked.until - asked.since) / asked.bucket > MOST:
        raise click.UsageError(f"--bucket is too short for that time: more than {MOST} lines")
    asked = _on_show(store, asked)
    if asked.scorer is None:
        return _Found(asked, [], None, [], [])
    window: dict[str, Any] = {"since": asked.since, "until": asked.until}
    of: dict[str, Any] = {"scorer": asked.scorer, "service": asked.service, "route": asked.route}
    buckets = store.trend(**of, **window, bucket=asked.bucket, by=asked.by, histograms=False)
    marks = store.marks(**window, service=asked.service)
    alerts = [one for one in store.alerts(since=asked.since) if _is_of(one, asked)]
    return _Found(asked, buckets, _baseline(store, asked, buckets), marks, alerts)


def _on_show(store: Store, asked: _Asked) -> _Asked:
    """Return what is asked for, with the scorer and the service of the overview where none is named."""
    from germane.insights.defaults import scorer_on_show, service_on_show

    found = store.summary(since=asked.since, until=asked.until, histograms=False)
    scorer = scorer_on_show([one for one in found if asked.service in {None, one.service}], asked.scorer)
    if asked.by == "service":
        return replace(asked, scorer=scorer)
    service = service_on_show([one for one in found if one.scorer == scorer], asked.service)
    return replace(asked, scorer=scorer, service=service)


def _is_of(alert: Alert, asked: _Asked) -> bool:
    from germane.insights.events import concerns

    if alert.scorer not in {None, asked.scorer} or asked.service not in {None, alert.service}:
        return False
    return asked.route is None or concerns(alert, asked.service, asked.route)


def _baseline(store: Store, asked: _Asked, buckets: Sequence[Bucket]) -> float | None:
    if not buckets or asked.by is not None:
        return None
    newest = max(buckets, key=lambda one: one.start).fingerprint
    return usual_mean(store, asked.scorer, newest, service=asked.service, route=asked.route)


def _lines(found: _Found) -> Iterator[str]:
    asked = found.asked
    if not found.buckets:
        scorer = f", by {harmless(asked.scorer, 60)}" if asked.scorer else ""
        yield f"No scores since {asked.since:%Y-%m-%d %H:%M} UTC{scorer}{_of(asked)}."
        return
    where = terminal()
    picture = trend_chart.Picture(
        terminal=where, since=asked.since, until=asked.until, bucket=asked.bucket, baseline=found.baseline
    )
    of = where.styled(harmless(asked.scorer, 60), bold=True)
    yield f"{of}{_of(asked)}, since {asked.since:%b %d %H:%M} UTC, by {_span(asked.bucket)}"
    yield ""
    if asked.by is not None:
        yield from trend_chart.by_group(picture, found.buckets)
    else:
        yield from trend_chart.over_time(picture, found.buckets, _notes(found))
    yield ""
    if corrected := [one for one in found.buckets if one.correlation is not None]:
        yield f"{len(corrected)} of {len(found.buckets)} means are corrected by a free local score of all answers"
    if sum(one.enough for one in found.buckets) * 2 < len(found.buckets):
        yield f"Most have fewer than {ENOUGH} scores; longer stretches tell more: --bucket {_longer(asked.bucket)}"
    for line in trend_chart.legend(picture, groups=asked.by is not None):
        yield where.styled(line, dim=True)


def _of(asked: _Asked) -> str:
    parts = [f"of {harmless(asked.service, 40)}"] if asked.service else []
    parts += [f"route {harmless(asked.route, 40)}"] if asked.route else []
    parts += [f"by {harmless(asked.by, 40)}"] if asked.by else []
    return "".join(f", {part}" for part in parts)


def _span(span: timedelta) -> str:
    for unit, length in (("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, rest = divmod(round(span.total_seconds()), length)
        if count and not rest:
            return unit if count == 1 else f"{count} {unit}s"
    return str(span)


def _longer(bucket: timedelta) -> str:
    """Return four times as much, as the option takes it."""
    hours = max(1, round(4 * bucket / timedelta(hours=1)))
    return f"{hours}h" if hours % 24 else f"{hours // 24}d"


def _notes(found: _Found) -> list[trend_chart.Note]:
    """Return marks and alerts; an alert stands where what it is about began."""
    marks = [trend_chart.Note(one.at, f"mark {harmless(one.name, 60)}") for one in found.marks]
    return marks + [_alert(one, found.asked.since) for one in found.alerts]


def _alert(one: Alert, since: datetime) -> trend_chart.Note:
    at, text = one.onset or one.starts_at, harmless(one.message or one.rule, 120)
    earlier = f", since {at:%b %d %H:%M}" if at < since else ""
    return trend_chart.Note(max(at, since), f"alert{earlier}: {text}")


def _as_dict(found: _Found) -> dict[str, Any]:
    asked = found.asked
    return {
        "scorer": asked.scorer,
        "service": asked.service,
        "route": asked.route,
        "by": asked.by,
        "since": asked.since,
        "until": asked.until,
        "bucket_seconds": asked.bucket.total_seconds(),
        "enough": ENOUGH,
        "baseline": found.baseline,
        "buckets": [_bucket(one) for one in found.buckets],
        "marks": [mark_as_dict(one) for one in found.marks],
        "alerts": [{name: getattr(one, name) for name in _OF_ALERT} for one in found.alerts],
    }


def _bucket(one: Bucket) -> dict[str, Any]:
    names = ("start", "group", "fingerprint", "begins", "n", "enough", "mean", "interval", "low_share")
    more = {"noncommittal_share": one.noncommittal_share, "correlation": one.correlation}
    coverage = None if one.coverage is None else covered.as_dict(one.coverage)
    return {**{name: getattr(one, name) for name in names}, **more, "coverage": coverage}
