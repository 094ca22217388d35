"""OTLP over HTTP, as an ASGI application: ``/v1/traces`` and ``/v1/logs``, with protobuf or JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.rpc import code_pb2  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from germane.otlp import Signal
from germane.receiver.requests import JSON, PROTOBUF, Decompressor, InvalidRequest, Overloaded
from germane.receiver.service import ExportService

_CODES: Final = {
    400: code_pb2.INVALID_ARGUMENT,
    401: code_pb2.UNAUTHENTICATED,
    413: code_pb2.INVALID_ARGUMENT,
    415: code_pb2.INVALID_ARGUMENT,
    429: code_pb2.RESOURCE_EXHAUSTED,
    503: code_pb2.UNAVAILABLE,
}


def create_http_app(service: ExportService, max_request_size: int) -> Starlette:
    """Return the ASGI application that receives OTLP over HTTP. Sizes are those of decompressed requests."""

    async def health(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[
            Route("/v1/traces", _endpoint(service, "traces", max_request_size), methods=["POST"]),
            Route("/v1/logs", _endpoint(service, "logs", max_request_size), methods=["POST"]),
            Route("/healthz", health),
        ]
    )


def _endpoint(service: ExportService, signal: Signal, limit: int) -> Callable[[Request], Awaitable[Response]]:
    async def receive(request: Request) -> Response:
        content_type = request.headers.get("content-type", "")
        as_json = content_type.partition(";")[0].strip().lower() == JSON
        if not service.is_authorized(request.headers.get("authorization", "")):
            return _error(401, "a token is required: Authorization: Bearer TOKEN", as_json, WWW_Authenticate="Bearer")
        try:
            with service.request("" if request.client is None else request.client.host) as active:
                decompressor = Decompressor(request.headers.get("content-encoding", ""), limit)
                async for part in request.stream():
                    decompressor.feed(part)
                    service.reserve(active, decompressor.size - active.size)
                message = await service.receive(active, signal, decompressor.finish(), content_type)
        except InvalidRequest as error:
            return _error(error.status, str(error), as_json)
        except Overloaded as error:
            return _error(error.status, str(error), as_json, Retry_After=str(error.retry_after))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return _encode(message, HTTPStatus.OK, as_json)

    return receive


def _error(status: int, message: str, as_json: bool, **headers: str) -> Response:  # noqa: FBT001
    body = Status(code=_CODES[status], message=message)
    return _encode(body, status, as_json, {name.replace("_", "-"): value for name, value in headers.items()})


def _encode(message: object, status: int, as_json: bool, headers: dict[str, str] | None = None) -> Response:  # noqa: FBT001
    if as_json:
        return Response(json_format.MessageToJson(message, indent=None), status, headers, media_type=JSON)
    return Response(message.SerializeToString(), status, headers, media_type=PROTOBUF)  # type: ignore[attr-defined]
