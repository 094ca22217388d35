"""What the doctor looks at, one thing after another. Each look returns what it found; none changes anything."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from germane import tracer
from germane.cli import covered
from germane.errors import DatabaseNotMigrated, GermaneError, ScoringError, SettingsError, StorageError
from germane.score import Reason
from germane.settings import LOCAL, Settings, load

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.exchange import Exchange
    from germane.scorers import Workbench
    from germane.storage import Coverage, Store, Trouble

WINDOW = timedelta(hours=24)
"""How far back the doctor looks for what failed."""
WAITS_TOO_LONG = timedelta(minutes=10)
"""An exchange that has waited for this long waits for somebody who is not there."""
LATEST = 20
"""Exchanges of a handler that the doctor looks at."""
MANY = 10_000
"""Exchanges and scores that the doctor counts at most."""
_PARTS = ("question", "answer")
_CONNECT_TIMEOUT = 3.0
_OFF = {
    "OTEL_SDK_DISABLED": {"true"},
    "OTEL_TRACES_EXPORTER": {"none"},
    "OTEL_TRACES_SAMPLER": {"always_off", "parentbased_always_off"},
}
"""Switches of OpenTelemetry by which no span leaves."""
_OTLP_PORTS = {"http/protobuf": 4318, "grpc": 4317}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    about: str
    status: Literal["ok", "note", "fault"]
    message: str
    fix: str | None = None
    coverage: Mapping[str, Any] | None = None
    """Of a route and scorer: seen, scored, skipped and failed by reason, pending."""

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "coverage" or value is not None}


def examine(database: str | None, *, offline: bool) -> list[Finding]:
    """Look at settings, database, judge, handlers, background and export."""
    try:
        settings = load() if database is None else load(database=database)
    except SettingsError as error:
        return [Finding("settings", "fault", str(error), "correct or remove it")]
    return [
        Finding("settings", "ok", f"service {settings.service!r}, {_choice(settings)}"),
        *_look_at_database(settings),
        *_look_at_scorers(settings, offline=offline),
        *_look_at_export(),
    ]


def _choice(settings: Settings) -> str:
    """Return by what exchanges are chosen: a budget takes the rate's place."""
    return f"rate {settings.rate:g}" if settings.budget is None else "picks by budget"


def _look_at_database(settings: Settings) -> Iterator[Finding]:
    from germane.cli.processes import look_at_processes
    from germane.cli.told import look_at_channels
    from germane.cli.watched import look_at_learning, look_at_rules
    from germane.storage import Store

    try:
        store = Store(settings.database)
    except SettingsError as error:
        yield Finding("database", "fault", str(error), "correct the setting database")
        return
    try:
        store.check()
        store.elect("doctor", settings.service, ttl=timedelta())  # a lease that has ended: to write something
        yield Finding("database", "ok", f"{store.name} is there, up to date, and can be written to")
        yield from _look_at_handlers(store, settings)
        yield from _look_at_background(store, settings)
        yield from look_at_processes(store, settings)
        yield from look_at_channels(store, settings)
        yield from look_at_learning(store)
        yield from look_at_rules(store, settings)
    except DatabaseNotMigrated as error:
        yield Finding("database", "fault", str(error), "germane db upgrade")
    except StorageError as error:
        yield Finding("database", "fault", str(error), "start the database, or correct its URL, path or permissions")
    finally:
        store.close()


def _look_at_handlers(store: Store, settings: Settings) -> Iterator[Finding]:
    captured = [exchange.route for exchange in store.exchanges(limit=LATEST)]
    by_route: dict[str, list[Coverage]] = {route: [] for route in (*captured, *tracer.routes())}
    for found in store.coverage():
        by_route.setdefault(found.route, []).append(found)
    if not by_route:
        fix = "decorate a handler with @germane.observe, call germane.start() in its process, ask it something"
        yield Finding("handlers", "note", "no decorated handler has been seen yet", fix)
    for route, coverage in by_route.items():
        latest = store.exchanges(route=route, limit=LATEST)
        yield _look_at_handler(route, coverage, latest, kept=settings.capture != "none")


