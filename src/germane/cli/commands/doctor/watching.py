"""Checks of traces that ``germane.watch()`` reads or ``germane receive`` receives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from germane import sanitize
from germane.cli.commands.doctor.finding import Finding
from germane.insights import load_watched_traces

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
