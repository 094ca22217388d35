"""OTLP export requests: decompression, parsing of protobuf and JSON, and the errors that clients get."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from germane.errors import GermaneError
from germane.otlp import REQUESTS, ExportRequest, Signal

ExportResponse = ExportTraceServiceResponse | ExportLogsServiceResponse

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_ITEMS: Final[dict[tuple[str, str, str], type[Span | LogRecord]]] = {
    ("resourceSpans", "scopeSpans", "spans"): Span,
    ("resourceLogs", "scopeLogs", "logRecords"): LogRecord,
}
_BASE64_IDS: Final = {
    "traceId": re.compile(r"[\w+/-]{22}(?:==)?", re.ASCII),
    "spanId": re.compile(r"[\w+/-]{11}=?", re.ASCII),
    "parentSpanId": re.compile(r"[\w+/-]{11}=?", re.ASCII),
}
"""The base64 form of 16 and of 8 bytes. No hexadecimal id has these lengths."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_INVALID_JSON: Final = (
    json_format.ParseError,
    ValueError,
    RecursionError,
    AttributeError,
    TypeError,
    OverflowError,  # infinity as an integer
    SystemError,  # raised by protobuf's C code for some invalid texts
)
_ZLIB_OR_GZIP: Final = 32 + zlib.MAX_WBITS
_CHUNK: Final = 64 * 1024


class InvalidRequest(GermaneError):
    """A malformed request, which would be rejected again on a retry, with the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Overloaded(GermaneError):
    """The receiver cannot accept a request now. The client should retry it.

    Args:
        message: Why not.
        retry_after: Seconds after which the client should repeat the request.
        status: The HTTP status: 429 if there are too many requests, 503 if the database is not working.
    """

    def __init__(self, message: str, retry_after: int, status: int = 429) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.status = status


class Decompressor:
    """Decompresses a request body piece by piece, and stops when it becomes too large.

    Args:
        encoding: The ``Content-Encoding`` header.
        limit: Maximum size of the decompressed body in bytes.

    Raises:
        InvalidRequest: The encoding is not supported.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in {"", "identity", "gzip", "deflate"}:
            raise InvalidRequest("unsupported Content-Encoding; use gzip or deflate", 415)
        self._stream = None if name in {"", "identity"} else zlib.decompressobj(_ZLIB_OR_GZIP)
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0
        """Size of the decompressed body so far, in bytes."""

    def feed(self, data: bytes) -> None:
        """Add a piece of the body. Raise InvalidRequest if it is too large, or not compressed as declared."""
        if self._stream is None:
            self._add(data)
            return
        try:
            while data and not self._stream.eof:
                # Each step is small, so a bomb is noticed before it fills the memory.
                self._add(self._stream.decompress(data, _CHUNK))
                data = self._stream.unconsumed_tail
        except zlib.error:
            raise InvalidRequest("the compression of the body does not match Content-Encoding") from None

    def finish(self) -> bytes:
        """Return the complete body. Raise InvalidRequest if the compressed body is truncated."""
        if self._stream is not None:
            if not self._stream.eof and (self._parts or self.size or self._stream.unconsumed_tail):
                raise InvalidRequest("the compressed body is truncated")
            if self._stream.unused_data:
                raise InvalidRequest("data follows the compressed body")
        return b"".join(self._parts)

    def _add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._limit:
            raise InvalidRequest(f"the request exceeds {self._limit} bytes; send smaller batches", 413)
        self._parts.append(part)


def parse_request(signal: Signal, body: bytes, content_type: str) -> tuple[ExportRequest, int]:
    """Parse an export request.

    Returns:
        The request, and the number of spans or log records that were removed because they are invalid.

    Raises:
        InvalidRequest: The content type is not supported, or the body is not a request of this signal.
    """
    message = REQUESTS[signal]()
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == PROTOBUF:
        try:
            message.ParseFromString(body)
        except DecodeError:
            raise InvalidRequest("the body is not an OTLP protobuf message") from None
        return message, 0
    if media_type != JSON:
        raise InvalidRequest(f"unsupported Content-Type; use {PROTOBUF} or {JSON}", 415)
    try:
        # The error's text quotes the body, which may contain questions and answers.
        document = json.loads(body.decode("utf-8-sig"))
        if b"\\u" in body:
            document = _without_surrogates(document)
        document = _with_base64_ids(document)
        try:
            json_format.ParseDict(document, message, ignore_unknown_fields=True)
        except _INVALID_JSON:
            kept, rejected = _remove_invalid_items(document)
            if not kept:
                raise
            message = REQUESTS[signal]()
            json_format.ParseDict(document, message, ignore_unknown_fields=True)
            return message, rejected
    except _INVALID_JSON:
        raise InvalidRequest("the body is not OTLP in JSON") from None
    return message, 0


def _remove_invalid_items(document: dict[str, Any]) -> tuple[int, int]:
    """Remove the spans and log records that cannot be parsed. Return the number of remaining and of removed items."""
    kept = rejected = 0
    for (resources, scopes, items), kind in _ITEMS.items():
        for resource in _objects(document, resources):
            for scope in _objects(resource, scopes):
                if isinstance(found := scope.get(items), list):
                    valid = scope[items] = list[Any]()
                    for item in found:
                        with suppress(*_INVALID_JSON):
                            json_format.ParseDict(item, kind(), ignore_unknown_fields=True)
                            valid.append(item)
                    kept += len(valid)
                    rejected += len(found) - len(valid)
    return kept, rejected


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which protobuf rejects. JavaScript produces them when it cuts an emoji in two."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return value


def _with_base64_ids(document: Any) -> Any:
    """Replace the hexadecimal ids in OTLP JSON with base64, which protobuf's JSON format requires for bytes.

    Ids in base64 are kept: exporters that use a library for protobuf's JSON format write them.
    """
    if not isinstance(document, dict):
        raise InvalidRequest("the body is not a JSON object")
    for resources, scopes, items in _ITEMS:
        for resource in _objects(document, resources):
            for scope in _objects(resource, scopes):
                for item in _objects(scope, items):
                    for with_ids in (item, *_objects(item, "links")):
                        _replace_ids(with_ids)
    return document


def _objects(container: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    items = container.get(name)
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else iter(())


def _replace_ids(item: dict[str, Any]) -> None:
    for name in _BASE64_IDS.keys() & item.keys():
        value = item[name]
        if value is None:  # null stands for a field that is not set
            continue
        if isinstance(value, str) and _BASE64_IDS[name].fullmatch(value):
            continue
        try:
            item[name] = base64.b64encode(binascii.unhexlify(value)).decode()
        except (TypeError, ValueError):
            item[name] = []  # cannot be parsed, so that only this span or log record is rejected


def build_response(signal: Signal, rejected: int) -> ExportResponse:
    """Return the response to an accepted request, of which ``rejected`` spans or log records were invalid."""
    is_traces = signal == "traces"
    response = ExportTraceServiceResponse() if is_traces else ExportLogsServiceResponse()
    if rejected:
        message = f"{rejected} with an invalid trace id, span id or field"
        counted = {"rejected_spans" if is_traces else "rejected_log_records": rejected}
        response.partial_success.MergeFrom(type(response.partial_success)(**counted, error_message=message))
    return response
