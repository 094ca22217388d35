"""HTTP errors that say what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException


def http_error(status: int, cause: str, next_step: str, *, headers: Mapping[str, str] | None = None) -> HTTPException:
    """Return an exception for the error page.

    Args:
        status: The HTTP status.
        cause: A sentence without anything that the client sent.
        next_step: A sentence that says what to do.
        headers: Headers of the response.
    """
    return HTTPException(status, f"{cause}\n{next_step}", headers=dict(headers or {}))
