"""What the doctor finds of decorated handlers: whether they fire, and whether their texts can be read."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from germane import tracer
from germane.cli.commands.doctor.finding import Finding
from germane.settings import Settings

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.settings import Settings
    from germane.storage import Coverage, OpenTasks, Store, Worker


LATEST: Final = 20
"""Exchanges of a handler that are looked at."""
_PARTS: Final = ("question", "answer")


def look_at_handlers(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell of each handler that is decorated or was captured whether it can be scored."""
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


LEASES: Final = 2
"""Who was not seen for so many is gone, or holds still."""
NAMED: Final = 5
"""Processes that are told one by one."""


def look_at_processes(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell which processes score, which have fallen silent, and what none of them scores."""
    patience = timedelta(seconds=LEASES * settings.lease)
    alive = store.workers(within=patience)
    names = {one.id for one in alive}
    silent = [one for one in store.workers() if one.id not in names]
    if alive:
        yield Finding("processes", "ok", f"{_count(alive)} scores: {_listed([_at_work(one) for one in alive])}")
        yield from _look_at_abandoned(store, patience)
    if silent:
        told = _listed([f"{_name(one)}, seen last at {one.seen_at:%Y-%m-%d %H:%M} UTC" for one in silent])
        becomes = "is scored by others" if alive else "waits until one starts: nobody scores now"
        message = f"{_count(silent)} fell silent without having stopped: {told}; what it held {becomes}"
        yield Finding("processes", "note", message, "look for what ended or halted it; start it again if none is left")


def _look_at_abandoned(store: Store, patience: timedelta) -> Iterator[Finding]:
    waiting = {(one.scorer, one.fingerprint): _total(one) for one in store.outstanding().tasks}
    for scorer, fingerprint in store.abandoned(after=patience):
        told = f"{waiting.get((scorer, fingerprint), 0)} tasks wait for its fingerprint {fingerprint}"
        message = f"{told}, which no process runs; after an hour without one they are skipped as expired"
        fix = "run a process with that version of it, or leave them: what comes now is scored by those that run"
        yield Finding(f"scorer {scorer}", "note", message, fix)


def _total(tasks: OpenTasks) -> int:
    return tasks.candidates + tasks.ready + tasks.postponed + tasks.running


def _at_work(worker: Worker) -> str:
    busy = f"{worker.in_flight} at work" if worker.problem is None else f"waits: {worker.problem}"
    return f"{_name(worker)}, germane {worker.version}, {', '.join(sorted(worker.scorers))}, {busy}"


def _name(worker: Worker) -> str:
    return f"{worker.service} on {worker.host} (process {worker.pid})"


def _count(workers: Sequence[Worker]) -> str:
    return "1 process" if len(workers) == 1 else f"each of {len(workers)} processes"


def _listed(told: Sequence[str]) -> str:
    more = [f"and {len(told) - NAMED} more"] if len(told) > NAMED else []
    return "; ".join([*told[:NAMED], *more])


_CONNECT_TIMEOUT: Final = 3.0
_OFF: Final = {
    "OTEL_SDK_DISABLED": {"true"},
    "OTEL_TRACES_EXPORTER": {"none"},
    "OTEL_TRACES_SAMPLER": {"always_off", "parentbased_always_off"},
}
"""Switches of OpenTelemetry by which no span leaves."""
_OTLP_PORTS: Final = {"http/protobuf": 4318, "grpc": 4317}


def look_at_export() -> Iterator[Finding]:
    """Tell whether spans leave, and whether somebody takes them."""
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
