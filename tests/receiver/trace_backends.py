"""Stub servers that return stored traces as Phoenix and MLflow do, recorded from their responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS = ("array_value", "bool_value", "bytes_value", "double_value", "int_value", "kvlist_value", "string_value")


@dataclass
class TraceBackend:
    """The traces of a project named ``shop``, and what was asked for."""

    traces: dict[str, list[Span]]
    page_size: int = 20
    """Maximum number of traces on a page, and of Phoenix' spans."""
    key: str = ""
    answer: Callable[[str, int], tuple[int, Any] | None] = lambda _path, _number: None
    """Replaces the response to a request by status and body, by its path and number."""
    requests: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def order(self) -> list[str]:
        """The ids of the traces, oldest first."""
        return sorted(self.traces, key=lambda id_: self.start(id_))

    def start(self, trace_id: str) -> int:
        """Return the start of a trace, in nanoseconds."""
        return min(span.start_time_unix_nano for span in self.traces[trace_id])

    def respond(self, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        if path.startswith("/v1/projects/"):
            _, _, project, resource = path[1:].split("/", 3)
            if project != "shop":
                return 404, f"Project with name {project} not found"
            return 200, self._phoenix_traces(query) if resource == "traces" else self._phoenix_spans(query)
        if "experiments" in path:
            if query not in ({"experiment_name": ["shop"]}, {"experiment_id": ["7"]}):
                return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Could not find experiment"}
            return 200, {"experiment": {"experiment_id": "7", "name": "shop"}}
        return 200, self._mlflow_search(body) if path.endswith("search") else self._mlflow_spans(query["trace_ids"])

    def _page(self, ids: Sequence[Any], token: str | None) -> tuple[list[Any], str | None]:
        first = int(token or 0)
        end = first + self.page_size
        return list(ids[first:end]), str(end) if end < len(ids) else None

    def _phoenix_traces(self, query: dict[str, list[str]]) -> dict[str, Any]:
        assert (query["sort"], query["order"], query["limit"]) == (["start_time"], ["asc"], ["1000"])
        since, until = (datetime.fromisoformat(query[name][0]).timestamp() for name in ("start_time", "end_time"))
        inside = [id_ for id_ in self.order if since <= self.start(id_) / 1e9 < until]
        ids, cursor = self._page(inside, query.get("cursor", [None])[0])
        return {"data": [{"id": "x", "trace_id": id_, "spans": None} for id_ in ids], "next_cursor": cursor}

    def _phoenix_spans(self, query: dict[str, list[str]]) -> dict[str, Any]:
        spans = [span for id_ in query["trace_id"] for span in self.traces[id_]]
        found, cursor = self._page(spans[::-1], query.get("cursor", [None])[0])
        return {"data": [phoenix_span(span) for span in found], "next_cursor": cursor}

    def _mlflow_search(self, body: Any) -> dict[str, Any]:
        assert body["locations"] == [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "7"}}]
        assert (body["order_by"], body["max_results"]) == (["timestamp_ms ASC"], 500)
        words = body["filter"].split()
        since, until = int(words[2]), int(words[6])
        inside = [id_ for id_ in self.order if since <= self.start(id_) // 1_000_000 < until]
        ids, token = self._page(inside, body.get("page_token") or None)
        found: dict[str, Any] = {"traces": [{"trace_id": f"tr-{id_}"} for id_ in ids]} if ids else {}
        return found | ({"next_page_token": token} if token else {})

    def _mlflow_spans(self, ids: Sequence[str]) -> dict[str, Any]:
        def traced(id_: str) -> dict[str, Any]:
            spans = [MessageToDict(span, preserving_proto_field_name=True) for span in self.traces[id_[3:]]]
            return {"trace_info": {"trace_id": id_, "tags": {"service.name": "shop"}}, "spans": spans}

        return {"traces": [traced(id_) for id_ in ids]}


def phoenix_span(span: Span) -> dict[str, Any]:
    """Return a span with hexadecimal ids, absent fields as null, and times that went through a float."""
    found = MessageToDict(span, preserving_proto_field_name=True)
    found |= {name: getattr(span, name).hex() or None for name in ("trace_id", "span_id", "parent_span_id")}
    for attribute in found.get("attributes", ()):
        attribute["value"] = dict.fromkeys(KINDS) | attribute["value"]
    for name in ("start_time_unix_nano", "end_time_unix_nano"):
        found[name] = int(getattr(span, name) // 1_000 / 1e6 * 1_000_000_000)
    return {"events": None, "links": None, "flags": None, "kind": "SPAN_KIND_INTERNAL", "trace_state": None} | found


@contextmanager
def serving(backend: TraceBackend) -> Iterator[TraceBackend]:
    """Serve a backend on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            backend.requests.append(f"{parts.path}?{parts.query}")
            status, content = backend.answer(parts.path, len(backend.requests)) or (
                (401, "Invalid token")
                if backend.key and self.headers.get("Authorization") != f"Bearer {backend.key}"
                else backend.respond(parts.path, parse_qs(parts.query), body)
            )
            text = content if isinstance(content, str) else json.dumps(content)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Suppress access logs."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    backend.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
