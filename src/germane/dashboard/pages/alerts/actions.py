"""What people do with alerts on the pages: the acts of the command line, each by a form of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.display_name import back_to, given_name
from germane.dashboard.web.forms import form
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.urls import screen
from germane.errors import UsageError
from germane.insights.context import Desk
from germane.insights.window import view_of

SPANS: Final[Mapping[str, tuple[str, timedelta]]] = {
    "1h": ("1 hour", timedelta(hours=1)),
    "8h": ("8 hours", timedelta(hours=8)),
    "1d": ("1 day", timedelta(days=1)),
    "1w": ("1 week", timedelta(weeks=1)),
}
"""For how long a silence may be had with one click."""
MATCHERS: Final = ("rule", "service", "route", "scorer")
LONGEST: Final = 500
"""Characters of a comment or a pattern."""
FARTHEST: Final = timedelta(days=366)
"""A silence that lasts longer is a rule to be switched off."""
DONE: Final[Mapping[str, str]] = {
    "ack": "Noted: it is not told again while it lasts.",
    "resolve": "It is closed, and who was told of it is told. Where its rule still finds it bad, it fires anew.",
    "silence": "Nobody is told of it for that time. It fires and ends as ever.",
    "accept": "What came since it began counts as normal from now on. The alert is over at the next look.",
}
"""What is said after each act, by its name in the address."""
Act = Callable[[Request, Desk, str], object]


def _acknowledge(request: Request, desk: Desk, alert_id: str) -> object:
    from germane.alerting import actions

    return actions.acknowledge(desk.store, alert_id, given_name(request))


def _resolve(request: Request, desk: Desk, alert_id: str) -> object:
    from germane.alerting import actions

    return actions.resolve(desk.store, desk.settings, alert_id, given_name(request))


def _accept(request: Request, desk: Desk, alert_id: str) -> object:
    """Take a drop for normal; who says so is noted as somebody who knows of it."""
    from germane.alerting import actions

    alert, by = actions.accept(desk.store, alert_id), given_name(request)
    if by not in {None, alert.acknowledged_by}:
        with suppress(UsageError):  # what watches may have closed it since
            actions.acknowledge(desk.store, alert_id, by)
    return alert


def _silence(request: Request, desk: Desk, alert_id: str) -> object:
    from germane.alerting import actions

    matchers = actions.matchers_of(actions.find(desk.store, alert_id))
    if form(request).get("what") == "rule":
        matchers = {name: one for name, one in matchers.items() if name in {"rule", "service"}}
    until, comment = _until(request, desk), _text(request, "comment")
    return actions.silence(desk.store, matchers, until=until, by=given_name(request), comment=comment)


def _on_one(name: str, act: Act) -> Callable[[Request, Desk], Response]:
    """Return a screen that does something with the alert of the address, and goes back to it."""

    def answer(request: Request, desk: Desk) -> Response:
        alert_id = str(request.path_params["alert_id"])
        if desk.store.alert(alert_id) is None:
            raise Refusal(404, "There is no such alert.", "It may be older than what is kept.")
        with _refusing():
            act(request, desk, alert_id)
        return back_to(request, f"/alerts/{quote(alert_id, safe='')}?done={name}")

    return answer


def add_silence(request: Request, desk: Desk) -> Response:
    """Silence what fits the patterns of a form."""
    from germane.alerting import actions

    matchers = {name: one for name in MATCHERS if (one := _text(request, name))}
    if not matchers and form(request).get("all") != "yes":
        step = "Name a rule, a service, a route or a scorer, or tick that nobody is to be told of anything."
        raise Refusal(400, "The silence says of nothing what it is about.", step)
    since, until = _since(request, desk), _until(request, desk)
    if since is not None and isinstance(until, datetime) and until <= since:
        raise Refusal(400, "The silence would be over before it begins.", "Give an end that comes after its beginning.")
    by, comment = given_name(request), _text(request, "comment")
    with _refusing():
        actions.silence(desk.store, matchers, since=since, until=until, by=by, comment=comment)
    return back_to(request, "/alerts#silences")


def end_silence(request: Request, desk: Desk) -> Response:
    """End a silence now; one that is over already stays so."""
    desk.store.end_silence(str(request.path_params["silence_id"]))
    return back_to(request, "/alerts#silences")


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn what an act refuses into a page that says so."""
    try:
        yield
    except UsageError as error:
        said = str(error)
        step = "Go back and look again: somebody else may have been faster."
        raise Refusal(409, f"{said[:1].upper()}{said[1:]}.", step) from None


def _since(request: Request, desk: Desk) -> datetime | None:
    """Return from when on a silence is to last; None for from now on.

    Raises:
        Refusal: it cannot be read, or is too far away.
    """
    written = form(request).get("since", "").strip()
    since = _moment(written, view_of(request, desk.now()).zone)
    if written and (since is None or since > desk.store.now() + FARTHEST):
        step = "Leave it empty for from now on, or give a moment within the next year, such as 2030-01-31T18:00."
        raise Refusal(400, "From when on the silence lasts cannot be read, or is too far away.", step)
    return since


def _until(request: Request, desk: Desk) -> datetime | timedelta:
    """Return how long a silence is to last, or until when.

    Raises:
        Refusal: it is not said, cannot be read, is over, or too far away.
    """
    written, span = form(request).get("until", "").strip(), SPANS.get(form(request).get("for", ""))
    if not written and span is not None:
        return span[1]
    until, now = _moment(written, view_of(request, desk.now()).zone), desk.store.now()
    if until is None or not now < until <= now + FARTHEST:
        step = "Choose a time from the list, or give a moment within the next year, such as 2030-01-31T18:00."
        raise Refusal(400, "Until when the silence lasts cannot be read, or is not to come.", step)
    return until


def _moment(text: str, zone: ZoneInfo | None) -> datetime | None:
    """Return a moment as browsers write it: without a zone it is in the visitor's."""
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else (found.replace(tzinfo=zone) if zone else found.astimezone())
    except (ValueError, OverflowError):
        return None


def _text(request: Request, name: str) -> str | None:
    return form(request).get(name, "").strip()[:LONGEST] or None


ROUTES = (
    screen("/alerts/silences", add_silence, methods=("POST",)),
    screen("/alerts/silences/{silence_id}/end", end_silence, methods=("POST",)),
    *(
        screen(f"/alerts/{{alert_id}}/{name}", _on_one(name, act), methods=("POST",), name=f"{name}_alert")
        for name, act in (("ack", _acknowledge), ("resolve", _resolve), ("silence", _silence), ("accept", _accept))
    ),
)
