"""What @germane.observe costs, beside a bare OpenTelemetry span that builds and sets the same attributes.

Two figures, for a sync and an async handler, measured in turns in one run:

- caller: median time of one call on the calling thread. Limit 1.5 times the bare span's.
- process: CPU time of the whole process per call, with export over OTLP and, for germane, the database (SQLite) in it.
  Limit 2.5 times the bare span's.

The receiver of the spans is a process of its own, so its work is in neither figure. With ``--sampling`` the process
also decides on every exchange whether it is to be scored (rate 0: none is); by default another process would.

Run: python benchmarks/decorator.py
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane
from germane.runtime import running

QUESTION = "How long do I have to return a pair of shoes that does not fit?"
ANSWER = (
    "Shoes can be returned within thirty days of delivery. Put them into the box they came in, stick on the label that "
    "lies inside, and hand the parcel to any post office; the price is paid back within five working days."
)
CALLER_LIMIT = 1.5
PROCESS_LIMIT = 2.5
RECEIVER = """
import sys
from germane.testing import OTLPReceiver
with OTLPReceiver() as receiver:
    print(receiver.endpoint, flush=True)
    sys.stdin.read()
"""


def ask(question: str) -> str:
    """The handler: as good as free, so that what is measured is what stands around it."""
    return ANSWER if question else ""


async def ask_async(question: str) -> str:
    """The same, as a coroutine."""
    return ANSWER if question else ""


def attributes_before() -> dict[str, str]:
    """What a span of a handler has from its start."""
    return {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "ask",
    }


def attributes_after(question: str, answer: str) -> dict[str, str]:
    """What it has at its end: the same as germane sets, built the plain way."""
    user = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    assistant = [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
    return {
        "germane.exchange.id": "0" * 32,
        "openinference.span.kind": "CHAIN",
        "gen_ai.input.messages": json.dumps(user),
        "input.value": question,
        "input.mime_type": "text/plain",
        "gen_ai.output.messages": json.dumps(assistant),
        "output.value": answer,
        "output.mime_type": "text/plain",
    }


def bare(tracer: trace.Tracer) -> Callable[[str], str]:
    """The handler in a bare span."""

    def handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=attributes_before()) as span:
            answer = ask(question)
            span.set_attributes(attributes_after(question, answer))
            return answer

    return handler


def bare_async(tracer: trace.Tracer) -> Callable[[str], Any]:
    """The coroutine in a bare span."""

    async def handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=attributes_before()) as span:
            answer = await ask_async(question)
            span.set_attributes(attributes_after(question, answer))
            return answer

    return handler


def calls(handler: Callable[[str], Any], count: int) -> list[int]:
    """Call a handler, and return the nanoseconds of each call."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


async def calls_async(handler: Callable[[str], Any], count: int) -> list[int]:
    """The same for a coroutine function."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        await handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


def turn(run: Callable[[], list[int]], flush: Callable[[], object]) -> tuple[float, float]:
    """Return the median of the calls' times and the process's CPU time per call, in microseconds, all work done."""
    start = time.process_time_ns()
    times = run()
    flush()
    return median(times) / 1000, (time.process_time_ns() - start) / len(times) / 1000


def compare(
    name: str, runs: tuple[Callable[[], list[int]], Callable[[], list[int]]], flush: Callable[[], object], rounds: int
) -> bool:
    """Measure bare and observed in turns, print the ratios, and say whether both keep their limits."""
    pairs = [(turn(runs[0], flush), turn(runs[1], flush)) for _ in range(rounds + 1)][1:]
    kept = True
    for place, (what, limit) in enumerate((("caller p50", CALLER_LIMIT), ("process CPU", PROCESS_LIMIT))):
        ratio = median(observed[place] / plain[place] for plain, observed in pairs)
        plain, observed = (median(pair[side][place] for pair in pairs) for side in (0, 1))
        print(
            f"{name:5}  {what:11}  bare {plain:6.1f} us  observed {observed:6.1f} us  ratio {ratio:4.2f}  limit {limit}"
        )
        kept = kept and ratio <= limit
    return kept


CAPTURE: dict[str, Any] = {"role": "capture"}
SAMPLING: dict[str, Any] = {"rate": 0.0, "tick": 0.2, "scorers": ["question_answer_similarity"], "embedder": "local"}


def measure(endpoint: str, folder: Path, rounds: int, count: int, role: dict[str, Any]) -> bool:
    """Measure both kinds of handler against a receiver."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
    provider.add_span_processor(germane.hold(BatchSpanProcessor(exporter, max_queue_size=8 * count)))
    trace.set_tracer_provider(provider)
    germane.start(database=f"sqlite:///{folder}/benchmark.db", service="benchmark", **role)
    tracer = trace.get_tracer("bare")
    observed, observed_async = germane.observe(route="ask")(ask), germane.observe(route="ask")(ask_async)

    def flush() -> None:
        provider.force_flush()
        runtime = running()
        assert runtime is not None
        assert runtime.writer.flush(60)
        while runtime.monitor is not None and runtime.store.counts().unsampled:
            time.sleep(0.05)

    sync = (lambda: calls(bare(tracer), count), lambda: calls(observed, count))
    asynchronous = (
        lambda: asyncio.run(calls_async(bare_async(tracer), count)),
        lambda: asyncio.run(calls_async(observed_async, count)),
    )
    kept = [compare("sync", sync, flush, rounds), compare("async", asynchronous, flush, rounds)]
    germane.stop()
    provider.shutdown()
    return all(kept)


def main() -> int:
    """Run the benchmark; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000, help="per round")
    parser.add_argument("--sampling", action="store_true", help="decide on every exchange in this process too")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", RECEIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as receiver,
    ):
        assert receiver.stdout is not None
        endpoint = receiver.stdout.readline().decode().strip()
        role = SAMPLING if options.sampling else CAPTURE
        kept = measure(endpoint, Path(folder), options.rounds, options.calls, role)
        receiver.communicate()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
