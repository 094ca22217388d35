"""``germane report``: how each route does, with what is known of how sure that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from germane.cli import compared, covered, learned
from germane.cli.compared import ENOUGH
from germane.cli.opening import opened
from germane.cli.output import as_json, database, harmless, print_json, print_table
from germane.cli.since import Marked, SinceMark, Span, moment_of

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.storage import BaselineVersion, Coverage, Outstanding, RouteSummary, Store

THRESHOLD_BROKEN = 3
NOT_ENOUGH_DATA = 5


@click.command("report")
@click.option(
    "--since",
    type=SinceMark(),
    default="24h",
    show_default=True,
    help="Answers given since then: a span, a moment, mark (the newest) or mark:NAME.",
)
@click.option("--service", help="Only this service, and its marks.")
@click.option("--route", help="Only this route.")
@click.option("--fail-under", type=float, metavar="MEAN", help="Exit with 3 when a mean is lower.")
@click.option("--compare", "compares", is_flag=True, help="Compare with the time before.")
@click.option("--fail-on-drop", is_flag=True, help="Compare, and exit with 3 when a route dropped for sure.")
@click.option("--before", type=Span(), help="How much of the time before; by default as much as there is since.")
@click.option(
    "--min-drop", type=click.FloatRange(0, 2), default=0.0, metavar="DROP", help="Only a drop larger than this is one."
)
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    since: datetime | Marked,
    service: str | None,
    route: str | None,
    fail_under: float | None,
    compares: bool,  # noqa: FBT001 - click passes it by name
    fail_on_drop: bool,  # noqa: FBT001
    before: timedelta | None,
    min_drop: float,
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Show mean, interval and coverage of every route, and what changed since a deploy."""
    with opened(database) as store:
        moment, mark = moment_of(store, since, service)
        found = _read(store, moment, _Of(service, route))
        asked: dict[str, Any] = {"service": service, "route": route, "min_drop": min_drop}
        earlier = None if before is None else (moment - before, moment)
        compares = compares or fail_on_drop
        comparisons = store.compare(since=moment, before=earlier, **asked) if compares else None
    if as_json:
        more = {} if comparisons is None else {"comparison": compared.as_dict(comparisons, mark)}
        print_json({**_all_as_dict(found), **more})
    else:
        _print(found)
        if comparisons is not None:
            compared.show(comparisons, mark)
    codes = {0 if fail_under is None else _code(found, fail_under)}
    codes |= {compared.code(comparisons)} if comparisons is not None and fail_on_drop else set()
    context.exit(next(code for code in (THRESHOLD_BROKEN, NOT_ENOUGH_DATA, 0) if code in codes))


@dataclass(frozen=True, slots=True)
class _Of:
    """What is shown; None for all."""

    service: str | None
    route: str | None

    def holds(self, found: Coverage | RouteSummary) -> bool:
        return self.service in {None, found.service} and self.route in {None, found.route}


@dataclass(frozen=True, slots=True)
class _Found:
    """What a report is made of."""

    since: datetime
    summaries: list[RouteSummary]
    coverage: list[Coverage]
    calibrations: list[Calibration]
    left: Outstanding
    learning: list[BaselineVersion]
    now: datetime


def _read(store: Store, since: datetime, of: _Of) -> _Found:
    summaries = [found for found in store.summary(since=since, histograms=False) if of.holds(found)]
    coverage = [found for found in store.coverage(since=since) if of.holds(found) and covered.is_told(found)]
    learning = [found for found in store.learning() if of.service in {None, found.key.service}]
    calibrations = _calibrations(store, summaries, since)
    return _Found(since, summaries, coverage, calibrations, store.outstanding(), learning, store.now())


def _code(found: _Found, fail_under: float) -> int:
    """Judge each route by the newest fingerprint alone: what was measured otherwise says nothing of today."""
    newest = [one for one in found.summaries if one.newest]
    judged = [one for one in newest if one.n >= ENOUGH]
    if any(one.mean < fail_under for one in judged):
        return THRESHOLD_BROKEN
    unscored = any(not one.scored and (one.failed or one.pending) for one in found.coverage)
    return 0 if judged and len(judged) == len(newest) and not unscored else NOT_ENOUGH_DATA


