"""``germane baseline``: what is taken for normal, and how to change that."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli.core.output import Since, as_json, database, harmless, print_json, print_table
from germane.cli.core.store import opened, settings_for
from germane.cli.render import baseline
from germane.errors import UsageError
from germane.sanitize import counted

if TYPE_CHECKING:
    from germane.alerting.drop import Example
    from germane.storage import BaselineVersion, Key, Store


NO_ROUTE = "evaluation"
"""Of rows that name none."""
_ZERO = "noncommittal"
_TRUE = {"1", "true", "yes"}


@dataclass(frozen=True, slots=True)
class Examples:
    """Scores of one scorer and one judge."""

    scorer: str
    fingerprint: str | None
    """None where the file does not say."""
    examples: list[Example]


def examples_in(path: Path, scorer: str | None) -> Examples:
    """Return the scores of a file: of a report in JSON, or of rows.

    Raises:
        UsageError: a row has no number, or scores are of more than one scorer or judge.
    """
    rows = [row for row in _rows(path) if scorer is None or row.get("scorer", scorer) == scorer]
    scorers = {row["scorer"] for row in rows if row.get("scorer")} or ({scorer} if scorer else set())
    marks = {row["fingerprint"] for row in rows if row.get("fingerprint")}
    if not scorers:
        raise UsageError(f"{path} does not say of which scorer its scores are: say it with --scorer")
    if len(scorers) > 1:
        names = ", ".join(sorted(scorers))
        raise UsageError(f"{path} holds scores of {names}: say which with --scorer")
    if len(marks) > 1:
        raise UsageError(f"{path} holds scores of the judges {', '.join(sorted(marks))}: scores of one compare alone")
    return Examples(str(scorers.pop()), marks.pop() if marks else None, [_example(path, row) for row in rows])


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    from germane.evaluation.files import records_of

    report = _report(path)
    if report is not None:
        yield from report
        return
    for place, record in records_of(path):
        if not isinstance(record, Mapping):
            raise UsageError(f"{place} is no row of names and values")
        yield {str(name): value for name, value in record.items() if value not in (None, "")}


def _report(path: Path) -> list[dict[str, Any]] | None:
    """Return the scores of a report in JSON; None where the file is none."""
    if path.suffix.lower() != ".json":
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # whoever reads rows says what is wrong
    if not isinstance(content, dict) or not {"schema_version", "rows"} <= content.keys():
        return None
    scores = [{**row, **score} for row in content["rows"] for score in row["scores"].values()]
    # When an evaluation was run says nothing of when answers were given.
    return [{name: value for name, value in one.items() if value is not None} for one in scores if _has_value(one)]


def _has_value(score: Mapping[str, Any]) -> bool:
    return score.get("value") is not None


def _example(path: Path, row: Mapping[str, Any]) -> Example:
    from germane.alerting.drop import Example

    zero = row.get("label") == _ZERO or str(row.get(_ZERO, "")).lower() in _TRUE
    return Example(
        route=str(row.get("route", NO_ROUTE)),
        value=_number(path, row),
        zero=zero,
        at=_moment(path, row["at"]) if "at" in row else None,
    )


def _number(path: Path, row: Mapping[str, Any]) -> float:
    given = row.get("value", row.get("score"))
    try:
        found = float(given)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{path}: a row's value is {str(given)[:40]!r}, which is no number")
    return found


def _moment(path: Path, given: Any) -> datetime:
    try:
        found = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise UsageError(f"{path}: at is {str(given)[:40]!r}, which is no moment in ISO 8601") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


RUNNING = "running"
"""Stands for the fingerprint that scores now."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_service = click.option("--service", help="Only of this service.")
_scorer = click.option("--scorer", help="Only of this scorer.")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which baselines."""

    service: str | None
    scorer: str | None

    def has(self, key: Key) -> bool:
        """Whether one is among them."""
        return self.service in {None, key.service} and self.scorer in {None, key.scorer}


@click.group("baseline")
def command() -> None:
    """Show, import or replace what drops are measured against."""


@command.command("show")
@_service
@_scorer
@click.option("--all", "superseded", is_flag=True, help="Also versions that are not gone by any more.")
@database
@as_json
def show(
    service: str | None,
    scorer: str | None,
    superseded: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Show what is normal, and what is being learned. By service, scorer and route."""
    chosen = Chosen(service, scorer)
    with opened(database) as store:
        versions = [one for one in store.baselines(superseded=superseded) if chosen.has(one.key)]
        learning = [one for one in store.learning() if chosen.has(one.key)]
        now = store.now()
    if as_json:
        print_json({"baselines": [as_dict(one) for one in versions], "learning": [one.id for one in learning]})
    else:
        _print(versions, now, every=chosen == Chosen(None, None))


def as_dict(version: BaselineVersion) -> dict[str, Any]:
    """Return a version ready for JSON."""
    names = {
        "id": version.id,
        **version.key._asdict(),
        "version": version.number,
        "status": version.status,
        "reason": version.reason,
        "since": version.since,
        "until": version.until,
        "model": version.model,
        "prompt_version": version.prompt_version,
    }
    found = version.baseline
    if found is None:
        return {**names, "numbers": None}
    plain = {name: getattr(found, name) for name in ("n", "mean", "deviation", "scores_per_day", "keep")}
    routes = {route: asdict(one) for route, one in found.routes.items()}
    return {**names, "numbers": {**plain, "routes": routes, "pooled": sorted(found.pooled)}}


