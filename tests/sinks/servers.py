"""Phoenix and MLflow themselves, each installed in an environment of its own and started on 127.0.0.1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import httpx2

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sinks"
START_TIMEOUT = 300.0
PAGE = 100
"""Number of spans or traces per request when reading."""


class Written(NamedTuple):
    """A score or label as a backend shows it."""

    span_id: str
    name: str
    key: str
    """The fingerprint of the score, or the id of the label."""
    kind: str
    value: float | None
    label: str | None
    explanation: str | None


class Server(ABC):
    """A server with an empty database, which can be killed and started again.

    Attributes:
        name: The type of its sink.
        package: The package to install.
        port: Its port.
        health: The path that responds once it has started.
    """

    name: str
    package: str
    port: int
    health: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def command(self) -> list[str]:
        """The arguments of the command that starts the server, after the name of the program."""

    @property
    @abstractmethod
    def variables(self) -> dict[str, str]:
        """Environment variables of the server."""

    @property
    @abstractmethod
    def otlp(self) -> dict[str, str]:
        """Environment variables of an application that sends its spans to the server."""

    @abstractmethod
    def read(self, spans: Sequence[tuple[str, str]]) -> Iterator[Written]:
        """Yield everything that the server has about spans, given by trace id and span id."""

    @abstractmethod
    def count_traces(self) -> int:
        """Return the number of traces that the server has stored."""

    @classmethod
    def install(cls) -> None:
        """Install the newest version, unless the environment exists."""
        if not (BUILD / cls.name / "bin" / cls.name).exists():
            subprocess.run([sys.executable, "-m", "venv", BUILD / cls.name], check=True)
            subprocess.run([BUILD / cls.name / "bin" / "pip", "install", "--quiet", cls.package], check=True)

    @property
    def version(self) -> str:
        """The installed version."""
        code = f"import importlib.metadata; print(importlib.metadata.version({self.package!r}))"
        python = BUILD / self.name / "bin" / "python"
        return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def start(self) -> None:
        """Start the server and wait until it responds."""
        program, *arguments = self.command
        variables = {**os.environ, **self.variables, "DO_NOT_TRACK": "true"}
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [BUILD / self.name / "bin" / program, *arguments],
                cwd=self.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(httpx2.TransportError):
                if httpx2.get(f"{self.url}/{self.health}", timeout=5).is_success:
                    return
            time.sleep(0.2)
        self.kill()
        raise TimeoutError(f"{self.name} did not start; see {self.folder}/server.log")

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


class PhoenixServer(Server):
    """Phoenix."""

    name, package, port, health = "phoenix", "arize-phoenix", 6006, "healthz"

    @property
    def command(self) -> list[str]:
        """Serve."""
        return ["phoenix", "serve"]

    @property
    def variables(self) -> dict[str, str]:
        """The address and the directory."""
        return {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": "4317",
            "PHOENIX_WORKING_DIR": str(self.folder),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }

    @property
    def otlp(self) -> dict[str, str]:
        """Traces alone: Phoenix accepts nothing else."""
        return {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{self.url}/v1/traces"}

    def count_traces(self) -> int:
        """Count them in the default project."""
        query = {"query": "{ projects { edges { node { name traceCount } } } }"}
        response = httpx2.post(f"{self.url}/graphql", json=query, timeout=60).raise_for_status().json()
        projects = [each["node"] for each in response["data"]["projects"]["edges"]]
        return sum(project["traceCount"] for project in projects if project["name"] == "default")

    def read(self, spans: Sequence[tuple[str, str]]) -> Iterator[Written]:
        """Yield all annotations of spans."""
        for start in range(0, len(spans), PAGE):
            parameters: list[tuple[str, str]] = [("span_ids", span_id) for _, span_id in spans[start : start + PAGE]]
            cursor: str | None = ""
            while cursor is not None:
                page = [("limit", "1000"), *([("cursor", cursor)] if cursor else [])]
                url = f"{self.url}/v1/projects/default/span_annotations"
                found = httpx2.get(url, params=[*parameters, *page], timeout=60)
                if found.status_code == httpx2.codes.NOT_FOUND:  # none of the spans exists
                    break
                response = found.raise_for_status().json()
                for each in response["data"]:
                    key, result = each["identifier"].removeprefix("germane:"), each["result"] or {}
                    yield Written(
                        each["span_id"], each["name"], key, each["annotator_kind"],
                        result.get("score"), result.get("label"), result.get("explanation"),
                    )  # fmt: skip
                cursor = response["next_cursor"]


class MLflowServer(Server):
    """MLflow's tracking server."""

    name, package, port, health = "mlflow", "mlflow", 5000, "health"

    @property
    def command(self) -> list[str]:
        """Serve with one worker, on an SQLite file."""
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        database = ["--backend-store-uri", "sqlite:///mlflow.db", "--artifacts-destination", str(self.folder / "files")]
        return ["mlflow", "server", *arguments, *database]

    @property
    def variables(self) -> dict[str, str]:
        """No telemetry."""
        return {"MLFLOW_DISABLE_TELEMETRY": "true"}

    @property
    def otlp(self) -> dict[str, str]:
        """Traces for the default experiment."""
        return {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{self.url}/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-mlflow-experiment-id=0",
        }

    def count_traces(self) -> int:
        """Count them in the default experiment."""
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
        body = {"locations": [place], "max_results": 500}
        url = f"{self.url}/api/3.0/mlflow/traces/search"
        return len(httpx2.post(url, json=body, timeout=60).raise_for_status().json().get("traces", ()))

    def read(self, spans: Sequence[tuple[str, str]]) -> Iterator[Written]:
        """Yield all assessments of traces."""
        for start in range(0, len(spans), PAGE):
            ids = [f"tr-{trace_id}" for trace_id, _ in spans[start : start + PAGE]]
            url = f"{self.url}/api/3.0/mlflow/traces/batchGetInfos"
            response = httpx2.post(url, json={"trace_ids": ids}, timeout=60).raise_for_status().json()
            for trace in response.get("trace_infos", ()):
                for each in trace.get("assessments", ()):
                    key = each["source"]["source_id"].removeprefix("germane/")
                    kind = each["source"]["source_type"].removesuffix("_JUDGE")
                    yield Written(
                        each.get("span_id", ""), each["assessment_name"], key, kind,
                        each["feedback"]["value"], each["metadata"].get("label") or None, each.get("rationale") or None,
                    )  # fmt: skip


SERVERS: dict[str, type[Server]] = {"phoenix": PhoenixServer, "mlflow": MLflowServer}


ISOLATED = "SINKS_ISOLATED"


def is_isolated() -> bool:
    """Return whether :func:`isolate` has started this process."""
    return ISOLATED in os.environ


def isolate() -> None:
    """Replace this process by the same one in a network namespace of its own, which only has a loopback interface.

    Phoenix listens for gRPC on all interfaces.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, ISOLATED: "1"})
