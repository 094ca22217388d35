"""A LlamaIndex chat engine that streams its answer; OpenInference traces it, and germane watches it.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/llama-index/watched_chat.py
"""

from __future__ import annotations

from collections.abc import Iterator

from departures import search
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import germane

provider = TracerProvider()
provider.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(provider)
LlamaIndexInstrumentor().instrument()
germane.start(service="llama-index-example")
germane.watch()


class Departures(BaseRetriever):
    """Finds departures."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in search(query_bundle.query_str)]


llm = OpenAILike(model="gpt-5-mini", is_chat_model=True)


def ask(question: str) -> Iterator[str]:
    """Answer the first question of a conversation from the timetable, word by word."""
    engine = ContextChatEngine.from_defaults(Departures(), llm=llm)
    yield from engine.stream_chat(question).response_gen


if __name__ == "__main__":
    print(*ask("From which platform do trains to Lyon leave?"), sep="")