def _look_at_handler(route: str, coverage: list[Coverage], latest: list[Exchange], *, kept: bool) -> Finding:
    dropped = sum(found.seen for found in coverage if not found.scorer)
    about, seen = f"handler {route}", dropped + max((found.seen for found in coverage if found.scorer), default=0)
    if not seen and not latest:
        return Finding(
            about,
            "fault",
            "is decorated, but has never fired",
            "put @germane.observe directly above def, below @app.post and the like; or nobody has called it yet",
        )
    answered = [exchange for exchange in latest if exchange.status == "ok"]
    unread = [part for part in _PARTS if answered and all(getattr(exchange, part) is None for exchange in answered)]
    if unread and kept:
        return Finding(
            about,
            "fault",
            f"fired, but no {' and no '.join(unread)} could be read: its selectors match nothing",
            'name the parts: @germane.observe(question="body.query", answer="text"); the log says what was found',
        )
    if not seen:
        more = " or more" if len(latest) == LATEST else ""
        return Finding(about, "ok", f"{len(latest)}{more} captured, none of them looked at yet")
    scored = max((found.scored for found in coverage), default=0)
    return Finding(about, "ok", f"{max(seen, len(latest))} seen, {scored} scored")


def _look_at_background(store: Store, settings: Settings) -> Iterator[Finding]:
    counts, now = store.counts(at_most=MANY), datetime.now(UTC)
    waiting = counts.unsampled + counts.pending + counts.running
    oldest = counts.oldest_pending_at
    late = oldest is not None and now - oldest > WAITS_TOO_LONG
    limits, troubles = _limits_in_use(store, settings, now), store.troubles()
    yield from map(_tell, troubles)
    yield from _look_at_limits(settings, limits)
    yield from _look_at_budget(store, settings, now)
    if waiting and late and any(use.is_recent for use in limits):
        fix = "raise the limit if the judge's server allows it, or lower rate"
        message = f"{waiting} exchanges wait, the oldest for {_span(now, oldest)}: a limit lets through less than comes"
        yield Finding("scoring", "note", message, fix)
    elif waiting and ((late and not _still_tried(troubles, now)) or (counts.unsampled and _idle(store, now))):
        fix = "run 'germane worker' with a judge on this database, or an application with germane.start(role='all')"
        yield Finding("scoring", "fault", f"{waiting} exchanges wait, and nobody scores them", fix)
    else:
        more = " or more" if counts.rows == MANY else ""
        told = [f"{counts.rows}{more} scores, {waiting} waiting", *covered.candidates(store.outstanding())]
        yield Finding("scoring", "ok", "; ".join(told))
    yield from _look_at_coverage(store.coverage(since=now - WINDOW))
    if settings.rules and not counts.rows:
        yield Finding("rules", "note", "there are rules, and no scores for them to look at yet")


def _look_at_coverage(covering: Sequence[Coverage]) -> Iterator[Finding]:
    """Tell what became of the last day's exchanges, and of each scorer that mostly fails."""
    for found in filter(covered.is_told, covering):
        about = f"coverage of {found.route}, {found.scorer or covered.NO_SCORER}"
        yield Finding(about, "ok", f"in the last day {covered.sentence(found)}", coverage=covered.as_dict(found))
        if found.failed and sum(found.failed.values()) > found.scored:
            reason = max(found.failed, key=lambda name: found.failed[name])
            yield Finding(
                f"scorer {found.scorer}",
                "fault",
                f"most scores of route {found.route} failed in the last day: {dict(found.failed)}",
                _FIXES.get(reason, "look at the log of the process that scores"),
            )


@dataclass(frozen=True, slots=True)
class _LimitInUse:
    setting: str
    waited: float | None
    """Seconds that the last request waited; None before any."""
    ago: timedelta

    @property
    def is_recent(self) -> bool:
        return self.waited is not None and self.ago < WAITS_TOO_LONG


def _limits_in_use(store: Store, settings: Settings, now: datetime) -> list[_LimitInUse]:
    from germane.monitor.pace import limits_of

    uses = {use.name: use for use in store.limit_uses()}
    found = []
    for limit in limits_of(settings):
        use, setting = uses.get(limit.name), f"{limit.name}_per_minute"
        ago = timedelta() if use is None else now - use.used_at
        found.append(_LimitInUse(setting, None if use is None else use.waited, ago))
    return found


