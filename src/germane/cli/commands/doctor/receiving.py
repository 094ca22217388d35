"""Checks of spans that wait for a receiver, and of requests that wait to be forwarded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from germane import sanitize
from germane.cli.commands.doctor.finding import Finding
from germane.insights import format_duration
from germane.storage import OVERDUE_AFTER

if TYPE_CHECKING:
    from germane.storage import TrackingStore


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
