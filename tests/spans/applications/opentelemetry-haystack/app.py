"""A Haystack pipeline that opentelemetry-haystack traces."""

from __future__ import annotations

from departures import DOCUMENTS, PROMPT
from haystack import Document, Pipeline, tracing
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry import trace
from tracing import export_traces

export_traces()
tracing.tracer.is_content_tracing_enabled = True
tracing.enable_tracing(OpenTelemetryTracer(trace.get_tracer("haystack")))
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
