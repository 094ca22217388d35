"""Checks of spans that wait for a receiver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from germane import sanitize
from germane.cli.commands.doctor.finding import Finding

if TYPE_CHECKING:
    from germane.storage import TrackingStore

FORWARDING_WARNING: Final = 64 * 2**20
"""Size in bytes of waiting requests above which forwarding probably fails."""


def check_receiving(store: TrackingStore) -> Iterator[Finding]:
    """Report received traces that no running receiver processes, and requests that cannot be forwarded."""
    staged = store.received.measure()
    if staged.overdue:
        traces = sanitize.count_noun(staged.overdue, "received trace")
        fix = "start germane receive, or a worker with --otlp, to process them"
        yield Finding("receiver", "warning", f"{traces} cannot be scored, because no receiver is running", fix)
    size = store.forwarding.measure()
    if size > FORWARDING_WARNING:
        message = f"requests of {size / 2**20:,.0f} MiB are waiting to be forwarded"
        fix = "check the endpoint that --forward names, and that germane receive runs with this option"
        yield Finding("receiver", "warning", message, fix)
