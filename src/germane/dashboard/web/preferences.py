"""Visitor preferences: theme, time zone and display name are stored in cookies, the view in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from germane.dashboard.web.forms import form
from germane.dashboard.web.parameters import Parameter, one_of, query_error, unknown_name_error
from germane.dashboard.web.routing import is_local_path, page_route, root_of
from germane.insights import BUCKETS, DEFAULT_WINDOW, WINDOWS, InsightContext, ViewParams
from germane.settings import parse_timezone

THEME_COOKIE: Final = "germane_theme"
ZONE_COOKIE: Final = "germane_zone"
NAME_COOKIE: Final = "germane_name"
THEMES: Final = ("auto", "light", "dark")
NAME_FIELD: Final = "by"
MAX_NAME_LENGTH: Final = 80
MAX_POINTS: Final = 400
"""Maximum number of points in a chart if the visitor chooses the bucket length. Keeps pages small."""
COOKIE_LIFETIME: Final = timedelta(days=365)
MIN_YEAR, MAX_YEAR = 1971, 2999
"""Local times outside these years cannot be computed in every time zone."""


def set_cookie_header(scope: Scope, name: str, value: str, lifetime: timedelta) -> str:
    """Return a ``Set-Cookie`` header for the prefix of this application. An empty value deletes the cookie.

    The cookie is HttpOnly, SameSite=Strict, and Secure for requests over HTTPS. Name and value consist of letters,
    digits and ``_``, and the value also of ``-`` and ``.``.
    """
    root = quote(str(scope.get("root_path", "")).rstrip("/")) or "/"
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    seconds = int(lifetime.total_seconds()) if value else 0
    return f"{name}={value}; HttpOnly; Max-Age={seconds}; Path={root}; SameSite=Strict{secure}"


def parse_view_params(request: Request, context: InsightContext, default_window: str = DEFAULT_WINDOW) -> ViewParams:
    """Return the view that the URL selects. Raise HTTPException for an empty window or unknown names."""
    parameters, now = request.query_params, context.now()
    names = [parameter.name for parameter in VIEW_PARAMETERS]
    query = {name: parameters[name] for name in names if parameters.get(name)}
    window = query.get("window", default_window)
    begin, end = parse_moment(query.get("since")), parse_moment(query.get("until"))
    until = end or now
    since = begin or until - WINDOWS[window]
    is_custom = (begin or end) is not None
    if since >= until:
        step = "Choose a start before the end. Without an end, the window ends now."
        raise query_error("The window is empty", "", (), step)
    check_names(request, context, {name: query[name] for name in ("scorer", "service") if name in query})
    bucket = BUCKETS.get(query.get("bucket", ""))
    since = since if is_custom else now - WINDOWS[window]
    if bucket is not None and (until - since) / bucket > MAX_POINTS:
        step = "Choose a longer bucket or a shorter window."
        raise query_error(f"The window has more than {MAX_POINTS} buckets of this length", "", (), step)
    return ViewParams(
        window="" if is_custom else window,
        since=since,
        until=until,
        chosen_bucket=bucket,
        scorer=query.get("scorer"),
        service=query.get("service"),
        zone=_parse_zone(request.cookies.get(ZONE_COOKIE)) or parse_timezone(context.settings.timezone),
        query=query,
    )


def check_names(request: Request, context: InsightContext, names: Mapping[str, str]) -> None:
    """Raise an error if a scorer, service or route has never been seen.

    Names are by kind: ``scorer``, ``service`` or ``route``. The request's application caches the known ones, because
    loading them takes time.

    Raises:
        HTTPException: With status 400. The message suggests a similar name.
    """
    known: dict[str, set[str]] = getattr(request.app.state, "known_names", {}) if names else {}
    if not any(name not in known.get(kind, ()) for kind, name in names.items()):
        return
    counts = context.store.trends.coverage()
    known = {kind: {getattr(count, kind) for count in counts} - {""} for kind in ("scorer", "service", "route")}
    request.app.state.known_names = known
    for kind, name in names.items():
        if known[kind] and name not in known[kind]:
            raise unknown_name_error(kind, name, known[kind])


def parse_moment(text: str | None) -> datetime | None:
    """Parse a time in a URL. Times without a time zone are in UTC. Return None if it is missing or malformed."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if moment is None or not MIN_YEAR <= moment.year <= MAX_YEAR:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse_zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def theme_of(request: Request) -> str:
    """Return the visitor's theme: auto, light or dark."""
    theme = request.cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "auto"


