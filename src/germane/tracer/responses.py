"""HTTP responses of web frameworks: their status, and whether they contain text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from germane.tracer.known_types import decided_per_type, library_classes

_BODIES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("litestar", "Response"): lambda response: response.content,
    ("rest_framework", "Response"): lambda response: response.data,
    ("django", "HttpResponse"): lambda response: response.content,
    ("quart", "Response"): lambda response: response.response.data,
    ("starlette", "Response"): lambda response: response.body,
    ("werkzeug", "Response"): lambda response: None if response.is_streamed else b"".join(response.iter_encoded()),
}
"""Functions that read the body of complete responses, or what is rendered later, by package and base class."""
_RESPONSES = {*_BODIES, ("django", "HttpResponseBase")}
_TEXT_SUBTYPES = ("json", "jsonl", "jsonlines", "json-seq", "ndjson", "xml")
"""Suffixes of the ``application/`` media types that contain text, such as ``application/problem+json``."""


@decided_per_type
def is_response(kind: type) -> bool:
    """Return whether a type is a response class of a common web framework."""
    return not _RESPONSES.isdisjoint(library_classes(kind))


@decided_per_type
def body_reader(kind: type) -> Callable[[Any], Any] | None:
    """Return the function that reads the body of a complete response, or None for other types."""
    classes = library_classes(kind)
    return next((read for name, read in _BODIES.items() if name in classes), None)


def head_of(parts: tuple[Any, ...]) -> SimpleNamespace | None:
    """Return the status and headers that a Flask view returns after the body; None for other values."""
    head = SimpleNamespace(status_code=200, headers={})
    for part in parts:
        if issubclass(type(part), int | str) and (status := str(part)[:3]).isdecimal():
            head.status_code = int(status)
        elif issubclass(type(part), Mapping) or (part and type(part) is list and all(type(x) is tuple for x in part)):
            head.headers = dict(part)
        else:
            return None
    return head


def http_status(response: Any) -> int:
    """Return the status code of a response, or 200 if it does not have one."""
    status: Any = getattr(response, "status_code", None)
    return int(status) if issubclass(type(status), int) else 200


def media_type(response: Any) -> str:
    """Return the declared media type of a response in lower case, without parameters, or an empty string."""
    declared: Any = None
    for name in ("media_type", "mimetype"):
        declared = getattr(response, name, None)
        if isinstance(declared, str):
            break
    else:
        headers = getattr(response, "headers", None)
        if isinstance(headers, Mapping):
            declared = headers.get("content-type") or headers.get("Content-Type")
    return str.__str__(declared).partition(";")[0].strip().lower() if isinstance(declared, str) else ""


def is_redirect(response: Any) -> bool:
    """Return whether a response is a redirect."""
    return 300 <= http_status(response) < 400


def has_text(response: Any) -> bool:
    """Return whether a response contains text, unlike a redirect or a file. An undeclared media type is text."""
    is_file = any(name == "FileResponse" for _, name in library_classes(type(response)))
    if is_file or getattr(response, "direct_passthrough", False) is True or is_redirect(response):
        return False
    media = media_type(response)
    is_other_text = media.startswith("application/") and media.endswith(_TEXT_SUBTYPES)
    return not media or media.startswith("text/") or is_other_text
