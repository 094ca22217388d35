"""Templates and static files.

All template values are escaped except charts, whose builders escape text themselves. Static files are cached
permanently, because their URLs contain a hash of their content.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from germane.dashboard.web.forms import csrf, csrf_token
from germane.dashboard.web.parameters import MAX_VALUE_LENGTH
from germane.dashboard.web.preferences import theme_of
from germane.dashboard.web.routing import address_of, is_local_path, path_of, root_of
from germane.insights import FILTERS, InsightContext, ViewParams, load_status_bar

STATIC_FOLDER: Final = Path(__file__).parent.parent / "static"
_CACHE_FOREVER: Final = "public, max-age=31536000, immutable"
_CACHE_FOLDER: Final = Path(__file__).parent.parent / "__pycache__"


def static_path(root: str, name: str) -> str:
    """Return the URL of a static file, with a hash of its content as the version."""
    return f"{root}/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return sha256((STATIC_FOLDER / name).read_bytes()).hexdigest()[:12]


@cache
def _condensed(name: str) -> str:
    """Return a file without comments and indentation."""
    lines = (line.strip() for line in (STATIC_FOLDER / name).read_text(encoding="utf-8").splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))
    return re.sub(r"\s*([{},:;])\s+", r"\1", text) if name.endswith(".css") else re.sub(r"(?m)\s+// .*$", "", text)


class VersionedStaticFiles(StaticFiles):
    """Serves the static files."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC_FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file. If the URL does not contain the current version, browsers must revalidate the file."""
        response = await super().get_response(path, scope)
        if isinstance(response, FileResponse):
            kept = {name: response.headers[name] for name in ("content-type", "etag", "last-modified")}
            response = Response(_condensed(path), headers=kept)
        is_current = response.status_code < 400 and scope["query_string"] == f"v={_version(path)}".encode()
        response.headers["Cache-Control"] = _CACHE_FOREVER if is_current else "no-cache"
        return response


class TemplateCache(FileSystemBytecodeCache):
    """A cache for compiled templates, next to the compiled Python modules. Without write access, nothing is cached."""

    def __init__(self) -> None:
        super().__init__(str(_CACHE_FOLDER), "template-%s.cache")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template to the cache, if possible."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                _CACHE_FOLDER.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


@cache
def template_environment() -> Environment:
    """Return the Jinja environment with its filters."""
    environment = Environment(
        loader=PackageLoader("germane.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        bytecode_cache=TemplateCache(),
    )
    environment.filters |= FILTERS
    environment.globals |= {"csrf": csrf, "csrf_token": csrf_token, "static_path": static_path}
    return environment


@cache
def germane_version() -> str:
    """Return the installed version of germane."""
    return metadata.version("germane")


def saveable_path(request: Request) -> str:
    """Return the path and query of a page, without the dashboard's prefix, or an empty string if it cannot be saved."""
    address = address_of(request.scope)
    return address if len(address) <= MAX_VALUE_LENGTH and is_local_path(address) else ""


def render(
    request: Request,
    context: InsightContext,
    view: ViewParams | None,
    template: str,
    *,
    status_code: int = 200,
    with_status: bool = True,
    **content: Any,
) -> HTMLResponse:
    """Render a page.

    ``content`` has the template's variables; ``scorers`` and ``services`` are the names that the visitor can choose
    from. The scoring status is loaded and shown with the navigation. Pass False for ``with_status`` for visitors
    without access, if the database is unreachable, and for pages that pass the status as ``status``.
    """
    root = root_of(request.scope)
    path = f"/{path_of(request.scope).lstrip('/')}"  # two slashes would lead to another host
    status = load_status_bar(context) if with_status else content.get("status")
    variables = {
        "request": request,
        "context": context,
        "view": view,
        "root": root,
        "path": path,
        "here": quote(path),
        "address": address_of(request.scope),
        "saveable": saveable_path(request),
        "now": status.health.now if status else context.now(),  # ages are relative to the database's clock
        "theme": theme_of(request),
        "version": germane_version(),
        "status": status,
    }
    page = template_environment().get_template(template).render(variables | content)
    return HTMLResponse(page, status_code=status_code)
