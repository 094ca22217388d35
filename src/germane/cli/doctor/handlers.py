"""What the doctor finds of decorated handlers: whether they fire, and whether their texts can be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from germane import tracer
from germane.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from germane.exchange import Exchange
    from germane.settings import Settings
    from germane.storage import Coverage, Store

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
