"""Style and script: they may be kept for ever, under an address that changes with what is in them."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER: Final = Path(__file__).parent.parent / "static"
_FOR_EVER: Final = "public, max-age=31536000, immutable"


def asset(root: str, name: str) -> str:
    """Return the address of a file of ``static/``."""
    return f"{root}/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return sha256((FOLDER / name).read_bytes()).hexdigest()[:12]


class Assets(StaticFiles):
    """The files of ``static/``."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Answer with a file; browsers ask again for one whose address does not name its version."""
        answer = await super().get_response(path, scope)
        named = answer.status_code < 400 and scope["query_string"] == f"v={_version(path)}".encode()
        answer.headers["Cache-Control"] = _FOR_EVER if named else "no-cache"
        return answer
