"""A Haystack pipeline that OpenInference traces and germane watches.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/haystack/watched.py
"""

from __future__ import annotations

from departures import DOCUMENTS, PROMPT
from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from openinference.instrumentation.haystack import HaystackInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
HaystackInstrumentor().instrument()
germane.start(service="haystack-example")
germane.watch()

store = InMemoryDocumentStore()
store.write_documents([Document(content=text) for text in DOCUMENTS])
template = [
    ChatMessage.from_system(
        PROMPT.format(context="{% for document in documents %}{{ document.content }}\n{% endfor %}")
    ),
    ChatMessage.from_user("{{ question }}"),
]
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
pipeline.add_component("prompt", ChatPromptBuilder(template))
pipeline.add_component("llm", OpenAIChatGenerator(model="gpt-5-mini"))
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "llm.messages")


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    result = pipeline.run({"retriever": {"query": question}, "prompt": {"question": question}})
    return result["llm"]["replies"][0].text or ""


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
