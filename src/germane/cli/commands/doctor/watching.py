"""Checks of traces that ``germane.watch()`` reads or ``germane receive`` receives and forwards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from germane import sanitize
from germane.cli.commands.doctor.finding import Finding
from germane.insights import format_duration, load_watched_traces
from germane.storage import OVERDUE_AFTER

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

WATCH_WINDOW: Final = timedelta(hours=24)


def check_watching(store: TrackingStore, settings: Settings) -> Iterator[Finding]:
    """Report the watched traces of the last day by service and scope, with fixes for unreadable ones."""
    scopes = load_watched_traces(store, since=store.now() - WATCH_WINDOW).scopes
    if not scopes and settings.watch:
        fix = "instrument the application's framework, and set a global tracer provider or pass tracer_provider="
        yield Finding("watching", "warning", "no traces were seen in the last day", fix)
    has_services = len({traces.service for traces in scopes}) > 1
    for traces in scopes:
        of_service = f" in {sanitize.line(traces.service, 40)}" if has_services else ""
        subject = f"traces of {sanitize.line(traces.scope, 80) or 'unknown scopes'}{of_service}"
        if traces.recognized or not traces.unreadable:
            more = f", {traces.without_exchange:,} without an exchange" if traces.without_exchange else ""
            message = f"in the last day: {traces.seen:,} seen, {traces.recognized:,} recognized{more}"
            yield Finding(subject, "ok", message)
        for unreadable in traces.reasons:
            meaning = sanitize.line(unreadable.meaning)
            message = f"{unreadable.count:,} of {traces.seen:,} are unreadable: {meaning}"
            yield Finding(subject, "warning" if traces.recognized else "error", message, unreadable.fix)


def check_receiving(store: TrackingStore) -> Iterator[Finding]:
    """Report received traces that no running receiver processes, and requests that wait to be forwarded."""
    for options, count in store.received.count_overdue().items():
        traces = sanitize.count_noun(count, "received trace")
        message = f"{traces} cannot be scored, because no receiver with their options ({options}) is running"
        fix = "start germane receive, or a worker with --otlp, with these options; otherwise, they are deleted after "
        yield Finding("receiver", "warning", message, f"{fix}retention.text_days")
    for waiting in store.forwarding.list_targets():
        requests = f"{sanitize.count_noun(waiting.requests, 'request')} ({waiting.size / 2**20:,.1f} MiB)"
        age = format_duration(waiting.age)
        message = f"{requests} waiting to be forwarded to {waiting.target}, the oldest for {age}"
        message += f"; the last attempt failed: {waiting.error}" if waiting.error else ""
        if waiting.age <= OVERDUE_AFTER:
            yield Finding("forwarding", "ok", message)
            continue
        fix = "check this endpoint, and that germane receive runs with it as --forward and with the same headers"
        yield Finding("forwarding", "warning", message, fix)
