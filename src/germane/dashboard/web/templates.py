"""Templates: everything is escaped but charts, whose builder takes no text of users."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from starlette.requests import Request
from starlette.responses import HTMLResponse

from germane.dashboard.web import theme
from germane.dashboard.web.forms import csrf
from germane.dashboard.web.static_files import asset
from germane.dashboard.web.urls import path_of, root_of
from germane.insights import text
from germane.insights.context import Desk
from germane.insights.health import frame_of
from germane.insights.window import View

_FOLDER: Final = Path(__file__).parent.parent / "__pycache__"


class Compiled(FileSystemBytecodeCache):
    """As Python does with modules: of each template by its text, and where nothing can be written without it."""

    def __init__(self) -> None:
        super().__init__(str(_FOLDER), "template-%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep one."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                _FOLDER.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


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
    made.filters |= {**text.FILTERS, "age": age}
    made.globals |= {"csrf": csrf, "asset": asset}
    return made


def age(moment: datetime, now: datetime) -> str:
    """Return "40 s", "3 min", "6 h" or "12 d"."""
    passed = max(now - moment, timedelta())
    for unit, seconds, up_to in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 172_800)):
        if passed.total_seconds() < up_to:
            return f"{int(passed.total_seconds() // seconds)} {unit}"
    return f"{passed.days} d"
