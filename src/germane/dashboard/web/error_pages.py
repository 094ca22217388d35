"""Error responses that state the cause and the next step, as an HTML page or as plain text."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ExceptionHandler

from germane import sanitize
from germane.dashboard.web.routing import http_error
from germane.dashboard.web.templates import render
from germane.errors import ArchiveError, DatabaseNotMigrated, DatabaseUnreachable, StorageError
from germane.insights import InsightContext

_TITLES: Final[Mapping[int, str]] = {
    400: "Invalid request",
    401: "Token required",
    403: "Access denied",
    404: "Page not found",
    405: "Method not allowed",
    413: "Request too large",
    414: "URL too long",
    415: "Unsupported media type",
    429: "Too many attempts",
    500: "Internal error",
    503: "Temporarily unavailable",
}
_NEXT_STEPS: Final[Mapping[int, str]] = {
    404: "Check the URL. The page's data may have been deleted under your retention settings.",
    405: "Go back and use one of the buttons on the page.",
}
_RETRY: Final = {"Retry-After": "5"}


def error_response(request: Request, context: InsightContext, error: HTTPException) -> Response:
    """Return an HTML page to browsers and two lines of plain text to other clients."""
    status = error.status_code
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    cause, _, next_step = error.detail.partition("\n")
    if not next_step:  # raised by Starlette
        cause, next_step = f"{title}.", _NEXT_STEPS.get(status, "Go back to the overview.")
    headers = error.headers or {}
    if not accepts_html(request):
        return PlainTextResponse(f"{cause}\n{next_step}\n", status, headers)
    content = {"title": title, "cause": cause, "next_step": next_step, "can_retry": status >= 500}
    page = render(request, context, None, "error.html", status_code=status, with_status=False, **content)
    page.headers.update(headers)
    return page


def accepts_html(request: Request) -> bool:
    """Return whether the client accepts HTML, as browsers do."""
    return "text/html" in request.headers.get("accept", "")


def _handle(request: Request, error: Exception) -> Response:
    context: InsightContext = request.app.state.context
    if isinstance(error, HTTPException):
        return error_response(request, context, error)
    # The messages of other exceptions may quote captured text.
    if isinstance(error, DatabaseUnreachable):
        cause = f"The database {context.store.name} cannot be reached."
        step = "Run germane doctor to find the cause, then reload this page."
        return error_response(request, context, http_error(503, cause, step, headers=_RETRY))
    if isinstance(error, DatabaseNotMigrated):
        cause = f"The tables in {context.store.name} are missing or belong to a different version of germane."
        step = "Run germane db upgrade. If the tables are newer than this version of germane, upgrade germane instead."
        return error_response(request, context, http_error(503, cause, step, headers=_RETRY))
    if isinstance(error, ArchiveError):
        step = "Other windows may still work. Run germane archive --verify to check all archived days."
        return error_response(request, context, http_error(503, sanitize.line(str(error), 500), step))
    if isinstance(error, StorageError):
        step = "Go back and try another request. Run germane doctor to find the cause."
        return error_response(request, context, http_error(503, "The database rejected the query.", step))
    step = "See the log of this process for the location of the error. Other pages still work."
    return error_response(request, context, http_error(500, "This page failed because of a bug in germane.", step))


EXCEPTION_HANDLERS: Final[Mapping[int | type[Exception], ExceptionHandler]] = dict.fromkeys(
    (HTTPException, DatabaseUnreachable, DatabaseNotMigrated, StorageError, Exception), _handle
)
