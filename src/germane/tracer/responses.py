"""HTTP responses of web frameworks: their status, and whether they contain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from germane.tracer.known_types import decided_per_type, library_classes

_RESPONSES = {
    ("django", "HttpResponse"),
    ("django", "HttpResponseBase"),
    ("litestar", "Response"),
    ("quart", "Response"),
    ("starlette", "Response"),
    ("werkzeug", "Response"),
}
"""Base classes of responses, as pairs of package and class name."""
_TEXT_SUBTYPES = ("json", "jsonl", "jsonlines", "json-seq", "ndjson", "xml")
"""Suffixes of the ``application/`` media types that contain text, such as ``application/problem+json``."""


@decided_per_type
def is_response(kind: type) -> bool:
    """Return whether a type is a response class of a common web framework."""
    return not _RESPONSES.isdisjoint(library_classes(kind))


def http_status(response: Any) -> int:
    """Return the status code of a response, or 200 if it does not have one."""
    status: Any = getattr(response, "status_code", None)
    return int(status) if issubclass(type(status), int) else 200


def content_type(response: Any) -> str:
    """Return the declared content type of a response, or an empty string."""
    for name in ("media_type", "mimetype"):
        declared = getattr(response, name, None)
        if isinstance(declared, str):
            return declared
    headers = getattr(response, "headers", None)
    declared = headers.get("content-type") or headers.get("Content-Type") if isinstance(headers, Mapping) else None
    return declared if isinstance(declared, str) else ""


def has_text(response: Any) -> bool:
    """Return whether a response may contain an answer: it is not a redirect, and its media type, if any, is textual."""
    media_type = content_type(response).partition(";")[0].strip().lower()
    is_text = not media_type or media_type.startswith("text/")
    is_text = is_text or (media_type.startswith("application/") and media_type.endswith(_TEXT_SUBTYPES))
    return is_text and not 300 <= http_status(response) < 400
