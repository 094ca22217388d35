"""Phoenix and MLflow as the sinks see them, over HTTP: what they accept, refuse and store."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Request(NamedTuple):
    """A received request."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any


class Answer(NamedTuple):
    """A response: text, or data that is sent as JSON."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


class Backend:
    """A backend that stores what it accepts.

    Attributes:
        requests: All requests, in order.
        interruptions: Functions that handle the next requests instead, one each; None to handle one normally. If a
            function returns nothing, the request is handled, but its response is lost.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.interruptions: list[Callable[[], Answer | None] | None] = []
        self.url = ""

    def handle(self, request: Request) -> Answer:
        """Handle a request."""
        raise NotImplementedError

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve the backend on a free port."""
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                parts = urlsplit(self.path)
                text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(text) if text else None
                path, query = parts.path.removeprefix("/base"), parse_qs(parts.query)
                request = Request(self.command, path, query, dict(self.headers), body)
                backend.requests.append(request)
                interruption = backend.interruptions.pop(0) if backend.interruptions else None
                answer = interruption() if interruption else backend.handle(request)
                if answer is None:
                    backend.handle(request)
                    self.close_connection = True
                    return
                is_text = isinstance(answer.body, str)
                content = answer.body.encode() if is_text else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                self.send_header("Content-Type", "text/plain" if is_text else "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815 - named by the standard library

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}/base"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()


class Phoenix(Backend):
    """Annotations of the spans it knows, by span, name and identifier.

    Attributes:
        spans: The ids of the spans.
        annotations: The annotations.
        allows_deletion: Whether annotations can be deleted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spans: set[str] = set()
        self.annotations: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.allows_deletion = True
        self._ids: dict[str, tuple[str, str, str]] = {}

    def handle(self, request: Request) -> Answer:
        """Write all annotations, or none if a span is unknown."""
        if (request.method, request.path) == ("POST", "/graphql"):
            return self._delete(request)
        if (request.method, request.path) != ("POST", "/v1/span_annotations") or request.query != {"sync": ["true"]}:
            return Answer(404, {"detail": "Not Found"})
        sent = request.body["data"]
        if len(sent) > 100 or any(len(each["name"]) > 200 for each in sent):
            return Answer(413, "too large")
        if missing := sorted({each["span_id"] for each in sent} - self.spans):
            return Answer(404, f"Spans with IDs {', '.join(missing)} do not exist.")
        written = []
        for each in sent:
            key = (each["span_id"], each["name"], each["identifier"])
            self.annotations[key] = each
            id_ = ":".join(key)
            self._ids[id_] = key
            written.append({"id": id_})
        return Answer(200, {"data": written})

    def _delete(self, request: Request) -> Answer:
        assert "deleteSpanAnnotations" in request.body["query"]
        ids = request.body["variables"]["ids"]
        if not self.allows_deletion or len(ids) > len(set(ids)):
            return Answer(200, {"data": None, "errors": [{"message": "not associated with the current user"}]})
        for id_ in ids:
            del self.annotations[self._ids[id_]]
        return Answer(200, {"data": {"deleteSpanAnnotations": {"__typename": "SpanAnnotationMutationPayload"}}})


class MLflow(Backend):
    """Assessments of the traces it knows.

    Attributes:
        traces: The assessments by trace id.
        forbids_unknown: Whether a request for an unknown trace is forbidden, as with basic-auth.
    """

    def __init__(self) -> None:
        super().__init__()
        self.traces: dict[str, list[dict[str, Any]]] = {}
        self.forbids_unknown = False

    def handle(self, request: Request) -> Answer:
        """Read, create, update or delete assessments."""
        if request.path == "/api/2.0/mlflow/experiments/search":
            return Answer(200, {"experiments": []})
        if request.path == "/api/3.0/mlflow/traces/batchGetInfos":
            ids = request.body["trace_ids"]
            if self.forbids_unknown and not self.traces.keys() >= set(ids):
                return Answer(403, "Permission denied")
            return Answer(200, {"trace_infos": [self._info(id_) for id_ in ids if id_ in self.traces]})
        found = re.fullmatch(r"/api/3\.0/mlflow/traces/(tr-[0-9a-f]{32})(?:/assessments(?:/([^/]+))?)?", request.path)
        if found is None:
            return Answer(404, "<title>404 Not Found</title>")
        trace_id, assessment_id = found.groups()
        if trace_id not in self.traces:
            return self._unknown("Trace", trace_id)
        if request.method == "GET":
            return Answer(200, {"trace": {"trace_info": self._info(trace_id)}})
        if request.method == "POST":
            return self._create(trace_id, request.body["assessment"])
        stored = [each for each in self.traces[trace_id] if each["assessment_id"] == assessment_id]
        if not stored:
            return self._unknown("Assessment", trace_id)
        if request.method == "DELETE":
            self.traces[trace_id].remove(stored[0])
            return Answer(200, {})
        for field in request.body["update_mask"].split(","):
            new = request.body["assessment"][field]
            stored[0][field] = {**stored[0][field], **new} if field == "metadata" else new
        return Answer(200, {"assessment": stored[0]})

    def _create(self, trace_id: str, assessment: dict[str, Any]) -> Answer:
        assert all(isinstance(value, str) for value in assessment["metadata"].values()), "MLflow would drop the rest"
        if len(assessment["assessment_name"]) > 250:
            return Answer(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "too long"})
        created = {**assessment, "assessment_id": f"a-{uuid.uuid4().hex}", "valid": True}
        self.traces[trace_id].append(created)
        return Answer(200, {"assessment": created})

    def _info(self, trace_id: str) -> dict[str, Any]:
        assessments = self.traces[trace_id]
        return {"trace_id": trace_id, **({"assessments": assessments} if assessments else {})}

    def _unknown(self, what: str, id_: str) -> Answer:
        if self.forbids_unknown:
            return Answer(403, "Permission denied")
        return Answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"{what} with ID '{id_}' not found."})
