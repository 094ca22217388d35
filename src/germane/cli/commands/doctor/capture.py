"""Checks of observed handlers, scoring processes and trace export."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from germane import sanitize, tracer
from germane.cli.commands.doctor.finding import Finding
from germane.cli.commands.doctor.reported import describe_process

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.settings import Settings
    from germane.storage import Coverage, TrackingStore

MAX_EXCHANGES_PER_HANDLER: Final = 20
MAX_PROCESSES_SHOWN: Final = 5
UNRESPONSIVE_AFTER_LEASES: Final = 2
"""Time without a heartbeat after which a process counts as unresponsive, as a multiple of the task lease."""
CONNECT_TIMEOUT: Final = 3.0
"""Timeout for connecting to the OTLP endpoint, in seconds."""
_DISABLED_EXPORT: Final = {
    "OTEL_SDK_DISABLED": {"true"},
    "OTEL_TRACES_EXPORTER": {"none"},
    "OTEL_TRACES_SAMPLER": {"always_off", "parentbased_always_off"},
}
"""OpenTelemetry environment variables, and the values that disable trace export."""
_OTLP_PORTS: Final = {"http/protobuf": 4318, "grpc": 4317}


def check_handlers(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Check that each observed or captured handler produces exchanges that can be scored."""
    recent = store.answers.list_exchanges(limit=MAX_EXCHANGES_PER_HANDLER)
    by_route: dict[str, list[Coverage]] = {
        route: [] for route in (*(each.route for each in recent), *tracer.observed_routes())
    }
    for coverage in store.trends.coverage():
        by_route.setdefault(coverage.route, []).append(coverage)
    if not by_route:
        yield _no_handler()
    for route, coverages in by_route.items():
        latest = store.answers.list_exchanges(route=route, limit=MAX_EXCHANGES_PER_HANDLER)
        yield _check_handler(route, coverages, latest, stores_text=settings.capture != "none")


def check_uncalled_handlers() -> Iterator[Finding]:
    """Report the handlers of the imported modules. Without a database, none of them can have been called."""
    routes = tracer.observed_routes()
    if not routes:
        yield _no_handler()
    for route in routes:
        yield _check_handler(route, (), (), stores_text=False)


def _no_handler() -> Finding:
    fix = "decorate a handler with @germane.observe, call germane.start() in its process, then send it a question"
    return Finding("handlers", "warning", "no observed handler found", fix)


def _check_handler(
    route: str, coverages: Sequence[Coverage], latest: Sequence[Exchange], *, stores_text: bool
) -> Finding:
    dropped = sum(coverage.seen for coverage in coverages if not coverage.scorer)
    seen = dropped + max((coverage.seen for coverage in coverages if coverage.scorer), default=0)
    subject = f"handler {route}"
    if not seen and not latest:
        fix = (
            "put @germane.observe directly above def, below decorators such as @app.post; if it is already there, the "
            "handler has not been called yet, its stream was not read, or its coroutine was not awaited"
        )
        return Finding(subject, "error", "is observed, but has not captured any exchanges", fix, group="handler")
    answered = [exchange for exchange in latest if exchange.status == "ok"]
    missing = [
        part
        for part in ("question", "answer")
        if answered and all(getattr(exchange, part) is None for exchange in answered)
    ]
    if missing and stores_text:
        selectors = {"question": 'question="body.query"', "answer": 'answer="text"'}
        chosen = ", ".join(selectors[part] for part in missing)
        fix = f"select {'it' if len(missing) == 1 else 'them'}: @germane.observe({chosen}); see the log for details"
        message = f"captured exchanges without {' and '.join(missing)}: the selectors match nothing"
        return Finding(subject, "error", message, fix, group="handler")
    if not seen:
        more = " or more" if len(latest) == MAX_EXCHANGES_PER_HANDLER else ""
        return Finding(subject, "ok", f"{len(latest)}{more} captured, not yet sampled", group="handler")
    scored = max((coverage.scored for coverage in coverages), default=0)
    return Finding(subject, "ok", f"{max(seen, len(latest))} seen, {scored} scored", group="handler")


