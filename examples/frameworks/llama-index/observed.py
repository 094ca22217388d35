"""A decorated LlamaIndex query engine that streams its answer, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/llama-index/observed.py
"""

from __future__ import annotations

from collections.abc import Iterator

from departures import search
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.llms.openai_like import OpenAILike

import germane

germane.start(service="llama-index-example")


class Departures(BaseRetriever):
    """Finds departures."""

    @germane.retrieval
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in search(query_bundle.query_str)]


llm = OpenAILike(model="gpt-5-mini", is_chat_model=True)
engine = RetrieverQueryEngine.from_args(Departures(), llm=llm, streaming=True)


@germane.observe
def ask(question: str) -> Iterator[str]:
    """Answer a question from the timetable, word by word."""
    yield from engine.query(question).response_gen


if __name__ == "__main__":
    print(*ask("From which platform do trains to Lyon leave?"), sep="")
