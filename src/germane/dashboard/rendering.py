"""Templates: everything is escaped but charts, whose builder takes no text of users."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from germane.dashboard.desk import Desk
from germane.dashboard.view import View


def render(
    request: Request, desk: Desk, view: View | None, template: str, *, status: int = 200, **content: Any
) -> HTMLResponse:
    """Return a page.

    Args:
        request: What is answered.
        desk: What screens work with.
        view: What the visitor looks at; None where there is nothing to choose.
        template: A file of ``templates/``.
        status: Of HTTP.
        content: What the template shows.
    """
    page = environment().get_template(template)
    root = str(request.scope.get("root_path", "")).rstrip("/")
    text = page.render(request=request, desk=desk, view=view, root=root, path=_path(request), now=desk.now(), **content)
    return HTMLResponse(text, status_code=status)


def _path(request: Request) -> str:
    return request.url.path.removeprefix(str(request.scope.get("root_path", "")).rstrip("/"))


@cache
def environment() -> Environment:
    """Return the templates, with their filters."""
    made = Environment(
        loader=PackageLoader("germane.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"number": number, "age": age}
    return made


def number(value: float | None, digits: int = 2) -> str:
    """Return "0.69"; a dash for what is not known."""
    return "\u2013" if value is None else f"{value:.{digits}f}"


def age(moment: datetime, now: datetime) -> str:
    """Return "40 s", "3 min", "6 h" or "12 d"."""
    passed = max(now - moment, timedelta())
    for unit, seconds, up_to in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 172_800)):
        if passed.total_seconds() < up_to:
            return f"{int(passed.total_seconds() // seconds)} {unit}"
    return f"{passed.days} d"
