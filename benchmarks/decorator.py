"""What @germane.observe costs, beside a bare OpenTelemetry span that builds and sets the same attributes.

Two figures, for a sync and an async handler, measured in turns in one run:

- caller: median time of one call on the calling thread. Limit 1.5 times the bare span's.
- process: CPU time of the whole process per call, with export over OTLP and, for germane, the database (SQLite) in it.
  Limit 2.5 times the bare span's.

Both are taken for spans that pass at once, as in a process that only captures, and for spans that are held for their
score, as all are at rate 1. The receiver of the spans is a process of its own, and nothing is scored, so neither is in
the figures. With ``--sampling`` this process also decides on every exchange whether it is to be scored.

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
BLOCK = 100
UNLIMITED = 10**9
"""Exchanges a minute: what is not captured costs less (benchmarks/capture.py says how much)."""
Run = Callable[[int], list[int]]
"""Makes so many calls, and returns the nanoseconds of each."""
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


def caller(bare_run: Run, observed_run: Run, count: int) -> tuple[list[float], list[float], list[float]]:
    """Return medians of blocks of calls in microseconds, bare and observed by turns, and their ratios.

    Blocks are short, so that whatever else the machine does is felt by both.
    """
    pairs = [(median(bare_run(BLOCK)) / 1000, median(observed_run(BLOCK)) / 1000) for _ in range(count // BLOCK)]
    return [plain for plain, _ in pairs], [seen for _, seen in pairs], [seen / plain for plain, seen in pairs]


def process(run: Run, flush: Callable[[], object], count: int) -> float:
    """Return the process's CPU time per call, in microseconds, with all the work that the calls left behind."""
    start = time.process_time_ns()
    run(count)
    flush()
    return (time.process_time_ns() - start) / count / 1000


def compare(name: str, bare_run: Run, observed_run: Run, flush: Callable[[], object], rounds: int, count: int) -> bool:
    """Measure bare and observed in turns, print the ratios, and say whether both keep their limits."""
    bare_run(count), observed_run(count), flush()  # warm
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
    """Print the medians of one comparison, and say whether it keeps its limit."""
    ratio = median(ratios)
    print(
        f"{name:14}  {what:11}  bare {median(plain):6.1f} us  observed {median(seen):6.1f} us  "
        f"ratio {ratio:4.2f}  limit {limit}"
    )
    return ratio <= limit


EMBEDDED: dict[str, Any] = {"scorers": ["question_answer_similarity"], "embedder": "local"}
PASSED: dict[str, Any] = {"role": "capture"}
HELD: dict[str, Any] = {**EMBEDDED, "rate": 1.0, "tick": 3600.0}  # nothing is scored: the first tick finds nothing
SAMPLED: dict[str, Any] = {**EMBEDDED, "rate": 0.0, "tick": 0.2}


def measure(endpoint: str, folder: Path, modes: dict[str, dict[str, Any]], rounds: int, count: int) -> bool:
    """Measure both kinds of handler against a receiver, in each mode."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
    provider.add_span_processor(germane.hold(BatchSpanProcessor(exporter, max_queue_size=8 * count)))
    trace.set_tracer_provider(provider)
    kept = []
    for name, settings in modes.items():
        database = f"sqlite:///{folder}/{name}.db"
        germane.start(database=database, service="benchmark", capture_limit=UNLIMITED, **settings)
        kept += [measure_mode(name, provider, rounds, count, settles="tick" in settings and settings["tick"] < 1)]
        germane.stop()
    provider.shutdown()
    return all(kept)


def measure_mode(name: str, provider: TracerProvider, rounds: int, count: int, *, settles: bool) -> bool:
    """Measure a sync and an async handler."""
    tracer = trace.get_tracer("bare")
    observed, observed_async = germane.observe(route="ask")(ask), germane.observe(route="ask")(ask_async)

    def flush() -> None:
        provider.force_flush()
        runtime = running()
        assert runtime is not None
        assert runtime.writer.flush(60)
        while settles and runtime.store.counts().unsampled:
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
        modes = {"sampled": SAMPLED} if options.sampling else {"passed": PASSED, "held": HELD}
        kept = measure(endpoint, Path(folder), modes, options.rounds, options.calls)
        receiver.communicate()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
