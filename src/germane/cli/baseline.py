"""``germane baseline``: what is taken for normal, and how to change that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli import learned
from germane.cli.opening import opened, settings_for
from germane.cli.output import Since, as_json, database, harmless, print_json, print_table
from germane.errors import UsageError
from germane.shown import counted

if TYPE_CHECKING:
    from germane.storage import BaselineVersion, Key, Store

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
            click.echo(f"  {learned.line(version, now)}\n" if version.status == "learning" else "  never learned\n")
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
    from germane.monitor import watching

    chosen = Chosen(service, scorer)
    with opened(database) as store:
        active = [one for one in store.baselines() if one.status == "active" and chosen.has(one.key)]
        begun = [(one, since or watching.onset_of(store, one)) for one in active]
        known = [(one, moment) for one, moment in begun if moment is not None]
        if not known:
            raise UsageError("no drop fires by any of these baselines: say --since when what is normal began")
        now = store.now()
        made = [watching.accept(store, one, moment, now) for one, moment in known]
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
    from germane.monitor import watching
    from germane.storage import Key

    newest = {
        Key(one.service, one.scorer, one.fingerprint)
        for one in store.summary(since=since, histograms=False)
        if one.newest
    }
    keys = [key for key in sorted(newest) if chosen.has(key)]
    if not keys:
        raise UsageError("there are no scores since then")
    return [watching.adopt_history(store, key, since, store.now()) for key in keys]


def _from_file(
    store: Store, file: Path | None, service: str, scorer: str | None, per_day: float | None, named: str | None
) -> BaselineVersion | None:
    from germane.cli.examples import examples_in
    from germane.monitor import watching
    from germane.storage import Key

    assert file is not None  # noqa: S101 - one of the two is named
    found = examples_in(file, scorer)
    running = _running(store, service).get(found.scorer)
    if running is None and named in {None, RUNNING}:
        nobody = f"nobody has scored {harmless(service, 40)} with {harmless(found.scorer, 40)} yet"
        raise UsageError(f"{nobody}: name another --service, or the judge's fingerprint with --as")
    fingerprint = _fingerprint(found.fingerprint, named, running or "")
    return watching.adopt(
        store, Key(service, found.scorer, fingerprint), found.examples, per_day=per_day, now=store.now()
    )


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
