"""HTTP requests of web frameworks: the bodies and parameters that a handler has read, without reading them again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from germane.tracer.known_types import defines, has_attributes, pretends
from germane.tracer.serialized import json_value
from germane.tracer.shapes import read_fields

_CACHES = (
    *("_cached_json", "_json", "_parsed_json", "parsed_json", "_full_data"),
    *("_cached_data", "_body", "_read_bytes", "body"),
    *("_post", "_form", "form", "args", "GET", "_query_params", "query_params", "_parsed_query"),
)
"""Attributes in which requests keep what was read from them: parsed JSON, the body, forms and parameters."""
_WITH_CURRENT_REQUEST = ("flask", "quart")


def requests_of(arguments: Iterable[Any]) -> list[Any]:
    """Return the arguments that may be requests, and the current request of a framework that does not pass it."""
    objects = [value for value in arguments if has_attributes(type(value)) or defines(type(value), "_body")]
    return [*(value for value in objects if not pretends(type(value))), *current_requests()]


def current_requests() -> Iterator[Any]:
    """Yield the request that is handled in this context, if any."""
    for name in _WITH_CURRENT_REQUEST:
        module: Any = sys.modules.get(name)
        if module is not None and module.has_request_context():
            yield module.request._get_current_object()  # noqa: SLF001 - how werkzeug documents it


def bodies_of(request: Any) -> Iterator[Any]:
    """Yield what the handler has read from a request: JSON, forms and parameters."""
    for _, cached in read_fields(request, _CACHES):
        value = cached
        if type(cached) is tuple and cached:  # parameters, or Flask's JSON for both values of "silent"
            value = dict(cached) if all(type(item) is tuple for item in cached) else cached[0]
        if issubclass(type(value), Mapping):
            yield dict(value.items())  # of a form, the last or only value of each name
        elif issubclass(type(value), str | bytes):
            text = value if isinstance(value, str) else value.decode("utf-8", "replace")
            parsed = json_value(text)
            yield {"content": text} if parsed is None else parsed
