"""``germane baseline``: show, import or replace the baselines that drops are measured against."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from germane import alerting, evaluation, sanitize, storage
from germane.cli.core.command import wants_json
from germane.cli.core.lazy_group import SuggestingGroup
from germane.cli.core.output import print_json, print_table
from germane.cli.core.params import EXISTING_FILE, SINCE
from germane.cli.core.render import describe_learning
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import UsageError
from germane.records import select

if TYPE_CHECKING:
    from germane.alerting import BaselineExample
    from germane.storage import BaselineKey, BaselineVersion, TrackingStore

DEFAULT_ROUTE: Final = "evaluation"
"""Route of imported rows that do not specify one."""
RUNNING: Final = "running"
"""Value of --as that selects the current fingerprint."""
HEADINGS: Final = ("  route", "n", "mean", "mean, non-refusals", "refusals", "day-to-day SD", "scores/day")
_TRUE: Final = {"1", "true", "yes"}
_service = click.option("--service", help="Only this service.")
_scorer = click.option("--scorer", help="Only this scorer.")


@click.group("baseline", cls=SuggestingGroup)
def command() -> None:
    """Show, import or replace baselines.

    A baseline is the reference against which drops are measured.
    """


@command.command("show")
@_service
@_scorer
@click.option("--all", "include_replaced", is_flag=True, help="Also show replaced versions.")
def show(
    service: str | None,
    scorer: str | None,
    include_replaced: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Show baselines by service, scorer and route."""
    with open_store() as store:
        versions = [
            version
            for version in store.baselines.list_versions(superseded=include_replaced)
            if _matches(version.key, service, scorer)
        ]
        learning = [version for version in store.baselines.list_learning() if _matches(version.key, service, scorer)]
        now = store.now()
    if wants_json():
        content = {"baselines": list(map(version_as_dict, versions)), "learning": [each.id for each in learning]}
        print_json(content)
    elif versions:
        _print_versions(versions, now)
    elif service or scorer:
        click.echo("No matching baseline.")
    else:
        click.echo("No baseline yet. Learning begins with the first score.")


@command.command("accept")
@click.argument("alert_id", metavar="[ALERT_ID]", required=False)
@_service
@_scorer
@click.option("--since", type=SINCE, help="Start of the new baseline. Defaults to the onset of the firing drop.")
@click.option("--by", metavar="NAME", help="Your name.")
def accept(
    alert_id: str | None,
    service: str | None,
    scorer: str | None,
    since: datetime | None,
    by: str | None,
) -> None:
    """Accept the current scores as the new baseline.

    The scores since the onset of the drop or improvement become the new baseline, and its alert resolves at the next
    evaluation. If there are less than three days of scores, a new baseline is learned, starting at the onset. ALERT_ID,
    or a prefix of it, selects the baseline of one alert. Without it, all baselines with a firing drop are replaced.
    With --since, all active baselines are replaced.
    """
    if alert_id is not None and (service or scorer or since):
        raise click.UsageError("ALERT_ID selects one baseline; omit --service, --scorer and --since")
    with open_store() as store:
        if alert_id is not None:
            alert = alerting.accept_alert_baseline(store, alert_id, by)
            versions = {
                version.id: version
                for version in (*store.baselines.list_versions(), *store.baselines.list_learning())
                if _matches(version.key, alert.service, alert.scorer)
            }
            _print_created(list(versions.values()), store.now())
            return
        active = [
            version
            for version in store.baselines.list_versions()
            if version.status == "active" and _matches(version.key, service, scorer)
        ]
        starts = [(version, since or alerting.firing_onset(store, version)) for version in active]
        known = [(version, start) for version, start in starts if start is not None]
        if not known:
            raise UsageError("no drop is firing for these baselines; set the start of the new baseline with --since")
        now = store.now()
        created = [alerting.accept_baseline(store, version, start, now, by=by) for version, start in known]
    _print_created(created, now)


