"""Templates: everything is escaped but charts, whose builder takes no text of users."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from importlib import metadata
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from germane.dashboard import theme, words
from germane.dashboard.compiled import Compiled
from germane.dashboard.desk import Desk
from germane.dashboard.form import csrf
from germane.dashboard.frame import frame_of
from germane.dashboard.place import path_of, root_of
from germane.dashboard.static_files import asset
from germane.dashboard.view import View


def render(
    request: Request,
    desk: Desk,
    view: View | None,
    template: str,
    *,
    status: int = 200,
    framed: bool = True,
    **content: Any,
) -> HTMLResponse:
    """Return a page.

    Args:
        request: What is answered.
        desk: What screens work with.
        view: What the visitor looks at; None where there is nothing to choose.
        template: A file of ``templates/``.
        status: Of HTTP.
        framed: Whether the page shows navigation and what it tells of the database: not to who may not enter, and
            not where the database is away.
        content: What the template shows. ``scorers`` and ``services``, names to choose from, make a choice in the bar.
    """
    page = environment().get_template(template)
    root = root_of(request.scope)
    path = f"/{path_of(request.scope).lstrip('/')}"  # two slashes would lead elsewhere
    frame = frame_of(desk) if framed else content.get("frame")
    around = {
        "request": request,
        "desk": desk,
        "view": view,
        "root": root,
        "path": path,
        "here": quote(path),
        "now": frame.health.now if frame else desk.now(),  # ages are by the clock that all processes share
        "theme": theme.of(request),
        "version": version(),
        "frame": frame,
    }
    return HTMLResponse(page.render(around | content), status_code=status)


@cache
def version() -> str:
    """Return which germane this is."""
    return metadata.version("germane")


@cache
def environment() -> Environment:
    """Return the templates, with their filters."""
    made = Environment(
        loader=PackageLoader("germane.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        bytecode_cache=Compiled(),
    )
    made.filters |= {**words.FILTERS, "age": age}
    made.globals |= {"csrf": csrf, "asset": asset}
    return made


def age(moment: datetime, now: datetime) -> str:
    """Return "40 s", "3 min", "6 h" or "12 d"."""
    passed = max(now - moment, timedelta())
    for unit, seconds, up_to in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 172_800)):
        if passed.total_seconds() < up_to:
            return f"{int(passed.total_seconds() // seconds)} {unit}"
    return f"{passed.days} d"