def _print(versions: list[BaselineVersion], now: datetime, *, every: bool = True) -> None:
    if not versions:
        click.echo("No baseline yet: learning begins with the first score." if every else "There is no such baseline.")
    for version in versions:
        key, found = version.key, version.baseline
        scope = f" where {harmless(key.scope, 100)}" if key.scope else ""
        names = f"{harmless(key.scorer, 40)} of {harmless(key.service, 40)}{scope}, judge {harmless(key.fingerprint)}"
        click.echo(f"{names}, version {version.number}: {version.status} ({version.reason.replace('_', ' ')})")
        if found is None:
            click.echo(f"  {baseline.line(version, now)}\n" if version.status == "learning" else "  never learned\n")
            continue
        window = f"{found.since:%Y-%m-%d} to {found.until:%Y-%m-%d}"
        click.echo(f"  {counted(found.n, 'score')} of {window}, {found.scores_per_day:.0f} a day")
        headings = ("  route", "n", "mean", "committed", "refused", "wander", "a day")
        print_table(headings, [_row(name, one) for name, one in found.routes.items()])
        click.echo()


def _row(name: str, one: Any) -> tuple[str, ...]:
    wander = f"{one.committed_wander:.3f}/{one.zero_wander:.3f}"
    means = f"{one.mean:.3f}", f"{one.committed_mean:.3f}", f"{one.zero_rate:.1%}"
    return f"  {harmless(name, 40)}", str(one.n), *means, wander, f"{one.scores_per_day:.1f}"


@command.command("accept")
@_service
@_scorer
@click.option("--since", type=Since(), help="What is normal began then; by default when the drop that fires did.")
@database
@as_json
def accept(
    service: str | None,
    scorer: str | None,
    since: datetime | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Take what a drop led to for normal. What fires is over, and what came since is the new baseline.

    With less than three days of it a baseline is learned anew from there on.
    """
    from germane.alerting import drop

    chosen = Chosen(service, scorer)
    with opened(database) as store:
        active = [one for one in store.baselines() if one.status == "active" and chosen.has(one.key)]
        begun = [(one, since or drop.onset_of(store, one)) for one in active]
        known = [(one, moment) for one, moment in begun if moment is not None]
        if not known:
            raise UsageError("no drop fires by any of these baselines: say --since when what is normal began")
        now = store.now()
        made = [drop.accept(store, one, moment, now) for one, moment in known]
    _tell([one for one in made if one], now, as_json=as_json)


@command.command("import")
@click.argument("file", type=_FILE, required=False)
@click.option("--since", type=Since(), help="Instead of a file: learn from the scores stored since then.")
@_service
@_scorer
@click.option("--per-day", type=click.FloatRange(0, min_open=True), metavar="N", help="Scores a day of the service.")
@click.option("--as", "named", metavar="FINGERPRINT", help=f"Whose scores the file holds: {RUNNING}, or a fingerprint.")
@database
@as_json
def import_(
    file: Path | None,
    since: datetime | None,
    service: str | None,
    scorer: str | None,
    per_day: float | None,
    named: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Learn a baseline from FILE, or from history, at once.

    FILE is a report of `germane score --report json`, or rows of value, and route, label and at where they are known
    (JSONL, JSON, CSV or Parquet). Its scores must be of the judge that scores now, unless --as says so.
    """
    if (file is None) == (since is None):
        raise click.UsageError("name a file, or --since for what is stored")
    with opened(database) as store:
        now = store.now()
        if since is not None:
            made = _from_history(store, Chosen(service, scorer), since)
        else:
            made = [_from_file(store, file, service or settings_for(database).service, scorer, per_day, named)]
    _tell([one for one in made if one], now, as_json=as_json)


def _from_history(store: Store, chosen: Chosen, since: datetime) -> list[BaselineVersion | None]:
    from germane.alerting import drop
    from germane.storage import Key

    newest = {
        Key(one.service, one.scorer, one.fingerprint)
        for one in store.summary(since=since, histograms=False)
        if one.newest
    }
    keys = [key for key in sorted(newest) if chosen.has(key)]
    if not keys:
        raise UsageError("there are no scores since then")
    return [drop.adopt_history(store, key, since, store.now()) for key in keys]


def _from_file(
    store: Store, file: Path | None, service: str, scorer: str | None, per_day: float | None, named: str | None
) -> BaselineVersion | None:
    from germane.alerting import drop
    from germane.storage import Key

    assert file is not None  # noqa: S101 - one of the two is named
    found = examples_in(file, scorer)
    running = _running(store, service).get(found.scorer)
    if running is None and named in {None, RUNNING}:
        nobody = f"nobody has scored {harmless(service, 40)} with {harmless(found.scorer, 40)} yet"
        raise UsageError(f"{nobody}: name another --service, or the judge's fingerprint with --as")
    fingerprint = _fingerprint(found.fingerprint, named, running or "")
    return drop.adopt(store, Key(service, found.scorer, fingerprint), found.examples, per_day=per_day, now=store.now())


def _running(store: Store, service: str) -> dict[str, str]:
    """Return by scorer the fingerprint that scores now, or did last."""
    last = {
        one.scorer: one.fingerprint for one in store.summary(histograms=False) if one.newest and one.service == service
    }
    return last | {name: mark for one in reversed(store.workers()) for name, mark in one.scorers.items()}


def _fingerprint(theirs: str | None, named: str | None, running: str) -> str:
    if named is not None and named != RUNNING:
        return named
    if named is None and theirs is None:
        raise UsageError(f"the file does not say which judge scored it: --as {RUNNING}, if it is the one of today")
    if named is None and theirs != running:
        raise UsageError(
            f"the file's scores are of the judge {harmless(str(theirs))}, and {harmless(running)} scores now: they "
            f"cannot be compared; --as {RUNNING} if you know better"
        )
    return running


def _tell(made: list[BaselineVersion], now: datetime, *, as_json: bool) -> None:
    if as_json:
        print_json({"baselines": [as_dict(one) for one in made]})
    else:
        _print(made, now)
