"""Where in the dashboard a request goes: its path without the prefix under which the dashboard is mounted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from germane.insights.context import Desk

_LOCAL: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def root_of(scope: Scope) -> str:
    """Return the prefix, without a slash at its end."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Scope) -> str:
    """Return the path that routes go by."""
    path, root = str(scope["path"]), root_of(scope)
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def is_local(address: str) -> bool:
    """Whether an address leads nowhere but to one of our own pages: a path, and perhaps a query."""
    return _LOCAL.fullmatch(address) is not None


Answer = Callable[[Request, Desk], Response]


def screen(path: str, answer: Answer, *, methods: Sequence[str] = ("GET",), name: str | None = None) -> Route:
    """Return the route of a screen. ``answer`` runs on a thread of its own, for it reads a database."""

    def endpoint(request: Request) -> Response:
        return answer(request, request.app.state.desk)

    return Route(path, endpoint, methods=list(methods), name=name or answer.__name__)