@command.command("import")
@click.argument("file", type=EXISTING_FILE, required=False)
@click.option("--since", type=SINCE, help="Learn from the scores stored since this time, instead of from a file.")
@_service
@_scorer
@click.option(
    "--per-day",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Number of scores per day for the service.",
)
@click.option(
    "--as",
    "fingerprint",
    metavar="FINGERPRINT",
    help=f"Fingerprint to assign to the file's scores. {RUNNING} selects the current one.",
)
def import_(
    file: Path | None,
    since: datetime | None,
    service: str | None,
    scorer: str | None,
    per_day: float | None,
    fingerprint: str | None,
) -> None:
    """Learn a baseline immediately, from FILE or stored scores.

    FILE is a report from `germane score --report json`, or a data set (JSONL, JSON, CSV or Parquet) with a
    `value` column and, optionally, `route`, `label` and `at` columns. Its scores must have the current fingerprint,
    unless you pass --as.
    """
    with open_store() as store:
        now = store.now()
        created: list[BaselineVersion | None]
        if since is not None and file is None:
            keys = sorted(
                {
                    storage.BaselineKey(summary.service, summary.scorer, summary.fingerprint)
                    for summary in store.trends.summary(since=since, histograms=False)
                    if summary.newest
                }
            )
            keys = [key for key in keys if _matches(key, service, scorer)]
            if not keys:
                raise UsageError(f"there are no scores since {since:%Y-%m-%d %H:%M} UTC; choose an earlier --since")
            created = [alerting.import_baseline_from_history(store, key, since, store.now()) for key in keys]
        elif file is not None and since is None:
            examples = read_examples(file, scorer)
            service = service or load_command_settings().service
            key = storage.BaselineKey(
                service, examples.scorer, _choose_fingerprint(store, service, examples, fingerprint)
            )
            created = [
                alerting.import_baseline_from_examples(store, key, examples.examples, per_day=per_day, now=store.now())
            ]
        else:
            raise click.UsageError("pass either FILE or --since")
    _print_created(created, now)


def _matches(key: BaselineKey, service: str | None, scorer: str | None) -> bool:
    return service in {None, key.service} and scorer in {None, key.scorer}


def _choose_fingerprint(store: TrackingStore, service: str, examples: ExampleFile, chosen: str | None) -> str:
    """Return the fingerprint that imported scores belong to. Without a choice, it has to be the current one."""
    if chosen not in {None, RUNNING}:
        return str(chosen)
    running = {
        summary.scorer: summary.fingerprint
        for summary in store.trends.summary(histograms=False)
        if summary.newest and summary.service == service
    }
    for worker in reversed(store.workers.list_workers()):
        running |= worker.scorers
    fingerprint = running.get(examples.scorer)
    if fingerprint is None:
        raise UsageError(
            f"no scores from {sanitize.line(examples.scorer, 40)} for {sanitize.line(service, 40)} yet; choose "
            "another --service, or pass the fingerprint with --as"
        )
    if chosen is None and examples.fingerprint is None:
        raise UsageError(
            f"the file does not state the fingerprint of its scores; pass --as {RUNNING} if it is the current one"
        )
    if chosen is None and examples.fingerprint != fingerprint:
        theirs = sanitize.line(examples.fingerprint)
        raise UsageError(
            f"the file's scores have the fingerprint {theirs}, but the current one is {sanitize.line(fingerprint)}. "
            f"They are not comparable; pass --as {RUNNING} to import them anyway"
        )
    return fingerprint


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """The scores in a file. All of them have the same scorer and fingerprint."""

    scorer: str
    fingerprint: str | None
    """None if the file does not contain it."""
    examples: list[BaselineExample]


def read_examples(path: Path, scorer: str | None) -> ExampleFile:
    """Read scores of one scorer and fingerprint from a JSON report or a data set."""
    rows = [row for row in _read_rows(path) if scorer is None or row.get("scorer", scorer) == scorer]
    scorers = {row["scorer"] for row in rows if row.get("scorer")} or ({scorer} if scorer else set())
    fingerprints = {row["fingerprint"] for row in rows if row.get("fingerprint")}
    if not scorers:
        raise UsageError(f"{path} does not state the scorer of its scores; pass --scorer")
    if len(scorers) > 1:
        raise UsageError(f"{path} contains scores from {', '.join(sorted(scorers))}; choose one with --scorer")
    if len(fingerprints) > 1:
        names = ", ".join(sorted(fingerprints))
        raise UsageError(f"{path} contains scores with the fingerprints {names}, which are not comparable")
    fingerprint = fingerprints.pop() if fingerprints else None
    return ExampleFile(str(scorers.pop()), fingerprint, [_parse_example(path, row) for row in rows])


