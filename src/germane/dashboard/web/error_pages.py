"""Pages in place of pages: why there is nothing to see, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ExceptionHandler

from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.templates import render
from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, StorageError
from germane.insights.context import Desk

_TITLES: Final[Mapping[int, str]] = {
    400: "That cannot be read",
    401: "A token is needed",
    403: "Not allowed",
    404: "There is no such page",
    405: "That cannot be done here",
    413: "Too much at once",
    414: "That address is too long",
    415: "That is no form",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Not just now",
}
_STEPS: Final[Mapping[int, str]] = {
    404: "The address may be mistyped, or what it led to was erased when its time had come.",
    405: "Go back to the page that you came from, and take one of its buttons.",
}
_RETRY: Final = {"Retry-After": "5"}


def refused(request: Request, desk: Desk, refusal: Refusal) -> Response:
    """Answer with a page where somebody looks at it, with two lines of text where a program does."""
    if not wants_page(request):
        text = f"{refusal.cause}\n{refusal.next_step}\n"
        return PlainTextResponse(text, refusal.status, refusal.headers)
    title = _TITLES.get(refusal.status) or HTTPStatus(refusal.status).phrase
    told = {"title": title, "cause": refusal.cause, "next_step": refusal.next_step, "again": _is_worth_trying(refusal)}
    page = render(request, desk, None, "refused.html", status=refusal.status, framed=False, **told)
    page.headers.update(refusal.headers)
    return page


def wants_page(request: Request) -> bool:
    """Whether a browser asks."""
    return "text/html" in request.headers.get("accept", "")


def _is_worth_trying(refusal: Refusal) -> bool:
    return refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    cause = f"{_TITLES.get(status) or HTTPStatus(status).phrase}."
    return _answer(request, Refusal(status, cause, _STEPS.get(status, "Go back to the overview."), headers=headers))


def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 - starlette calls it with nothing else
    return _answer(request, error)


def _unreachable(request: Request, error: Exception) -> Response:  # noqa: ARG001 - it may quote what was asked for
    cause = f"The database {_desk(request).store.name} cannot be reached, or does not work."
    step = "This page comes back by itself once it does; germane doctor says what is wrong with it."
    return _answer(request, Refusal(503, cause, step, headers=_RETRY))


def _not_migrated(request: Request, error: Exception) -> Response:  # noqa: ARG001
    cause = f"The tables in {_desk(request).store.name} are missing, older or newer than this version expects."
    step = "Bring them up to date: germane db upgrade. Newer ones need the newer germane that made them."
    return _answer(request, Refusal(503, cause, step, headers=_RETRY))


def _refused_by_database(request: Request, error: Exception) -> Response:  # noqa: ARG001
    cause = "The database refused what was asked of it."
    return _answer(request, Refusal(503, cause, "Go back and ask for something else; germane doctor may say more."))


def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001 - it may quote what people wrote
    step = "The log of this process says where. The other pages go on."
    return _answer(request, Refusal(500, "This page could not be made: a fault of germane's own.", step))


def _answer(request: Request, refusal: Refusal) -> Response:
    return refused(request, _desk(request), refusal)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


HANDLERS: Final[Mapping[int | type[Exception], ExceptionHandler]] = {
    HTTPException: _not_found,
    Refusal: _refusal,
    DatabaseUnreachable: _unreachable,
    DatabaseNotMigrated: _not_migrated,
    StorageError: _refused_by_database,
    Exception: _failed,
}
