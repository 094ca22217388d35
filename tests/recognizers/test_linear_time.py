"""Recognition takes linear time, whatever texts an application records."""

from __future__ import annotations

import json
import time
from functools import cache

from tests.cases import each
from tests.spans.samples import chat, node, parts, trace

from germane.recognizers import Recognized, SpanData, Unreadable
from germane.recognizers.recognition import recognize

FAMILIES: dict[str, str] = {
    "item markers": "[1] «",
    "open items": "[" + "1" * 60,
    "digits": "1",
    "occurrences of the question": "Why? ",
    "almost a question": "Why?Why? x",
    "labels": "question: a" + " " * 60 + "\n",
    "answer labels": "answer: ",
    "blank lines": "\n",
    "spaces": " " * 80 + "\n",
    "fields": "[[ ## answer ## ]]\n",
    "deep lists": "[",
    "deep objects": '{"a":',
    "words": "a ",
    "names": "A_b.",
    "parentheses": "ChatMessage(",
    "tags": "<a>",
    "tags without end": "<a1>x<b>",
    "marks": "\u00bfa ",
    "headings": "# a\n",
}
"""Texts that are slow to read if they are repeated, unless recognition takes linear time."""
LENGTH = 300_000


def traces_with(text: str) -> list[tuple[SpanData, ...]]:
    """Return traces that contain a text in every place."""
    kind, scope = "openinference.span.kind", "openinference.instrumentation.langchain"
    variables = json.dumps({"question": "Why?", "context": text})
    document = {kind: "RETRIEVER", "retrieval.documents.0.document.content": text}
    system = "Your input fields are:\n1. `question` (str)\nYour output fields are:\n1. `answer` (str)\n"
    chain = {kind: "CHAIN", "input.value": variables, "output.value": text}
    return [
        trace(scope, node("chain", chain, chat("Why?", "Because."))),
        trace(scope, node("ask", {}, chat("Why?", "Because."), chat(text, "So."))),
        trace(scope, node("ask", {}, chat(text, text), chat(f"{text}.", f"{text}."))),
        trace(scope, node("ask", {}, node("retriever", document), chat(f"{text}\nQuestion: Why?", "Because."))),
        trace(scope, node("ask", {}, node("retriever", {kind: "RETRIEVER", "output.value": text}), chat(text, "So."))),
        trace(scope, chat(text, text, parts("system", system))),
        trace(scope, node("chain", {kind: "CHAIN", "input.value": text, "output.value": text})),
    ]


@cache
def seconds_for(text: str) -> float:
    traces = traces_with(text)
    started = time.process_time()
    for spans in traces:
        recognize(spans)
    return time.process_time() - started


@each("family", FAMILIES)
def test_recognition_of_hostile_texts_takes_linear_time(family: str) -> None:
    """Recognition takes linear time, whatever a text repeats: it must not keep the application from running."""
    hostile = FAMILIES[family]
    benign = "The night train stops in Lyon at two. "

    limit = 20 * seconds_for(benign * (LENGTH // len(benign))) + 0.2

    assert seconds_for(hostile * (LENGTH // len(hostile))) < limit


def test_recognition_of_many_documents_takes_linear_time() -> None:
    """Tens of thousands of documents that are all part of a prompt do not delay other traces."""
    documents = [f"Document number {number}." for number in range(40_000)]
    kind = "openinference.span.kind"
    retriever = node("retriever", {kind: "RETRIEVER", "output.value": json.dumps(documents)})
    prompt = "\n".join(reversed(documents))
    formats = {kind: "CHAIN", "input.value": "Why?", "output.value": prompt}
    started = time.process_time()

    asked = recognize(trace("shop", node("ask", {}, retriever, chat(f"{prompt}\nQuestion: Why?", "Because."))))
    formatted = recognize(trace("shop", node("format", formats, retriever)))

    assert time.process_time() - started < 5
    assert isinstance(asked, Recognized)
    assert asked.question == "Why?"
    assert isinstance(formatted, Unreadable)