def _read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    report = None
    if path.suffix.lower() == ".json":
        with suppress(OSError, ValueError, RecursionError):  # iterate_records reports errors
            report = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(report, dict) and {"schema_version", "rows"} <= report.keys():
        scores = ({**row, **score} for row in report["rows"] for score in row["scores"].values())
        yield from (
            {name: value for name, value in score.items() if value is not None}
            for score in scores
            if score.get("value") is not None
        )
        return
    for place, record in evaluation.iterate_records(path):
        if not isinstance(record, Mapping):
            raise UsageError(f"{place} must be an object that maps column names to values")
        yield {str(name): value for name, value in record.items() if value not in (None, "")}


def _parse_example(path: Path, row: Mapping[str, Any]) -> alerting.BaselineExample:
    raw_value = row.get("value", row.get("score"))
    try:
        value = float(raw_value)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{path}: `value` must be a number, not {str(raw_value)[:40]!r}")
    at = row.get("at")
    if at is not None:
        try:
            at = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
        except ValueError:
            raise UsageError(f"{path}: `at` must be an ISO 8601 timestamp, not {str(at)[:40]!r}") from None
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    is_refusal = row.get("label") == "noncommittal" or str(row.get("noncommittal", "")).lower() in _TRUE
    return alerting.BaselineExample(route=str(row.get("route", DEFAULT_ROUTE)), value=value, zero=is_refusal, at=at)


def version_as_dict(version: BaselineVersion) -> dict[str, Any]:
    """Return a version as a dict for JSON output. ``numbers`` is None while the baseline is being learned."""
    baseline, numbers = version.baseline, None
    if baseline is not None:
        numbers = {
            **select(baseline, "n", "mean", "deviation", "scores_per_day", "sampling_rate", "routes"),
            "pooled": sorted(baseline.pooled),
        }
    return {
        "id": version.id,
        **version.key._asdict(),
        "version": version.number,
        **select(version, "status", "reason", "accepted_by", "since", "until", "model", "prompt_version"),
        "numbers": numbers,
    }


def _print_created(created: Sequence[BaselineVersion | None], now: datetime) -> None:
    versions = [version for version in created if version is not None]
    if wants_json():
        print_json({"baselines": list(map(version_as_dict, versions))})
    elif versions:
        _print_versions(versions, now)
    else:
        click.echo("No baseline was changed.")


def _print_versions(versions: Sequence[BaselineVersion], now: datetime) -> None:
    for version in versions:
        key, baseline = version.key, version.baseline
        scope = f" where {sanitize.line(key.scope, 100)}" if key.scope else ""
        name = f"{sanitize.line(key.scorer, 40)} for {sanitize.line(key.service, 40)}{scope}"
        reason = version.reason.replace("_", " ")
        fingerprint = sanitize.line(key.fingerprint)
        click.echo(f"{name}, fingerprint {fingerprint}, version {version.number}: {version.status} ({reason})")
        if baseline is None:
            is_learning = version.status == "learning"
            click.echo(f"  {describe_learning(version, now) if is_learning else 'not learned'}\n")
            continue
        window = f"{baseline.since:%Y-%m-%d} to {baseline.until:%Y-%m-%d}"
        click.echo(f"  {sanitize.count_noun(baseline.n, 'score')}, {window}, {baseline.scores_per_day:.0f} per day")
        rows = [
            (
                f"  {sanitize.line(route, 40)}",
                str(level.n),
                f"{level.mean:z.3f}",
                f"{level.committed_mean:z.3f}",
                f"{level.zero_rate:.1%}",
                f"{level.committed_wander:z.3f}/{level.zero_wander:z.3f}",
                f"{level.scores_per_day:.1f}",
            )
            for route, level in baseline.routes.items()
        ]
        print_table(HEADINGS, rows)
        click.echo()
