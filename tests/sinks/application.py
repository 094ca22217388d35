"""An application that captures exchanges and exports its spans, but does not score.

Arguments: a name, the number of questions, and the number of seconds before the spans are exported. Each tenth answer
gets a label.
"""

from __future__ import annotations

import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane
from germane.process import current_runtime

TIMEOUT = 240.0
HOSTILE = "<script>alert(1)</script> {{7*7}} \u202e'; DROP TABLE spans; --"
ids: list[str] = []


@germane.observe(route="support")
def ask(question: str) -> str:
    """Answer with the number of the parcel."""
    ids.append(germane.current_exchange().id or "")
    return f"Parcel {question.rpartition(' ')[2]} waits at the counter. {HOSTILE}"


def main() -> None:
    """Ask the questions, and exit once the exchanges are stored and the spans are exported."""
    name, count, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1e6))
    trace.set_tracer_provider(provider)
    germane.start(role="capture")
    for number in range(count):
        with trace.get_tracer(__name__).start_as_current_span("GET /ask"):
            ask(f"Where is parcel {name}-{number}")
        if number % 10 == 0:
            germane.feedback(ids[-1], score=number % 20 / 10, comment=f"Seen {number}. {HOSTILE}", user="ada")
    runtime = current_runtime()
    is_stored = runtime is not None and runtime.writer.flush(TIMEOUT)
    time.sleep(delay)
    if not provider.force_flush(int(TIMEOUT * 1000)) or not is_stored:
        raise TimeoutError("not everything was stored and exported")


if __name__ == "__main__":
    main()
