"""A DSPy program that OpenInference traces and germane watches.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/dspy/watched.py
"""

from __future__ import annotations

import dspy
from departures import search
from openinference.instrumentation.dspy import DSPyInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
DSPyInstrumentor().instrument()
germane.start(service="dspy-example")
germane.watch()
dspy.configure(lm=dspy.LM("openai/gpt-4.1-mini", cache=False))


class Departures(dspy.Module):
    """Answers questions from the timetable."""

    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context: list[str], question: str -> answer: str")

    def forward(self, question: str) -> dspy.Prediction:
        """Search, and answer from the documents."""
        return self.respond(context=search(question), question=question)


program = Departures()


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    return str(program(question=question).answer)


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
