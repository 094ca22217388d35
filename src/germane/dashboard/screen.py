"""A screen: a path, and the function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from germane.dashboard.desk import Desk

Answer = Callable[[Request, Desk], Response]


def screen(path: str, answer: Answer, *, methods: Sequence[str] = ("GET",), name: str | None = None) -> Route:
    """Return the route of a screen. ``answer`` runs on a thread of its own, for it reads a database."""

    def endpoint(request: Request) -> Response:
        return answer(request, request.app.state.desk)

    return Route(path, endpoint, methods=list(methods), name=name or answer.__name__)