def _look_at_limits(settings: Settings, limits: Sequence[_LimitInUse]) -> Iterator[Finding]:
    """Tell of each limit in force how long work waits for it."""
    for use in limits:
        told = f"{getattr(settings, use.setting):g}, for all processes on this database together"
        if use.waited is None:
            yield Finding(use.setting, "ok", f"{told}; no request has asked for its turn yet")
        else:
            waited = f"the last request, {use.ago.total_seconds():.0f} s ago, waited {use.waited:.1f} s for its turn"
            yield Finding(use.setting, "ok", f"{told}; {waited}")


def _look_at_budget(store: Store, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Tell what of the budget is spent. That it is used up is what it is for."""
    from germane.monitor.spending import check_price, spent_of, spent_until

    budget = settings.budget
    if budget is None:
        return
    try:
        check_price(settings)
    except SettingsError as error:
        yield Finding("budget", "fault", str(error), "set the price, or limit calls or tokens instead")
    spent = store.spent()
    told = f"today (UTC) {'; '.join(spent_of(budget, spent, now))}"
    until = spent_until(budget, spent, now)
    if until is None:
        yield Finding("budget", "ok", f"{told}; for all processes on this database together")
    else:
        message = f"{told}: it is spent until {until:%Y-%m-%d %H:%M} UTC, and what is to be scored till then is skipped"
        yield Finding("budget", "note", message, "raise it, or leave it at that")


def _tell(trouble: Trouble) -> Finding:
    """Tell what scores wait for. A judge that is merely busy is daily life."""
    told = f"{trouble.tasks} scores wait, the oldest since {trouble.since:%Y-%m-%d %H:%M} UTC, and are tried again"
    message = f"{told} by themselves: {_named(trouble)}"
    busy = trouble.reason is Reason.JUDGE_RATE_LIMITED
    return Finding(f"scorer {trouble.scorer}", "note" if busy else "fault", message, _FIXES.get(trouble.reason))


def _named(trouble: Trouble) -> str:
    """Return reason and error, the reason once."""
    return trouble.error if trouble.error.startswith(f"{trouble.reason}:") else f"{trouble.reason}: {trouble.error}"


def _still_tried(troubles: Sequence[Trouble], now: datetime) -> bool:
    """Whether somebody has tried lately what waits."""
    return any(now - trouble.until < WAITS_TOO_LONG for trouble in troubles)


def _span(now: datetime, then: datetime | None) -> str:
    return f"{(now - (then or now)) / timedelta(minutes=1):.0f} minutes"


def _idle(store: Store, now: datetime) -> bool:
    """Whether even the newest exchange has waited for long."""
    newest = store.exchanges(limit=1)
    return bool(newest) and now - newest[0].started_at > WAITS_TOO_LONG


_KEY = "set OPENAI_API_KEY to a valid key, judge to a model that it may use, OPENAI_BASE_URL to where both are known"
_NO_JUDGE = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
_ADDRESS = "start the judge's server, or correct OPENAI_BASE_URL"
_EMBEDDED = "mend that, or have a judge at a server: set judge to its name, and OPENAI_API_KEY or OPENAI_BASE_URL"
_FIXES = {
    "judge_rejected": _KEY,
    "judge_unreachable": _ADDRESS,
    "judge_timeout": "raise judge_timeout, or lower concurrency",
    "judge_rate_limited": "lower rate or concurrency, or ask for a higher limit",
    "embedder_error": "correct the setting embedder",
    "no_usable_question": "use a stronger judge",
    "unparsable": "use a stronger judge, or one that thinks less; or correct OPENAI_BASE_URL",
}


def _look_at_scorers(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    from germane.scorers import build

    try:
        workbench = build(settings)
    except GermaneError as error:
        yield Finding("scorers", "fault", str(error), "install what is missing, or correct the setting")
        return
    if workbench.problem is not None:
        yield Finding("judge", "fault", "no judge is configured", workbench.problem)
        return
    yield Finding("scorers", "ok", ", ".join(scorer.name for scorer in workbench.scorers))
    yield from _look_at_choices(settings, workbench)
    yield from _look_at_calibration(settings, workbench)
    if workbench.judge is None:
        yield Finding("judge", "note", "no judge is configured: answer_relevancy is not scored", _NO_JUDGE)
    if not offline:
        yield from asyncio.run(_ask(workbench))


def _look_at_choices(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Look at what chooses exchanges: whether predicates are there, and filters are of scorers that run."""
    from germane.monitor.fitness import Fitness

    try:
        Fitness(workbench.scorers, filters=settings.filters, always=settings.always)
    except SettingsError as error:
        yield Finding("choices", "fault", str(error), "correct the name; its module is imported from where this runs")
    names = {scorer.name for scorer in workbench.scorers}
    for name in settings.filters.keys() - names:
        message = f"chooses exchanges for a scorer that does not run here: {', '.join(sorted(names))}"
        yield Finding(f"filters.{name}", "note", message, "correct the name, or run that scorer")


def _look_at_calibration(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Say on which scale labels stand. A database that is not there is told elsewhere."""
    from germane.scorers import COSINES
    from germane.scorers.floors import LEAST

    embedders = {scorer.name: getattr(scorer, "embedder", None) for scorer in workbench.scorers}
    models = {name: embedder.model for name, embedder in embedders.items() if name in COSINES and embedder}
    if not models:
        return
    calibrations, captured = _calibrations(settings)
    floors = {(one.embedder, one.scorer): one for one in calibrations}
    for name, model in models.items():
        if floor := floors.get((model, name)):
            yield Finding(f"labels of {name}", "ok", str(floor))
        elif captured >= LEAST:
            message = f"are not calibrated for {model}: each embedder's cosines have a scale of their own"
            yield Finding(f"labels of {name}", "note", message, "germane calibrate --save")


def _calibrations(settings: Settings) -> tuple[list[Calibration], int]:
    """Return the floors that are known, and how many exchanges there are."""
    from germane.storage import Store

    try:
        store = Store(settings.database)
    except SettingsError:
        return [], 0
    try:
        return store.calibrations(), store.counts(at_most=MANY).captured
    except StorageError:
        return [], 0
    finally:
        store.close()


async def _ask(workbench: Workbench) -> list[Finding]:
    """Ask judge and embedder something tiny: only their servers know whether key and model are good."""
    findings = []
    try:
        if workbench.judge is not None:
            findings.append(await _answers("judge", workbench.judge.model, workbench.try_judge()))
        if workbench.embedder is not None:
            asked = workbench.embedder.embed(["ok"])
            findings.append(await _answers("embedder", workbench.embedder.model, asked))
    finally:
        await workbench.aclose()
    return findings


async def _answers(about: str, model: str, asked: Any) -> Finding:
    try:
        await asked
    except ScoringError as error:
        fix = _EMBEDDED if model.startswith(f"{LOCAL}:") else _FIXES.get(str(error.reason), _ADDRESS)
        return Finding(about, "fault", str(error), fix)
    except GermaneError as error:
        return Finding(about, "fault", str(error), "install what is missing")
    return Finding(about, "ok", f"{model} answers")


def _look_at_export() -> Iterator[Finding]:
    off = [f"{name}={os.environ[name]}" for name, values in _OFF.items() if os.environ.get(name, "").lower() in values]
    if off:
        yield Finding("export", "note", f"no span is exported: {', '.join(off)}", "unset it, if you want spans")
        return
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if endpoint is None:
        yield Finding("export", "note", "no OTLP endpoint is set: spans go where your own tracer provider sends them")
        return
    fix = "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT"
    try:
        shown, address = _address(endpoint)
    except ValueError:  # its text quotes the address, and that may hold a password
        yield Finding("export", "fault", "the OTLP endpoint is not a web address", fix)
        return
    try:
        socket.create_connection(address, _CONNECT_TIMEOUT).close()
    except OSError as error:
        said = error.strerror or str(error)
        yield Finding("export", "fault", f"the OTLP endpoint {shown} cannot be reached ({said})", fix)
    else:
        yield Finding("export", "ok", f"the OTLP endpoint {shown} takes connections")


def _address(endpoint: str) -> tuple[str, tuple[str, int]]:
    """Return host and port, as text and to connect to."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", general)
    parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
    port = parts.port or {"https": 443}.get(parts.scheme) or _OTLP_PORTS.get(protocol, 4318)
    return f"{parts.hostname}:{port}", (parts.hostname or "localhost", port)
