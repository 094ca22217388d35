"""Overhead of @germane.observe compared with a bare OpenTelemetry span that sets the same attributes.

Two figures, for a sync and an async handler, measured alternately in one run:

- caller: median time of one call on the calling thread. Limit: 1.5 times that of the bare span.
- process: CPU time of the whole process per call, including OTLP export and, for germane, the SQLite database.
  Limit: 2.5 times that of the bare span.

Both are measured for spans that are exported immediately, as in a process that only captures, and for spans that wait
for their score, as with a sample rate of 1. The receiver of the spans is a separate process, and nothing is scored, so
the figures include neither. With ``--sampling``, this process also makes the sampling decision for every exchange.

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
from germane.process import current_runtime

QUESTION = "How long do I have to return a pair of shoes that does not fit?"
ANSWER = (
    "Shoes can be returned within thirty days of delivery. Put them into the box they came in, stick on the label that "
    "lies inside, and hand the parcel to any post office; the price is paid back within five working days."
)
CALLER_LIMIT = 1.5
BLOCK = 100
UNLIMITED = 10**9
"""Exchanges per minute. Exchanges beyond the limit cost less; see benchmarks/capture.py."""
Run = Callable[[int], list[int]]
"""Makes a number of calls and returns the duration of each in nanoseconds."""
PROCESS_LIMIT = 2.5
RECEIVER = """
import sys
from germane.testing import OTLPReceiver
with OTLPReceiver() as receiver:
    print(receiver.endpoint, flush=True)
    sys.stdin.read()
"""


def ask(question: str) -> str:
    """A handler with negligible cost, so that the overhead is measured."""
    return ANSWER if question else ""


async def ask_async(question: str) -> str:
    """The same handler as a coroutine."""
    return ANSWER if question else ""


def attributes_before() -> dict[str, str]:
    """Return the attributes of a handler's span at its start."""
    return {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "ask",
    }


def attributes_after(question: str, answer: str) -> dict[str, str]:
    """Return the attributes at the span's end, the same as germane sets."""
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
    """Wrap the handler in a bare span."""

    def handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=attributes_before()) as span:
            answer = ask(question)
            span.set_attributes(attributes_after(question, answer))
            return answer

    return handler


def bare_async(tracer: trace.Tracer) -> Callable[[str], Any]:
    """Wrap the coroutine in a bare span."""

    async def handler(question: str) -> str:
        with tracer.start_as_current_span("invoke_workflow ask", attributes=attributes_before()) as span:
            answer = await ask_async(question)
            span.set_attributes(attributes_after(question, answer))
            return answer

    return handler


def calls(handler: Callable[[str], Any], count: int) -> list[int]:
    """Call a handler and return the duration of each call in nanoseconds."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


async def calls_async(handler: Callable[[str], Any], count: int) -> list[int]:
    """Do the same for a coroutine function."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        await handler(QUESTION)
        times.append(time.perf_counter_ns() - start)
    return times


