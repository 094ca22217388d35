"""An application under test, run as a process: an observed handler, and OpenTelemetry set up before, after or never."""

from __future__ import annotations

import sys

import germane

QUESTIONS = 12


def set_up_opentelemetry() -> None:
    """Set a global tracer provider, as an application of its own would."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "grpc" in sys.argv:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    provider = TracerProvider()
    provider.add_span_processor(germane.hold(BatchSpanProcessor(OTLPSpanExporter()), max_hold=float(sys.argv[3])))
    trace.set_tracer_provider(provider)


@germane.retrieval
def search(query: str) -> list[str]:
    """Find one context."""
    return [f"What is known of {query}"]


@germane.observe
def ask(question: str) -> str:
    """Answer."""
    return f"{search(question)[0]} is that it is delivered on the second working day."


def main() -> None:
    """Ask, wait for the scores, and end."""
    order, database = sys.argv[1:3]
    if order == "before":
        set_up_opentelemetry()
    germane.start(database=database, service="under-test", tick=0.1, max_hold=float(sys.argv[3]))
    if order == "after":
        set_up_opentelemetry()
    for number in range(QUESTIONS):
        ask(f"When is parcel {number} delivered?")
    assert germane.stop(drain=60)


if __name__ == "__main__":
    main()