def _calibrations(store: Store, summaries: list[RouteSummary], since: datetime) -> list[Calibration]:
    """Return the floors by which labels of these scorers go now: those of the embedder of the newest scores."""
    floors = {(one.embedder, one.scorer): one for one in store.calibrations()}
    found: dict[str, Calibration] = {}
    for one in summaries if floors else ():
        if one.newest:
            newest = store.worst(scorer=one.scorer, fingerprint=one.fingerprint, since=since, limit=1)
            known = [floors.get((scored.score.embedder or "", one.scorer)) for scored in newest]
            found |= {floor.scorer: floor for floor in known if floor}
    return list(found.values())


def _print(found: _Found) -> None:
    summaries = found.summaries
    click.echo(f"Answers given since {found.since:%Y-%m-%d %H:%M} UTC\n")
    if not summaries:
        click.echo("No scores.")
    else:
        rows = [_row(one, _name(one, summaries), _scorer(one, summaries)) for one in summaries]
        print_table(("route", "scorer", "n", "mean", "95 % interval", "low", "refused", "scored of seen"), rows)
    for floor in found.calibrations:
        click.echo(f"\nLabels and low answers of {harmless(floor.scorer, 40)}: {floor}; means are of raw values")
    missing = [
        *filter(None, map(covered.line, found.coverage)),
        *(f"  {told}" for told in covered.undecided(found.left)),
    ]
    if missing:
        click.echo("\nWithout a score:")
        click.echo("\n".join(missing))
    if found.learning:
        click.echo()
        click.echo("\n".join(learned.line(one, found.now) for one in found.learning))


def _row(found: RouteSummary, name: str, scorer: str) -> tuple[str, ...]:
    seen = f"{found.coverage.scored} of {found.coverage.seen}"
    if found.n < ENOUGH:
        return name, scorer, str(found.n), "-", f"not enough data (n={found.n}, need {ENOUGH})", "-", "-", seen
    interval = "-" if found.interval is None else f"{found.interval[0]:.3f} to {found.interval[1]:.3f}"
    shares = f"{found.low_share:.0%}", f"{found.noncommittal_share:.0%}"
    return name, scorer, str(found.n), f"{found.mean:.3f}", interval, *shares, seen


def _name(found: RouteSummary, summaries: list[RouteSummary]) -> str:
    """Return the route, and its service where another service has a route of that name."""
    services = {other.service for other in summaries if other.route == found.route}
    service = f" ({harmless(found.service, 40)})" if len(services) > 1 else ""
    return harmless(found.route, 40) + service


def _scorer(found: RouteSummary, summaries: list[RouteSummary]) -> str:
    """Return the scorer, and its fingerprint where the same route was measured in more than one way."""
    key = (found.service, found.route, found.scorer)
    ways = [other for other in summaries if (other.service, other.route, other.scorer) == key]
    way = f" {harmless(found.fingerprint)}{' (newest)' if found.newest else ''}" if len(ways) > 1 else ""
    return harmless(found.scorer, 40) + way


def _all_as_dict(found: _Found) -> dict[str, Any]:
    return {
        "since": found.since,
        "enough": ENOUGH,
        "routes": [_as_dict(one) for one in found.summaries],
        "coverage": [covered.as_dict(one) for one in found.coverage],
        "calibrations": [asdict(one) for one in found.calibrations],
        "waiting": covered.waiting(found.left),
        "learning": learned.as_dicts(found.learning),
    }


def _as_dict(found: RouteSummary) -> dict[str, Any]:
    return {
        "service": found.service,
        "route": found.route,
        "scorer": found.scorer,
        "fingerprint": found.fingerprint,
        "newest": found.newest,
        "n": found.n,
        "enough": found.n >= ENOUGH,
        "mean": found.mean,
        "interval": found.interval,
        "low_share": found.low_share,
        "noncommittal_share": found.noncommittal_share,
        "coverage": covered.as_dict(found.coverage),
    }
