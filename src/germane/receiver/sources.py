"""Trace backends as sources: the traces of a window in pages, oldest first, and their spans as OTLP in JSON."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Final
from urllib.parse import quote

import httpx2

from germane import sanitize
from germane.errors import GermaneError
from germane.logging_filters import suppressed_loggers
from germane.receiver.spans import OWN_SCOPE
from germane.recognizers import EXCHANGE_ID

TIMEOUT: Final = 120.0
"""Timeout in seconds for each step of a request."""
_IDS: Final = {"trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId"}
Spans = list[dict[str, Any]]
Page = tuple[list[str], str | None]
"""Ids of traces, and the token of the next page, if any."""


class PullError(GermaneError):
    """A trace backend is unreachable or rejects a request. What was pulled before is stored."""


class TraceSource(ABC):
    """A project of a trace backend. What is not given is read from the variables of the backend's own client."""

    name: ClassVar[str]
    variables: ClassVar[Mapping[str, str]]
    """Environment variables of the URL, the project and the key, with the defaults."""

    def __init__(self, url: str = "", project: str = "") -> None:
        values = [os.environ.get(variable) or default for variable, default in self.variables.items()]
        self.url, self.project = (url or values[0]).rstrip("/"), project or values[1]
        self._headers = {"Authorization": f"Bearer {values[2]}"} if values[2] else {}

    @abstractmethod
    def list_traces(self, since: datetime, until: datetime, token: str | None) -> Page:
        """Return the traces on a page; without a token, on the first."""

    @abstractmethod
    def fetch_spans(self, trace_ids: Sequence[str]) -> Iterator[tuple[Spans, str]]:
        """Yield the spans of traces, each time with the name of their service; it is empty if unknown."""

    def request(self, path: str, params: Mapping[str, Any], body: Any = None) -> dict[str, Any]:
        """Send a request, as POST if it has a body. Raise PullError unless the response is a JSON object."""
        given = {name: value for name, value in params.items() if value is not None}
        try:
            with suppressed_loggers(), httpx2.Client(headers=self._headers, timeout=TIMEOUT) as client:
                response = client.request("POST" if body else "GET", self.url + path, params=given, json=body)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            problem = f"{self.name} is unreachable ({type(error).__name__})"
            raise PullError(f"{problem}: check --url or {next(iter(self.variables))}") from None
        status, data = f"{self.name} responded with status {response.status_code}", None
        with suppress(ValueError, RecursionError):
            data = response.json()
        if response.status_code in {401, 403}:
            raise PullError(f"{status}: set {list(self.variables)[2]} to a valid key")
        if not response.is_success:
            text = data.get("message") if isinstance(data, dict) else response.text
            raise PullError(f"{status}: {sanitize.line(str(text or 'no explanation'), 200)}")
        if not isinstance(data, dict):
            raise PullError(f"{status}, but without JSON: check --url")
        return data


class Phoenix(TraceSource):
    """A project of Phoenix. Its spans come without their service and instrumentation scope."""

    name = "phoenix"
    variables: ClassVar = {
        "PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:6006",
        "PHOENIX_PROJECT_NAME": "default",
        "PHOENIX_API_KEY": "",
    }

    def list_traces(self, since: datetime, until: datetime, token: str | None) -> Page:
        window = {"start_time": since.isoformat(), "end_time": until.isoformat()}
        page = self._load("traces", {**window, "sort": "start_time", "order": "asc", "cursor": token})
        return [trace["trace_id"] for trace in page["data"]], page.get("next_cursor")

    def fetch_spans(self, trace_ids: Sequence[str]) -> Iterator[tuple[Spans, str]]:
        cursors: list[str | None] = [None]
        while len(cursors) == len(set(cursors)):  # else, the server repeats a page
            page = self._load("spans/otlpv1", {"trace_id": trace_ids, "cursor": cursors[-1]})
            for span in page["data"]:
                for name in ("start_time_unix_nano", "end_time_unix_nano"):
                    # Phoenix keeps microseconds, and converts them to nanoseconds by way of a float.
                    span[name] = (int(span[name] or 0) + 500) // 1_000 * 1_000
            yield page["data"], ""
            if not page.get("next_cursor"):
                return
            cursors.append(page["next_cursor"])

    def _load(self, resource: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return self.request(f"/v1/projects/{quote(self.project, safe='')}/{resource}", {**params, "limit": 1_000})


class MLflow(TraceSource):
    """An experiment of MLflow, by name or id. Its spans come without their instrumentation scope."""

    name = "mlflow"
    variables: ClassVar = {
        "MLFLOW_TRACKING_URI": "http://localhost:5000",
        "MLFLOW_EXPERIMENT_NAME": "Default",
        "MLFLOW_TRACKING_TOKEN": "",
    }
    _experiment = ""

    def list_traces(self, since: datetime, until: datetime, token: str | None) -> Page:
        self._experiment = self._experiment or self._find_experiment()  # the search ignores unknown experiments
        first, end = (int(moment.timestamp() * 1_000) for moment in (since, until))
        location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self._experiment}}
        search = {
            "locations": [location],
            "filter": f"timestamp_ms >= {first} AND timestamp_ms < {end}",
            "order_by": ["timestamp_ms ASC"],
            "max_results": 500,
            "page_token": token or "",
        }
        page = self.request("/api/3.0/mlflow/traces/search", {}, search)
        return [trace["trace_id"] for trace in page.get("traces", ())], page.get("next_page_token")

    def fetch_spans(self, trace_ids: Sequence[str]) -> Iterator[tuple[Spans, str]]:
        found = self.request("/api/3.0/mlflow/traces/batchGet", {"trace_ids": trace_ids})
        for trace in found.get("traces", ()):
            yield trace.get("spans", []), trace["trace_info"].get("tags", {}).get("service.name", "")

    def _find_experiment(self) -> str:
        by_id = {"experiment_id": self.project} if self.project.isdecimal() else {}
        path = "get" if by_id else "get-by-name"
        found = self.request(f"/api/2.0/mlflow/experiments/{path}", by_id or {"experiment_name": self.project})
        return str(found["experiment"]["experiment_id"])


SOURCES: Final[Mapping[str, type[TraceSource]]] = {"phoenix": Phoenix, "mlflow": MLflow}


def as_request(spans: Spans, service: str) -> dict[str, Any]:
    """Return an OTLP request in JSON for spans with protobuf's field names. A span of germane itself gets its scope."""
    scopes: dict[str, Spans] = {}
    for span in spans:
        names = {attribute["key"] for attribute in span.get("attributes") or ()}
        renamed = {_IDS.get(name, name): value for name, value in span.items() if value is not None}
        scopes.setdefault(OWN_SCOPE if EXCHANGE_ID in names else "", []).append(renamed)
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scope_spans = [{"scope": {"name": name}, "spans": members} for name, members in scopes.items()]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}