def caller(bare_run: Run, observed_run: Run, count: int) -> tuple[list[float], list[float], list[float]]:
    """Return the medians of alternating bare and observed blocks of calls in microseconds, and their ratios.

    Blocks are short, so that other load on the machine affects both.
    """
    pairs = [(median(bare_run(BLOCK)) / 1000, median(observed_run(BLOCK)) / 1000) for _ in range(count // BLOCK)]
    return [plain for plain, _ in pairs], [seen for _, seen in pairs], [seen / plain for plain, seen in pairs]


def process(run: Run, flush: Callable[[], object], count: int) -> float:
    """Return the CPU time of the process per call in microseconds, including background work."""
    start = time.process_time_ns()
    run(count)
    flush()
    return (time.process_time_ns() - start) / count / 1000


def compare(name: str, bare_run: Run, observed_run: Run, flush: Callable[[], object], rounds: int, count: int) -> bool:
    """Measure bare and observed calls alternately, print the ratios, and return whether both meet their limits."""
    bare_run(count), observed_run(count), flush()  # warm-up
    plain, seen, ratios = [], [], []
    for _ in range(rounds):
        for kept, found in zip((plain, seen, ratios), caller(bare_run, observed_run, count), strict=True):
            kept += found
        flush()
    callers = report(name, "caller p50", plain, seen, ratios, CALLER_LIMIT)
    plain, seen = [], []
    for _ in range(rounds):
        plain.append(process(bare_run, flush, count))
        seen.append(process(observed_run, flush, count))
    ratios = [after / before for before, after in zip(plain, seen, strict=True)]
    return report(name, "process CPU", plain, seen, ratios, PROCESS_LIMIT) and callers


def report(name: str, what: str, plain: list[float], seen: list[float], ratios: list[float], limit: float) -> bool:
    """Print the medians of one comparison and return whether it meets its limit."""
    ratio = median(ratios)
    print(
        f"{name:14}  {what:11}  bare {median(plain):6.1f} us  observed {median(seen):6.1f} us  "
        f"ratio {ratio:4.2f}  limit {limit}"
    )
    return ratio <= limit


EMBEDDED: dict[str, Any] = {"scorers": ["question_answer_similarity"], "embedder": "local"}
PASSED: dict[str, Any] = {"role": "capture"}
HELD: dict[str, Any] = {**EMBEDDED, "sample_rate": 1.0, "poll_interval": 3600.0}  # the only poll finds no task
SAMPLED: dict[str, Any] = {**EMBEDDED, "sample_rate": 0.0, "poll_interval": 0.2}


def measure(endpoint: str, folder: Path, modes: dict[str, dict[str, Any]], rounds: int, count: int) -> bool:
    """Measure both kinds of handler in each mode, exporting to a receiver."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
    provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(exporter, max_queue_size=8 * count)))
    trace.set_tracer_provider(provider)
    kept = []
    for name, settings in modes.items():
        database = f"sqlite:///{folder}/{name}.db"
        germane.start(database=database, service="benchmark", max_exchanges_per_minute=UNLIMITED, **settings)
        settles = settings.get("poll_interval", 3600.0) < 1
        kept += [measure_mode(name, provider, rounds, count, settles=settles)]
        germane.stop()
    provider.shutdown()
    return all(kept)


def measure_mode(name: str, provider: TracerProvider, rounds: int, count: int, *, settles: bool) -> bool:
    """Measure a sync and an async handler."""
    tracer = trace.get_tracer("bare")
    observed, observed_async = germane.observe(route="ask")(ask), germane.observe(route="ask")(ask_async)

    def flush() -> None:
        provider.force_flush()
        runtime = current_runtime()
        assert runtime is not None
        assert runtime.writer.flush(60)
        while settles and runtime.store.answers.counts().undecided:
            time.sleep(0.05)

    plain, plain_async = bare(tracer), bare_async(tracer)
    with asyncio.Runner() as runner:
        kept = [
            compare(
                f"{name}, sync",
                lambda number: calls(plain, number),
                lambda number: calls(observed, number),
                flush, rounds, count,
            ),
            compare(
                f"{name}, async",
                lambda number: runner.run(calls_async(plain_async, number)),
                lambda number: runner.run(calls_async(observed_async, number)),
                flush, rounds, count,
            ),
        ]  # fmt: skip
    return all(kept)


def main() -> int:
    """Run the benchmark; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000, help="calls per round")
    parser.add_argument("--sampling", action="store_true", help="also make the sampling decisions in this process")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, "-c", RECEIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as receiver,
    ):
        assert receiver.stdout is not None
        endpoint = receiver.stdout.readline().decode().strip()
        modes = {"sampled": SAMPLED} if options.sampling else {"passed": PASSED, "held": HELD}
        kept = measure(endpoint, Path(folder), modes, options.rounds, options.calls)
        receiver.communicate()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