def check_workers(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """List scoring processes, unresponsive processes, and tasks that no process can score."""
    timeout = timedelta(seconds=UNRESPONSIVE_AFTER_LEASES * settings.task_lease)
    active = store.workers.list_workers(within=timeout)
    active_ids = {worker.id for worker in active}
    unresponsive = [worker for worker in store.workers.list_workers() if worker.id not in active_ids]
    if active:
        lines = []
        for worker in active:
            state = f"{worker.in_flight} in progress" if worker.problem is None else f"degraded: {worker.problem}"
            scorers = ", ".join(sorted(worker.scorers))
            lines.append(f"{describe_process(worker)}, germane {worker.version}, {scorers}, {state}")
        count = sanitize.count_noun(len(active), "scoring process")
        yield Finding("workers", "ok", f"{count}: {_join_processes(lines)}")
        backlog = {
            (tasks.scorer, tasks.fingerprint): tasks.candidates + tasks.in_progress
            for tasks in store.backlog.load_outstanding().tasks
        }
        for scorer, fingerprint in store.orphans.list_orphaned_scorers(after=timeout):
            count = sanitize.count_noun(backlog.get((scorer, fingerprint), 0), "task")
            message = f"{count} with fingerprint {fingerprint}, which no process runs; such tasks expire after an hour"
            fix = (
                "run a worker with that configuration, or ignore this warning: new exchanges get the current "
                "fingerprint"
            )
            yield Finding(f"scorer {scorer}", "warning", message, fix)
    elif not unresponsive and (waiting := store.backlog.load_outstanding()):
        # A worker that has never run leaves no trace, and the backlog counts as stalled only after ten minutes.
        count = sanitize.count_noun(waiting.undecided + sum(tasks.in_progress for tasks in waiting.tasks), "item")
        fix = "call germane.start() without role='capture' in your application, or run: germane worker"
        yield Finding("workers", "warning", f"{count} to sample or score, but no process is scoring them", fix)
    if unresponsive:
        processes = _join_processes(
            [f"{describe_process(each)}, last seen {each.seen_at:%Y-%m-%d %H:%M} UTC" for each in unresponsive]
        )
        consequence = (
            "other processes take over their tasks"
            if active
            else "their tasks are waiting because no process is scoring"
        )
        message = f"{sanitize.count_noun(len(unresponsive), 'unresponsive process')}: {processes}; {consequence}"
        yield Finding("workers", "warning", message, "find out why they stopped, and start a worker if none is running")


def _join_processes(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MAX_PROCESSES_SHOWN} more"] if len(lines) > MAX_PROCESSES_SHOWN else []
    return "; ".join([*lines[:MAX_PROCESSES_SHOWN], *more])


def check_export() -> Iterator[Finding]:
    """Check whether spans are exported, and whether the OTLP endpoint accepts connections."""
    disabled = [
        f"{name}={os.environ[name]}"
        for name, values in _DISABLED_EXPORT.items()
        if os.environ.get(name, "").lower() in values
    ]
    if disabled:
        yield Finding(
            "export",
            "warning",
            f"trace export is disabled: {', '.join(disabled)}",
            "unset these variables to enable trace export",
        )
        return
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if endpoint is None:
        message = "no OTLP endpoint is set; only your own tracer provider exports spans"
        yield Finding("export", "warning", message)
        return
    fix = "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT"
    general_protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", general_protocol)
    try:
        parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        port = parts.port or {"https": 443}.get(parts.scheme) or _OTLP_PORTS.get(protocol, 4318)
    except ValueError:  # the error message quotes the URL, which may contain a password
        yield Finding("export", "error", "the OTLP endpoint is not a valid URL", fix)
        return
    shown = f"{parts.hostname}:{port}"
    try:
        socket.create_connection((parts.hostname or "localhost", port), CONNECT_TIMEOUT).close()
    except OSError as error:
        message = f"cannot reach the OTLP endpoint {shown} ({error.strerror or error})"
        yield Finding("export", "error", message, fix)
    else:
        yield Finding("export", "ok", f"the OTLP endpoint {shown} accepts connections")
