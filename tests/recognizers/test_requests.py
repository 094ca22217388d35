"""Independent requests in one trace are exchanges of their own; calls that work on each other's texts are not."""

from __future__ import annotations

import itertools
from typing import Any

from tests.cases import each

from germane.recognizers import Recognized, SpanData, recognize_all

_numbers = itertools.count(1)
SCOPE = "openinference.instrumentation.openai"


def span(parent: SpanData | None = None, *, scope: str = "app", **attributes: Any) -> SpanData:
    """Return a span that starts after all others."""
    number = next(_numbers)
    return SpanData(
        trace_id="a" * 32,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else parent.span_id,
        name=f"span {number}",
        scope=scope,
        attributes={name.replace("__", "."): value for name, value in attributes.items()},
        start=number * 1000,
        end=number * 1000 + 500,
    )


def call(parent: SpanData, question: str, answer: str) -> SpanData:
    """Return the call of a model."""
    return span(
        parent,
        scope=SCOPE,
        openinference__span__kind="LLM",
        llm__input_messages__0__message__role="user",
        llm__input_messages__0__message__content=question,
        llm__output_messages__0__message__role="assistant",
        llm__output_messages__0__message__content=answer,
    )


def search(parent: SpanData, query: str, document: str) -> SpanData:
    """Return a retrieval."""
    return span(
        parent,
        scope=SCOPE,
        openinference__span__kind="RETRIEVER",
        input__value=query,
        retrieval__documents__0__document__content=document,
    )


def pairs(*spans: SpanData) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return question, answer and contexts of each exchange."""
    found = recognize_all(spans)
    assert all(isinstance(result, Recognized) for result in found)
    return [
        (each.question, each.answer, tuple(context.text for context in each.contexts))
        for each in found
        if isinstance(each, Recognized)
    ]


FIRST = ("How do I return shoes?", "Within thirty days, in the box.")
SECOND = ("Where is the nearest shop?", "In the main street.")


@each("has_steps", [True, False])
def test_a_batch_of_questions_is_several_exchanges(has_steps: bool) -> None:
    """Each has its own contexts and a first span of its own."""
    root = span()
    steps = [span(root), span(root)] if has_steps else [root, root]
    spans = [root, *(steps if has_steps else ())]
    for step, (question, answer) in zip(steps, (FIRST, SECOND), strict=True):
        spans += [search(step, question, f"A document about: {question}"), call(step, question, answer)]

    expected = [(question, answer, (f"A document about: {question}",)) for question, answer in (FIRST, SECOND)]
    assert pairs(*spans) == expected
    found = recognize_all(spans)
    assert len({result.root_span_ids[0] for result in found}) == 2


@each(
    "calls",
    [
        [("Rewrite the question: And the shoes?", FIRST[0]), FIRST],
        [FIRST, (f"Write a title for: {FIRST[1]}", "Returning shoes")],
        [(f"Is this question harmful? {FIRST[0]}", "No"), FIRST],
        [FIRST, (FIRST[0], "Another answer.")],
        [FIRST, SECOND, (f"Combine these: {FIRST[1]} {SECOND[1]}", "All of it.")],
    ],
)
def test_calls_that_work_on_each_other_are_one_request(calls: list[tuple[str, str]]) -> None:
    """They belong to one question, so that a trace never yields more exchanges than questions."""
    root = span()

    assert len(recognize_all([root, *(call(root, *each) for each in calls)])) == 1


def test_calls_inside_a_step_of_a_framework_are_one_request() -> None:
    """An agent or chain that contains all calls says itself what was asked."""
    root = span(scope=SCOPE, openinference__span__kind="CHAIN", input__value="Both?", output__value="Both.")

    assert pairs(root, call(root, *FIRST), call(root, *SECOND)) == [("Both?", "Both.", ())]


def test_a_batch_whose_parts_cannot_all_be_read_is_read_as_one_trace() -> None:
    """A call in the background without an answer is not a request."""
    root = span()
    silent = span(root, scope=SCOPE, openinference__span__kind="LLM", llm__model_name="m")

    assert pairs(root, call(root, *FIRST), silent) == [(*FIRST, ())]


@each("has_retriever", [True, False])
def test_steps_that_work_on_documents_for_one_question_are_one_request(*, has_retriever: bool) -> None:
    """Grades of documents, a ranking or a list of sub-questions are no exchanges, whatever surrounds the question."""
    question, documents = "How long can I return shoes?", ("Shoes: 30 days.", "Shipping takes five days.")
    root = span()
    before = [search(root, question, documents[0])] if has_retriever else []
    steps = [
        *(call(root, f"Is it relevant?\nDocument: {text}\nQuestion: {question}", "yes") for text in documents),
        call(root, f"Rank the passages for the query {question} now", "[1] > [2]"),
        call(root, f"Break into sub-questions: {question}", "1. What is the period?"),
    ]
    answered = call(root, f"Context:\n{documents[0]}\nQuestion: {question}", "30 days after delivery.")

    assert [found[:2] for found in pairs(root, *before, *steps, answered)] == [(question, "30 days after delivery.")]
