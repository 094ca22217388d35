"""An application that the tests run as a process. It sets up OpenTelemetry before germane, after germane, or never."""

from __future__ import annotations

import sys

import germane

QUESTIONS = 12


def set_up_opentelemetry() -> None:
    """Set a global tracer provider, as instrumented applications do."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "grpc" in sys.argv:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    provider = TracerProvider()
    provider.add_span_processor(
        germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter()), max_delay=float(sys.argv[3]))
    )
    trace.set_tracer_provider(provider)


@germane.retrieval
def search(query: str) -> list[str]:
    """Return one context."""
    return [f"Notes about {query}"]


@germane.observe
def ask(question: str) -> str:
    """Answer a question."""
    return f"{search(question)[0]} is that it is delivered on the second working day."


def main() -> None:
    """Ask questions, and stop once they are scored."""
    order, database = sys.argv[1:3]
    if order == "before":
        set_up_opentelemetry()
    germane.start(database=database, service="under-test", poll_interval=0.1, max_span_delay=float(sys.argv[3]))
    if order == "after":
        set_up_opentelemetry()
    for number in range(QUESTIONS):
        ask(f"When is parcel {number} delivered?")
    assert germane.stop(drain_timeout=60)


if __name__ == "__main__":
    main()
