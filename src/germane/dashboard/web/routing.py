"""Page routes, URLs relative to the prefix under which the dashboard is mounted, and HTTP errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from germane import records
from germane.dashboard.web.parameters import Parameter, check_query
from germane.errors import StorageError, UsageError
from germane.insights import InsightContext

PageHandler = Callable[[Request, InsightContext], Response]
_LOCAL_PATH: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def root_of(scope: Scope) -> str:
    """Return the prefix under which the dashboard is mounted, without a trailing slash."""
    return str(scope.get("root_path", "")).rstrip("/")


def path_of(scope: Scope) -> str:
    """Return the path of a request, without the prefix under which the dashboard is mounted."""
    path, root = str(scope["path"]), root_of(scope)
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def address_of(scope: Scope) -> str:
    """Return the encoded path and query of a request, without the prefix under which the dashboard is mounted."""
    path = f"/{quote(path_of(scope).lstrip('/'))}"  # two slashes would lead to another host
    # Not request.url: before Starlette 1.0, its query begins at a question mark in the decoded path.
    query = str(scope["query_string"], "latin-1")
    return f"{path}?{query}" if query else path


def is_local_path(url: str) -> bool:
    """Return whether a URL is a path on this host, optionally with a query."""
    return _LOCAL_PATH.fullmatch(url) is not None


def page_route(
    path: str,
    handler: PageHandler,
    *,
    methods: Sequence[str] = ("GET",),
    name: str | None = None,
    parameters: Sequence[Parameter] | None = None,
) -> Route:
    """Return a route for a page. The handler runs in a thread, because it queries a database.

    Other query parameters than ``parameters`` are an error, unless it is None. The name defaults to the handler's.
    """

    def endpoint(request: Request) -> Response:
        context: InsightContext = request.app.state.context

        def list_attributes() -> set[str]:
            with suppress(StorageError):
                return {name for exchange in context.store.answers.list_exchanges() for name in exchange.attributes}
            return set()

        if parameters is not None:
            check_query(request, parameters, list_attributes=list_attributes)
        return handler(request, context)

    return Route(path, endpoint, methods=list(methods), name=name or handler.__name__)


class RecordsResponse(JSONResponse):
    """A JSON response that may contain records and times."""

    def render(self, content: object) -> bytes:
        """Return the content as JSON."""
        return json.dumps(content, default=records.encode, ensure_ascii=False, allow_nan=False).encode()


def http_error(status: int, cause: str, next_step: str, *, headers: Mapping[str, str] | None = None) -> HTTPException:
    """Return an exception for the error page.

    ``cause`` and ``next_step`` are sentences. Input from the client must be passed through ``sanitize.line``.
    """
    return HTTPException(status, f"{cause}\n{next_step}", headers=dict(headers or {}))


@contextmanager
def usage_errors_as_conflict(next_step: str) -> Iterator[None]:
    """Turn a usage error into an error page with status 409, which also states what to do."""
    try:
        yield
    except UsageError as error:
        message = str(error)
        raise http_error(409, f"{message[:1].upper()}{message[1:]}.", next_step) from None