def choose_theme(request: Request, _: InsightContext) -> Response:
    """Store the chosen theme and redirect back to the page. With JavaScript, no request is needed."""
    theme = request.query_params.get("to", "")
    root, back = root_of(request.scope), request.query_params.get("back", "")
    response = RedirectResponse(root + (back if is_local_path(back) else "/"), 303)
    # The script must be able to read the cookie, and pages opened from links on other sites must use the theme.
    options: dict[str, Any] = {"path": quote(root) or "/", "secure": request.scope["scheme"] == "https"}
    value, seconds = theme if theme in THEMES else "auto", int(COOKIE_LIFETIME.total_seconds())
    response.set_cookie(THEME_COOKIE, value, max_age=seconds, samesite="lax", **options)
    return response


def stored_name(request: Request) -> str:
    """Return the display name that the visitor entered earlier, or an empty string."""
    return unquote(request.cookies.get(NAME_COOKIE, ""), errors="replace")[:MAX_NAME_LENGTH]


def submitted_name(request: Request) -> str | None:
    """Return the display name in the submitted form, or None if it is empty."""
    return form(request).get(NAME_FIELD, "").strip()[:MAX_NAME_LENGTH] or None


def redirect_after_form(request: Request, path: str) -> Response:
    """Redirect to a page, and store the display name that was submitted."""
    response = RedirectResponse(root_of(request.scope) + path, 303)
    name = submitted_name(request)
    if name is not None:
        header = set_cookie_header(request.scope, NAME_COOKIE, quote(name, safe=""), COOKIE_LIFETIME)
        response.headers.append("Set-Cookie", header)
    return response


def moment_parameter(name: str) -> Parameter:
    """Return a parameter whose value is a time."""
    return Parameter(name, _MOMENT, lambda text: parse_moment(text) is not None)


_MOMENT: Final = "a date or time, such as 2026-11-18 or 2026-11-18T14:00+01:00"
VIEW_PARAMETERS: Final = (
    one_of("window", WINDOWS),
    moment_parameter("since"),
    moment_parameter("until"),
    one_of("bucket", BUCKETS),
    Parameter("scorer"),
    Parameter("service"),
)
"""The parameters that every page with a window accepts."""
_RANGE_FIELDS: Final = ("since", "until", "bucket")


def choose_range(request: Request, context: InsightContext) -> Response:
    """Redirect back to the page with the chosen time range and bucket. Times are in the visitor's time zone."""
    parameters, root = request.query_params, root_of(request.scope)
    back = parameters.get("back", "")
    path, _, query = (back if is_local_path(back) else "/").partition("?")
    dropped = {"window", "after", *_RANGE_FIELDS}
    kept = [(name, value) for name, value in parse_qsl(query) if name not in dropped]
    zone = parse_view_params(request, context).zone
    kept += [(name, with_zone(text, zone)) for name in _RANGE_FIELDS[:2] if (text := parameters.get(name))]
    kept += [("bucket", parameters["bucket"])] if parameters.get("bucket") else []
    return RedirectResponse(f"{root}{path}?{urlencode(kept)}" if kept else f"{root}{path}", 303)


def with_zone(text: str, zone: tzinfo | None) -> str:
    """Return the time that a visitor has entered in their time zone, with the time zone."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone().isoformat()


ROUTES: Final = (
    page_route(
        "/range",
        choose_range,
        parameters=(*(one for one in VIEW_PARAMETERS if one.name in _RANGE_FIELDS), Parameter("back")),
    ),
    page_route("/theme", choose_theme, name="theme", parameters=(one_of("to", THEMES), Parameter("back"))),
)
