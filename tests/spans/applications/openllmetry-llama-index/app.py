"""A LlamaIndex query engine that OpenLLMetry traces."""

from __future__ import annotations

from departures import search
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike
from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor
from tracing import export_traces

export_traces()
LlamaIndexInstrumentor().instrument()


class Departures(BaseRetriever):
    """Finds departures."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in search(query_bundle.query_str)]


engine = RetrieverQueryEngine.from_args(Departures(), llm=OpenAILike(model="gpt-5-mini", is_chat_model=True))


def ask(question: str) -> str:
    """Answer a question from the timetable."""
    return str(engine.query(question))
