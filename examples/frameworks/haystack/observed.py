"""A decorated Haystack pipeline, without another instrumentation.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/haystack/observed.py
"""

from __future__ import annotations

from departures import DOCUMENTS, PROMPT
from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

import germane

germane.start(service="haystack-example")

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


@germane.observe
def ask(question: str) -> str:
    """Answer a question from the timetable."""
    inputs = {"retriever": {"query": question}, "prompt": {"question": question}}
    result = pipeline.run(inputs, include_outputs_from={"retriever"})
    germane.add_contexts(result["retriever"]["documents"])
    return result["llm"]["replies"][0].text or ""


if __name__ == "__main__":
    print(ask("From which platform do trains to Lyon leave?"))
