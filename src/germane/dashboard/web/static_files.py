"""Static files, cached permanently under URLs that contain a hash of their content."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC_FOLDER: Final = Path(__file__).parent.parent / "static"
_CACHE_FOREVER: Final = "public, max-age=31536000, immutable"


def static_path(root: str, name: str) -> str:
    """Return the URL of a static file, with its version."""
    return f"{root}/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return sha256((STATIC_FOLDER / name).read_bytes()).hexdigest()[:12]


class VersionedStaticFiles(StaticFiles):
    """Serves the static files."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC_FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file. Without the current version in the URL, browsers must revalidate it."""
        response = await super().get_response(path, scope)
        is_current = response.status_code < 400 and scope["query_string"] == f"v={_version(path)}".encode()
        response.headers["Cache-Control"] = _CACHE_FOREVER if is_current else "no-cache"
        return response
