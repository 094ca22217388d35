"""A chain around the OpenAI SDK: OpenInference traces the model, the application its own steps.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/openai/watched.py
"""

from __future__ import annotations

from departures import PROMPT, search
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
germane.start(service="openai-example")
germane.watch()

tracer = trace.get_tracer("departures")
client = OpenAI()


def retrieve(query: str) -> list[str]:
    """Search, and record the documents on a span of kind RETRIEVER."""
    with tracer.start_as_current_span("search", attributes={"openinference.span.kind": "RETRIEVER"}) as span:
        documents = search(query)
        for number, text in enumerate(documents):
            span.set_attribute(f"retrieval.documents.{number}.document.content", text)
        return documents


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    attributes = {"openinference.span.kind": "CHAIN", "input.value": question}
    with tracer.start_as_current_span("departures", attributes=attributes) as span:
        messages = [
            {"role": "system", "content": PROMPT.format(context="\n".join(retrieve(question)))},
            {"role": "user", "content": question},
        ]
        reply = client.chat.completions.create(model="gpt-5-mini", messages=messages)
        answer = reply.choices[0].message.content or ""
        span.set_attribute("output.value", answer)
        return answer


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
