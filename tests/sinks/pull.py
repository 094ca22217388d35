"""Pull 2,000 recorded LangChain traces from a real Phoenix and MLflow: python tests/sinks/pull.py [phoenix | mlflow].

The pull is killed at half, and repeated twice. Then each trace with an answer is stored once, with its original time
and ids.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx2
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from servers import BUILD, SERVERS, is_isolated, isolate
from tests.receiver.messages import pairs, trace_request
from tests.spans.recordings import load_recordings

TRACES = 2_000
SILENT = 50
"""One in this many traces has no answer."""
PER_REQUEST = 50
PROJECT = "germane-pull"
WINDOW = timedelta(days=29)


def past_traces(count: int) -> list[list[Span]]:
    """Return recorded traces with new ids and numbers, which started at random times of the last month."""
    chance, now = random.Random(5), time.time_ns()
    recorded = {trace.file: trace for trace in load_recordings(Path(__file__).parents[1] / "spans" / "recorded")}
    traces = []
    for number in range(count):
        spans = recorded[("langchain", "langgraph")[number % 2]].spans
        trace_id, ids = chance.randbytes(16), {span.span_id: chance.randbytes(8) for span in spans}
        shift = now - chance.randrange(3_600 * 10**9, int(WINDOW.total_seconds()) * 10**9) - spans[0].start
        traces.append(
            [
                Span(
                    trace_id=trace_id,
                    span_id=ids[span.span_id],
                    parent_span_id=ids.get(span.parent_id or "", b""),
                    name=span.name,
                    start_time_unix_nano=span.start + shift,
                    end_time_unix_nano=span.end + shift,
                    attributes=pairs(numbered(span.attributes, number)),
                )
                for span in spans
            ]
        )
    return traces


def numbered(attributes: Any, number: int) -> dict[str, Any]:
    """Return attributes whose texts have a number of their own, and no answer if it is a silent trace's."""
    found: dict[str, Any] = json.loads(json.dumps(dict(attributes)).replace("1001", str(10_000 + number)))
    is_silent = number % SILENT == 0
    return {name: value for name, value in found.items() if not (is_silent and "output" in name)}


def send(source: str, url: str, traces: list[list[Span]]) -> None:
    """Send the traces to a project of their own."""
    headers = {"Content-Type": "application/x-protobuf"}
    with httpx2.Client(timeout=120) as client:
        if source == "mlflow":
            created = client.post(f"{url}/api/2.0/mlflow/experiments/create", json={"name": PROJECT})
            headers["x-mlflow-experiment-id"] = created.json()["experiment_id"]
        for start in range(0, len(traces), PER_REQUEST):
            request = trace_request(*(span for trace in traces[start : start + PER_REQUEST] for span in trace))
            resource = {"service.name": "shop", "openinference.project.name": PROJECT}
            request.resource_spans[0].resource.attributes.extend(pairs(resource))
            response = client.post(f"{url}/v1/traces", content=request.SerializeToString(), headers=headers)
            response.raise_for_status()


def count_spans(url: str) -> int:
    """Return the number of spans that Phoenix has stored."""
    count, cursor = 0, None
    while True:
        params = {"limit": 1_000, **({"cursor": cursor} if cursor else {})}
        response = httpx2.get(f"{url}/v1/projects/{PROJECT}/spans/otlpv1", params=params, timeout=120)
        if response.status_code == 404:  # the project begins with its first span
            return 0
        page = response.json()
        count, cursor = count + len(page["data"]), page["next_cursor"]
        if not cursor:
            return count


def pull(source: str, url: str, database: Path, *, kill_at: int | None = None) -> str:
    """Run ``germane pull``, and kill it once this many exchanges are stored. Return its output."""
    environment = {**os.environ, "GERMANE_DATABASE": f"sqlite:///{database}", "GERMANE_SERVICE": "shop"}
    command = [sys.executable, "-m", "germane"]
    arguments = [source, "--since", "30d", "--url", url, "--project", PROJECT]
    if not database.exists():
        subprocess.run([*command, "db", "upgrade"], env=environment, check=True, capture_output=True)
    process = subprocess.Popen([*command, "pull", *arguments], env=environment, stdout=subprocess.PIPE, text=True)
    while kill_at is not None and process.poll() is None:
        if len(stored(database)) >= kill_at:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    output = process.communicate()[0]
    if process.returncode != (0 if kill_at is None else -signal.SIGKILL):
        sys.exit(f"the pull ended with {process.returncode}: {output}")
    return output


def stored(database: Path) -> list[tuple[Any, ...]]:
    """Return trace id, span id and start of the exchanges."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT trace_id, span_id, started_at FROM exchange").fetchall()


def problems(traces: list[list[Span]], rows: list[tuple[Any, ...]]) -> list[str]:
    """Return the traces that are not stored once, with their original time and ids."""
    roots = [next(span for span in trace if not span.parent_span_id) for trace in traces]
    expected = {
        (root.trace_id.hex(), root.span_id.hex()): root.start_time_unix_nano / 1e9
        for number, root in enumerate(roots)
        if number % SILENT
    }
    found = []
    if len(rows) != len(expected) or {(trace_id, span_id) for trace_id, span_id, _ in rows} != expected.keys():
        found.append(f"{len(rows)} exchanges are stored instead of {len(expected)}, or they have other ids")
    for trace_id, span_id, started_at in rows:
        started = datetime.fromisoformat(started_at).replace(tzinfo=UTC).timestamp()
        if abs(started - expected.get((trace_id, span_id), started)) > 2e-6:
            found.append(f"trace {trace_id} has another time")
    return found


def check(source: str, url: str, database: Path, count: int) -> list[str]:
    """Send traces to a server and pull them. Return the violated promises."""
    traces = past_traces(count)
    send(source, url, traces)
    expected, deadline = sum(map(len, traces)), time.monotonic() + 900
    while source == "phoenix" and (spans := count_spans(url)) < expected:  # it stores spans after it has accepted them
        if time.monotonic() > deadline:
            return [f"Phoenix has stored {spans:,} of {expected:,} spans"]
        time.sleep(2)
    answered = count - len(range(0, count, SILENT))
    pull(source, url, database, kill_at=answered // 2)
    half = len(stored(database))
    continued = pull(source, url, database)
    again = pull(source, url, database)
    sys.stdout.write(f"{source}: {half:,} stored before the kill\n{continued}{again}")
    found = problems(traces, stored(database))
    if not answered // 2 <= half < answered:
        found.append(f"{half} exchanges were stored at the kill")
    if not again.strip().endswith(f"0 stored, {answered:,} stored before"):
        found.append("the second pull stored exchanges")
    return found


def main() -> int:
    """Run the scenario on each server, and return 1 if a promise is violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="phoenix, mlflow; default: both")
    parser.add_argument("--traces", type=int, default=TRACES)
    options = parser.parse_args()
    names = options.servers or list(SERVERS)
    if not is_isolated():
        for name in names:
            SERVERS[name].install()
        isolate()
    found = []
    for name in names:
        folder = BUILD / "runs" / f"{name}-pull"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        server = SERVERS[name](folder)
        server.start()
        try:
            found += [f"{name}: {each}" for each in check(name, server.url, folder / "germane.db", options.traces)]
        finally:
            server.kill()
    sys.stdout.write("".join(f"{each}\n" for each in found[:20]) or "every trace is stored once\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
