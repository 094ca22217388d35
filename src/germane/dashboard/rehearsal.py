"""Why is this not alerting: what stands in a rule's way now, and what it would have told over a time that is past."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.hindrances import Place, read
from germane.dashboard.refusal import Refusal
from germane.dashboard.rendering import render
from germane.dashboard.screen import screen
from germane.dashboard.telling import span_of
from germane.dashboard.view import view_of
from germane.settings import AnyRule

if TYPE_CHECKING:
    from germane.monitor.preview import Preview

LOOKS: Final = 56
"""At so many moments of its time a rule is looked at again: every three hours of a week."""
LONGEST: Final = timedelta(days=31)
MOST: Final = 100_000
"""Scores that are replayed for a page; of more the command line tells."""
_one_at_a_time = threading.Lock()


def replay(desk: Desk, rule: AnyRule, place: Place, most: int = MOST) -> Preview:
    """Replay one rule over the time, at some moments of it.

    Raises:
        Refusal: there is too much of it for a page, or another one is being replayed.
    """
    from germane.monitor.preview import preview
    from germane.monitor.preview.preview import step_of

    since = max(place.since, place.until - LONGEST)
    scores = sum(one.n for one in desk.store.summary(since=since, until=place.until, histograms=False))
    if scores > most:
        step = f"Take a shorter window, or ask on the command line: germane alerts preview --rule {rule.kind}"
        raise Refusal(413, f"{scores:,} scores are too many to be replayed for a page.", step)
    if not _one_at_a_time.acquire(blocking=False):
        step = "Come again in a few seconds: replaying takes the database's time, so that only one is done at once."
        raise Refusal(503, "Another rule is being replayed.", step, headers={"Retry-After": "10"})
    try:
        looks = max(step_of(rule), (place.until - since) / LOOKS)
        return preview(desk.store, desk.settings, [rule], since=since, until=place.until, step=looks)
    finally:
        _one_at_a_time.release()


def rehearsal(request: Request, desk: Desk) -> Response:
    """Answer why nothing alerts, for a route and a time."""
    view = view_of(request, desk.now())
    route, asked = request.query_params.get("route") or None, request.query_params.get("replay")
    place = Place(since=view.since, until=view.until, service=view.service, route=route, view=view)
    facts, rules = read(desk, place)
    chosen = next((one.rule for one in rules if one.rule.name == asked), None)
    told: dict[str, Any] = {
        "place": place,
        "facts": facts,
        "rules": rules,
        "routes": sorted({one.route for one in facts.means} | ({route} if route else set())),
        "replayed": None if chosen is None else replay(desk, chosen, place),
        "length": span_of,
    }
    return render(request, desk, view, "rehearsal.html", **told)


ROUTES = (screen("/alerts/preview", rehearsal),)
